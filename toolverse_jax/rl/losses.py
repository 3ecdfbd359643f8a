"""Objectives as sums over tokens; the caller divides once by the global number of tokens.

Summing makes the result independent of how tokens are packed into rows, micro-batches and shards.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

Array = jax.Array | np.ndarray

LOG_RATIO_BOUND = 20.0
"""Log-ratios are bounded to +-20 before exponentiation, so that no ratio overflows float32."""


def policy_loss(
    logprobs: Float[Array, "*batch"],
    old_logprobs: Float[Array, "*batch"],
    sampler_logprobs: Float[Array, "*batch"],
    advantages: Float[Array, "*batch"],
    loss_mask: Bool[Array, "*batch"],
    *,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    importance_sampling_cap: float = 2.0,
) -> tuple[Float[jax.Array, ""], dict[str, Float[jax.Array, ""]]]:
    """Clipped policy-gradient loss with truncated importance sampling, summed over loss tokens.

        L = -sum_j w_j min(rho_j A_j, clip(rho_j, 1 - clip_low, 1 + clip_high) A_j)
        rho = pi / pi_old,   w = min(pi_old / pi_sampler, cap) without gradient

    Args:
        logprobs: of the policy that is trained; the only argument with a gradient.
        old_logprobs: of the policy at the start of the batch, computed by the trainer.
        sampler_logprobs: as the rollout engine reported them.
        advantages: of each token.
        loss_mask: tokens that count; other positions may hold anything, NaN included.
        clip_low: lower clipping distance of the ratio.
        clip_high: upper clipping distance of the ratio.
        importance_sampling_cap: upper bound of w; 0 switches the correction off (w = 1).

    Returns:
        The loss sum and sums of the metrics in `METRICS`.

    Reference: Schulman et al. 2017, eq. 7, arXiv:1707.06347; truncated weights: Ionides 2008.
    """
    logprobs = _masked(logprobs, loss_mask)
    old = jax.lax.stop_gradient(_masked(old_logprobs, loss_mask))
    sampler = jax.lax.stop_gradient(_masked(sampler_logprobs, loss_mask))
    advantages = jax.lax.stop_gradient(_masked(advantages, loss_mask))

    log_ratio = _bounded(logprobs - old)
    ratio = jnp.exp(log_ratio)
    clipped_ratio = jnp.clip(ratio, 1.0 - clip_low, 1.0 + clip_high)
    gain = jnp.minimum(ratio * advantages, clipped_ratio * advantages)
    log_mismatch = _bounded(old - sampler)
    mismatch = jnp.exp(log_mismatch)
    weight = jnp.minimum(mismatch, importance_sampling_cap) if importance_sampling_cap > 0 else 1.0
    loss = -_sum(weight * gain, loss_mask)

    clipped = jnp.where(advantages > 0, ratio > 1.0 + clip_high, ratio < 1.0 - clip_low) & (advantages != 0)
    metrics = {
        "loss": loss,
        "tokens": _sum(jnp.ones_like(ratio), loss_mask),
        "ratio": _sum(ratio, loss_mask),
        "clipped": _sum(clipped.astype(jnp.float32), loss_mask),
        "old_kl": _sum(ratio - 1.0 - log_ratio, loss_mask),
        "mismatch_kl": _sum(mismatch - 1.0 - log_mismatch, loss_mask),
        "mismatch_outside": _sum(((mismatch < 0.5) | (mismatch > 2.0)).astype(jnp.float32), loss_mask),
    }
    return loss, jax.lax.stop_gradient(metrics)


METRICS: tuple[str, ...] = (
    "clipped",
    "loss",
    "mismatch_kl",
    "mismatch_outside",
    "old_kl",
    "ratio",
    "tokens",
)
"""Keys of the sums of `policy_loss`: clipped tokens, the loss, both divergences by the k3 estimator
(of the old policy from the current one, of the sampler from the old policy), tokens whose
sampler-to-trainer ratio leaves [0.5, 2], importance ratios, and the number of loss tokens."""


def cross_entropy(
    logprobs: Float[Array, "*batch"], weights: Float[Array, "*batch"], loss_mask: Bool[Array, "*batch"]
) -> tuple[Float[jax.Array, ""], dict[str, Float[jax.Array, ""]]]:
    """Weighted next-token cross-entropy, summed: L = -sum_j weight_j log pi_j.

    Returns:
        The loss sum and sums of metrics: `weight` (divide the loss by it), and `action_loss` and
        `action_tokens` over the tokens of weight 1.
    """
    logprobs = _masked(logprobs, loss_mask)
    weights = _masked(weights, loss_mask)
    action = loss_mask & (weights >= 1.0)
    loss = -_sum(weights * logprobs, loss_mask)
    metrics = {
        "loss": loss,
        "weight": _sum(weights, loss_mask),
        "action_loss": -_sum(logprobs, action),
        "action_tokens": _sum(jnp.ones_like(logprobs), action),
    }
    return loss, jax.lax.stop_gradient(metrics)


def _masked(values: Array, mask: Array) -> jax.Array:
    # Selecting before any arithmetic keeps NaN at unmasked positions out of values and gradients.
    return jnp.where(mask, jnp.asarray(values, jnp.float32), 0.0)


def _sum(values: jax.Array, mask: Array) -> jax.Array:
    return jnp.sum(jnp.where(mask, values, 0.0))


def _bounded(log_ratio: jax.Array) -> jax.Array:
    return jnp.clip(log_ratio, -LOG_RATIO_BOUND, LOG_RATIO_BOUND)
