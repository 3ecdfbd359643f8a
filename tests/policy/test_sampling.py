"""Choosing tokens: distributions, filters and random streams."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from toolverse_jax.policy.sampling import choose_tokens

LOGITS = np.random.default_rng(0).normal(size=300).astype(np.float32) * 2
CHOOSE = jax.jit(choose_tokens)


COUNT = 3000


def _draw(*, temperature=1.0, top_p=1.0, top_k=0, seed=0, logits=LOGITS):
    """Draw at positions 0, 1, ... with one seed; fewer logits are filled up with impossible tokens."""
    row = np.full(LOGITS.size, -np.inf, np.float32)
    row[: len(logits)] = logits
    tokens, logprobs = CHOOSE(
        np.tile(row, (COUNT, 1)),
        np.tile(np.array([0, seed], np.uint32), (COUNT, 1)),
        np.arange(COUNT, dtype=np.int32),
        np.full(COUNT, temperature, np.float32),
        np.full(COUNT, top_p, np.float32),
        np.full(COUNT, top_k, np.int32),
    )
    return np.asarray(tokens), np.asarray(logprobs)


def test_draws_follow_the_tempered_softmax():
    tokens, logprobs = _draw(temperature=0.8)
    probabilities = np.exp(LOGITS / 0.8) / np.exp(LOGITS / 0.8).sum()
    observed = np.bincount(tokens, minlength=300) / COUNT
    assert np.abs(np.cumsum(observed) - np.cumsum(probabilities)).max() < 1.63 / np.sqrt(COUNT)  # KS, 1 %
    np.testing.assert_allclose(logprobs, np.log(probabilities)[tokens], atol=1e-5)


def test_zero_temperature_takes_the_best_token_with_its_logprob_at_temperature_one():
    tokens, logprobs = _draw(temperature=0.0, top_p=0.1)
    assert (np.asarray(tokens) == LOGITS.argmax()).all()
    expected = LOGITS.max() - np.log(np.exp(LOGITS).sum())
    np.testing.assert_allclose(logprobs, expected, atol=1e-5)


def test_top_k_keeps_the_most_probable_tokens_and_the_unfiltered_logprob():
    tokens, logprobs = _draw(top_k=3)
    assert set(tokens.tolist()) == set(np.argsort(LOGITS)[-3:].tolist())
    expected = LOGITS[tokens] - np.log(np.exp(LOGITS).sum())
    np.testing.assert_allclose(logprobs, expected, atol=1e-5)


def test_top_p_keeps_the_smallest_set_that_reaches_the_mass():
    logits = np.log(np.array([0.5, 0.3, 0.15, 0.05], np.float32))
    for top_p, kept in ((0.4, {0}), (0.6, {0, 1}), (0.79, {0, 1}), (0.9, {0, 1, 2}), (1.0, {0, 1, 2, 3})):
        tokens, _ = _draw(top_p=top_p, logits=logits)
        assert set(np.asarray(tokens).tolist()) == kept


def test_a_row_with_a_filter_does_not_touch_its_neighbours():
    plain = _draw()
    rows = np.tile(LOGITS, (COUNT, 1)), np.tile(np.array([0, 0], np.uint32), (COUNT, 1))
    top_p = np.where(np.arange(COUNT) % 2, 1.0, 0.01).astype(np.float32)
    mixed = CHOOSE(
        *rows, np.arange(COUNT, dtype=np.int32), np.ones(COUNT, np.float32), top_p, np.zeros(COUNT, np.int32)
    )
    for left, right in zip(mixed, plain, strict=True):
        np.testing.assert_array_equal(np.asarray(left)[1::2], right[1::2])
    assert (np.asarray(mixed[0])[::2] == LOGITS.argmax()).all()


def test_the_draw_depends_on_seed_and_position():
    first, again, other = (_draw(seed=seed)[0][:64] for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).mean() > 0.5
    assert len(set(first.tolist())) > 10


@pytest.mark.parametrize("temperature", [1e-3, 1.0])
def test_a_token_of_probability_zero_is_never_drawn(temperature):
    logits = np.full(300, -np.inf, np.float32)
    logits[[7, 200]] = 1.0
    tokens, logprobs = _draw(temperature=temperature, logits=logits)
    assert set(tokens.tolist()) == {7, 200}
    np.testing.assert_allclose(logprobs, np.log(0.5), atol=1e-5)
