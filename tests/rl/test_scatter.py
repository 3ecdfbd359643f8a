from __future__ import annotations

import numpy as np

from toolverse_jax.rl import scatter_turn_advantages


def test_each_loss_token_gets_the_advantage_of_its_turn_in_its_segment():
    table = np.zeros((2, 3, 4), np.float32)
    table[0, 1, 1:] = [1, 2, 3]
    table[0, 2, 1:] = [4, 5, 6]
    table[1, 1, 1:] = [7, 8, 9]
    segments = np.array([[1, 1, 1, 2, 2, 0], [1, 1, 1, 1, 0, 0]])
    turns = np.array([[0, 1, 3, 1, 2, 0], [0, 2, 2, 3, 0, 0]])
    mask = np.array([[0, 1, 1, 1, 0, 0], [0, 1, 0, 1, 0, 0]], bool)
    np.testing.assert_array_equal(
        scatter_turn_advantages(table, segments, turns, mask), [[0, 1, 3, 4, 0, 0], [0, 8, 0, 9, 0, 0]]
    )


def test_it_agrees_with_a_loop_over_tokens():
    draw = np.random.default_rng(0)
    table = draw.normal(size=(4, 6, 5)).astype(np.float32)
    segments = draw.integers(0, 6, (4, 50))
    turns = draw.integers(0, 5, (4, 50))
    mask = draw.random((4, 50)) < 0.5
    expected = np.zeros((4, 50), np.float32)
    for row in range(4):
        for token in range(50):
            if mask[row, token]:
                expected[row, token] = table[row, segments[row, token], turns[row, token]]
    np.testing.assert_array_equal(scatter_turn_advantages(table, segments, turns, mask), expected)
