from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from toolverse_jax.rl import cross_entropy, policy_loss
from toolverse_jax.rl.losses import METRICS


def arrays(*values):
    return [np.asarray(v, np.float32) for v in values]


def test_clipping_keeps_the_pessimistic_side():
    # Ratios 1.5, 0.5, 1.5, 0.5 with advantages +1, +1, -1, -1 and clip 0.2: the gains are
    # min(1.5, 1.2), min(0.5, 0.8), min(-1.5, -1.2), min(-0.5, -0.8) = 1.2, 0.5, -1.5, -0.8.
    ratios = np.array([1.5, 0.5, 1.5, 0.5])
    logprobs, zeros, advantages = arrays(np.log(ratios), np.zeros(4), [1, 1, -1, -1])
    loss, metrics = policy_loss(logprobs, zeros, zeros, advantages, np.ones(4, bool))
    np.testing.assert_allclose(loss, -(1.2 + 0.5 - 1.5 - 0.8), rtol=1e-6)
    assert metrics.keys() == set(METRICS)
    assert metrics["clipped"] == 2
    assert metrics["tokens"] == 4
    np.testing.assert_allclose(metrics["ratio"], 4.0, rtol=1e-6)
    np.testing.assert_allclose(metrics["old_kl"], -np.sum(np.log(ratios)), rtol=1e-6)


def test_clip_distances_are_separate():
    logprobs, zeros, advantages = arrays(np.log([1.5, 0.5]), np.zeros(2), [1, -1])
    loss, _ = policy_loss(logprobs, zeros, zeros, advantages, np.ones(2, bool), clip_low=0.1, clip_high=0.28)
    np.testing.assert_allclose(loss, -(1.28 - 0.9), rtol=1e-6)


def test_the_sampler_weight_is_truncated_and_has_no_gradient():
    # pi_old / pi_sampler = 4 is cut to 2; 0.25 stays; the gradient of -w rho A at rho = 1 is -w A.
    logprobs, old, sampler, advantages = arrays([0.0, 0.0], [0.0, 0.0], [-math.log(4), math.log(4)], [1, 1])
    mask = np.ones(2, bool)

    def loss_of(logprobs, cap):
        return policy_loss(logprobs, old, sampler, advantages, mask, importance_sampling_cap=cap)

    (loss, metrics), gradient = jax.value_and_grad(loss_of, has_aux=True)(logprobs, 2.0)
    np.testing.assert_allclose(loss, -2.25, rtol=1e-6)
    np.testing.assert_allclose(gradient, [-2.0, -0.25], rtol=1e-6)
    assert metrics["mismatch_outside"] == 2
    np.testing.assert_allclose(metrics["mismatch_kl"], (3 - math.log(4)) + (-0.75 + math.log(4)), rtol=1e-6)
    np.testing.assert_allclose(loss_of(logprobs, 0.0)[0], -2.0, rtol=1e-6)


def test_on_the_old_policy_the_gradient_is_minus_the_advantage():
    draw = np.random.default_rng(0)
    logprobs, advantages = arrays(draw.normal(size=12), draw.normal(size=12))
    gradient = jax.grad(lambda x: policy_loss(x, logprobs, logprobs, advantages, np.ones(12, bool))[0])(
        logprobs
    )
    np.testing.assert_allclose(gradient, -advantages, rtol=1e-6)


def test_masked_positions_may_hold_anything_and_get_no_gradient():
    mask = np.array([True, False, False])
    logprobs, old, sampler, advantages = arrays(
        [0.1, np.nan, -np.inf], [0.0, np.nan, 0.0], [0.0, np.nan, np.nan], [1.0, np.nan, 3.0]
    )
    (loss, metrics), gradient = jax.value_and_grad(policy_loss, has_aux=True)(
        logprobs, old, sampler, advantages, mask
    )
    np.testing.assert_allclose(loss, -math.exp(0.1), rtol=1e-6)
    assert all(np.isfinite(value) for value in metrics.values())
    np.testing.assert_array_equal(gradient[1:], 0)


def test_nothing_to_learn_from_gives_zero():
    values = np.full((2, 3), np.nan, np.float32)
    (loss, metrics), gradient = jax.value_and_grad(policy_loss, has_aux=True)(
        values, values, values, values, np.zeros((2, 3), bool)
    )
    assert loss == 0
    assert not np.any(gradient)
    assert not any(metrics.values())


def test_huge_log_ratios_stay_finite():
    logprobs, old, advantages = arrays([-1e4, 1e4], [0.0, 0.0], [-1.0, -1.0])
    loss, metrics = policy_loss(logprobs, old, old, advantages, np.ones(2, bool))
    np.testing.assert_allclose(loss, 0.8 + math.exp(20), rtol=1e-6)
    assert np.isfinite(metrics["old_kl"])


def test_the_gradient_agrees_with_finite_differences():
    draw = np.random.default_rng(3)
    with jax.enable_x64(True):
        old = draw.normal(size=20)
        advantages = draw.normal(size=20)
        mask = draw.random(20) < 0.7
        logprobs = jnp.asarray(old + draw.normal(size=20) * 0.05)  # well inside the clip

        def loss_of(x):
            return policy_loss(x, old, old - 0.1, advantages, mask)[0]

        gradient = jax.grad(loss_of)(logprobs)
        step = 1e-2  # the loss itself is float32
        for i in range(20):
            difference = (loss_of(logprobs.at[i].add(step)) - loss_of(logprobs.at[i].add(-step))) / (2 * step)
            assert abs(float(difference - gradient[i])) < 2e-3


@pytest.mark.parametrize("shape", [(6,), (2, 3)])
def test_the_sum_is_the_same_in_any_shape(shape):
    draw = np.random.default_rng(4)
    flat = arrays(*draw.normal(size=(4, 6)))
    mask = np.array([True, True, False, True, False, True])
    expected, _ = policy_loss(*flat, mask)
    loss, _ = policy_loss(*(a.reshape(shape) for a in flat), mask.reshape(shape))
    np.testing.assert_allclose(loss, expected, rtol=1e-6)


def test_cross_entropy_weighs_tokens():
    # 1 * 0.5 + 0.1 * 2 + 0 (masked) = 0.7; only the first token has weight 1.
    logprobs, weights = arrays([-0.5, -2.0, np.nan], [1.0, 0.1, 1.0])
    loss, metrics = cross_entropy(logprobs, weights, np.array([True, True, False]))
    np.testing.assert_allclose(loss, 0.7, rtol=1e-6)
    np.testing.assert_allclose(metrics["weight"], 1.1, rtol=1e-6)
    np.testing.assert_allclose(metrics["action_loss"], 0.5, rtol=1e-6)
    assert metrics["action_tokens"] == 1
