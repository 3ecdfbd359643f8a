from __future__ import annotations

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest

from toolverse_jax.rl import (
    constant_columns,
    future_values,
    grpo_advantages,
    normalise_over_group,
    tara_advantages,
)

# K = 4 rollouts, T = 3 turns.
REWARDS = np.array([[1, 1, 1], [1, 0, 1], [0, 1, 1], [1, 1, 0]], np.float32)

# With gamma = 0.5 and gate = r the last column of V is 0 and, for example,
#   V[0,0] = r[0,1] + 0.5 r[0,2] = 1.5     V[1,0] = 0 + 0.5 = 0.5     V[2,0] = 0 (gate)     V[3,0] = 1.
FUTURE = np.array([[1.5, 1, 0], [0.5, 0, 0], [0, 1, 0], [1, 0, 0]], np.float32)


def z(column: list[float], eps: float = 1e-6) -> np.ndarray:
    """Normalise by hand in float64."""
    x = np.asarray(column, np.float64)
    if x.max() == x.min():
        return np.zeros_like(x)
    return (x - x.mean()) / (np.sqrt(np.mean((x - x.mean()) ** 2)) + eps)


def test_future_values_of_the_worked_example():
    np.testing.assert_array_equal(future_values(REWARDS, gamma=0.5), FUTURE)


def test_tara_of_the_worked_example():
    # Each column is Z(r) + 0.5 Z(V). Column 1: Z(r) = (0.25, 0.25, -0.75, 0.25) / sqrt(0.1875) and
    # Z(V) = (0.75, -0.25, -0.75, 0.25) / sqrt(0.3125); 0.577350 + 0.5 * 1.341641 = 1.248170 less eps.
    expected = [
        [1.248168, 1.077348, 0.577349],
        [0.353743, -2.232046, 0.577349],
        [-2.402866, 1.077348, 0.577349],
        [0.800955, 0.077350, -1.732047],
    ]
    np.testing.assert_allclose(tara_advantages(REWARDS), expected, atol=1e-5)
    by_hand = np.stack([z(REWARDS[:, t]) + 0.5 * z(FUTURE[:, t]) for t in range(3)], axis=1)
    np.testing.assert_allclose(tara_advantages(REWARDS), by_hand, atol=1e-5)


def test_tara_without_the_gate():
    # V[2,0] becomes r[2,1] + 0.5 r[2,2] = 1.5 and V[1,1] becomes r[1,2] = 1.
    advantages = tara_advantages(REWARDS, gate=False)
    np.testing.assert_allclose(advantages[:, 0], [1.029615, -0.176428, -1.279781, 0.426594], atol=1e-5)
    np.testing.assert_allclose(advantages[:, 1], [0.866023, -1.443372, 0.866023, -0.288674], atol=1e-5)


def test_without_future_weight_tara_is_grpo_at_each_turn():
    advantages = tara_advantages(REWARDS, lambda_=0.0)
    np.testing.assert_allclose(advantages[:, 0], [0.577349, 0.577349, -1.732047, 0.577349], atol=1e-5)
    for t in range(3):
        np.testing.assert_array_equal(advantages[:, t], grpo_advantages(REWARDS[:, t]))


def test_tara_of_two_rollouts_and_five_turns():
    # V[0] = (0 + 0 + 0.25 + 0.125, 0, 0, 1, 0); V[1] = 0: every column that varies has Z = +-1 less eps.
    rewards = np.array([[1, 0, 0, 1, 1], [1, 0, 0, 0, 0]], np.float32)
    advantages = tara_advantages(rewards)
    np.testing.assert_allclose(advantages[0], [0.499997, 0, 0, 1.499997, 0.999998], atol=1e-5)
    np.testing.assert_array_equal(advantages[1], -advantages[0])


def test_the_discount_may_start_at_gamma():
    np.testing.assert_allclose(future_values(REWARDS, gamma=0.5, future_discount_start=1), 0.5 * FUTURE)
    with pytest.raises(ValueError, match="future_discount_start"):
        future_values(REWARDS, gamma=0.5, future_discount_start=2)


def test_without_discount_only_the_next_turn_counts():
    np.testing.assert_array_equal(future_values(REWARDS, gamma=0.0, gate=False)[:, :2], REWARDS[:, 1:])


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1.0, 1e-20, 1e20, -7.7])
@pytest.mark.parametrize("group", [1, 2, 3, 7, 8, 13])
def test_a_group_of_equal_values_has_advantage_exactly_zero(value, group):
    assert not np.any(grpo_advantages(np.full(group, value, np.float32)))
    assert not np.any(tara_advantages(np.full((group, 4), value, np.float32)))


def test_a_constant_turn_gets_only_the_future_advantage():
    rewards = np.array([[1, 1], [1, 0]], np.float32)
    np.testing.assert_allclose(tara_advantages(rewards)[:, 0], [0.5, -0.5], atol=1e-5)
    np.testing.assert_array_equal(constant_columns(rewards), [True, False])


def test_rollouts_can_be_permuted():
    draw = np.random.default_rng(0)
    rewards = draw.integers(0, 2, (8, 5)).astype(np.float32)
    order = draw.permutation(8)
    np.testing.assert_allclose(
        tara_advantages(rewards[order]), tara_advantages(rewards)[order], rtol=1e-6, atol=1e-6
    )


def test_padding_turns_change_nothing():
    padded = np.pad(REWARDS, ((0, 0), (0, 4)))
    advantages = tara_advantages(padded)
    np.testing.assert_array_equal(advantages[:, :3], tara_advantages(REWARDS))
    assert not np.any(advantages[:, 3:])


def test_jit_and_vmap_agree_with_plain_calls():
    draw = np.random.default_rng(1)
    groups = draw.integers(0, 2, (3, 6, 4)).astype(np.float32)
    plain = jnp.stack([tara_advantages(g) for g in groups])
    np.testing.assert_allclose(jax.vmap(tara_advantages)(groups), plain, atol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.vmap(tara_advantages))(groups), plain, atol=1e-6)


def test_each_column_of_advantages_sums_to_zero_and_scales_with_the_group():
    values = np.random.default_rng(2).normal(size=(16, 3)).astype(np.float32)
    normal = np.asarray(normalise_over_group(values))
    np.testing.assert_allclose(normal.sum(0), 0, atol=1e-5)
    np.testing.assert_allclose(normal.std(0), 1, atol=1e-5)


def test_annotations_are_checked_in_tests():
    with pytest.raises(jaxtyping.TypeCheckError):
        tara_advantages(np.zeros(3, np.float32))
