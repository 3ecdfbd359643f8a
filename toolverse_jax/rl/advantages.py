"""Group-relative advantages: TARA over user turns and GRPO over whole trajectories.

Where the paper (arXiv:2607.15660) contradicts itself, this module follows eq. 3 and B.4:

* eq. 3 weighs the next turn with gamma^0, eq. 7 with gamma^1; `future_discount_start` chooses.
* The sum of eq. 3 runs one past the last turn; here it ends at the last turn.
* lambda is in [0, 1) in one place and in [0.5, 1] in another; any value >= 0 is taken.
* Theorem A.4 holds only where the group's mean reward is above 0.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

Array = jax.Array | np.ndarray


def tara_advantages(
    rewards: Float[Array, "group turn"],
    *,
    lambda_: float = 0.5,
    gamma: float = 0.5,
    gate: bool = True,
    future_discount_start: int = 0,
    eps: float = 1e-6,
) -> Float[jax.Array, "group turn"]:
    """Turn-Aware Relative Advantage of each rollout at each turn.

        V[i,t] = gate[i,t] * sum_{k=0}^{T-t-1} gamma^(k + future_discount_start) r[i,t+k+1]
        A = Z(r) + lambda Z(V),   Z normalises each turn over the group

    Appending turns with equal rewards 0 changes nothing and gives them advantage 0, so ragged tasks
    may be padded to one shape.

    Args:
        rewards: reward of each turn; turns a rollout never reached count as 0.
        lambda_: weight of the future advantage, >= 0.
        gamma: discount of later turns, in [0, 1].
        gate: credit the future only in proportion to the turn's own reward (gate = r).
        future_discount_start: exponent of gamma for the next turn, 0 (eq. 3) or 1 (eq. 7).
        eps: added to the standard deviation.

    Returns:
        Advantages in float32; exactly 0 in a turn where the group's values are all equal.

    Reference: ToolVerse 2026, eqs. 1-5 and B.4, arXiv:2607.15660.
    """
    rewards = jnp.asarray(rewards, jnp.float32)
    future = future_values(rewards, gamma=gamma, gate=gate, future_discount_start=future_discount_start)
    return normalise_over_group(rewards, eps=eps) + lambda_ * normalise_over_group(future, eps=eps)


def grpo_advantages(returns: Float[Array, " group"], *, eps: float = 1e-6) -> Float[jax.Array, " group"]:
    """Group-relative advantage of whole trajectories: A_i = (R_i - mean R) / (std R + eps).

    Args:
        returns: one return per rollout of the group.
        eps: added to the standard deviation.

    Returns:
        Advantages in float32; exactly 0 where all returns are equal.

    Reference: DeepSeekMath 2024, section 4.1, arXiv:2402.03300.
    """
    return normalise_over_group(jnp.asarray(returns, jnp.float32)[:, None], eps=eps)[:, 0]


def future_values(
    rewards: Float[Array, "group turn"], *, gamma: float, gate: bool = True, future_discount_start: int = 0
) -> Float[jax.Array, "group turn"]:
    """Discounted reward of the later turns, V of eq. 3, gated by the turn's own reward.

    Raises:
        ValueError: `future_discount_start` is neither 0 nor 1.
    """
    if future_discount_start not in (0, 1):
        raise ValueError(f"future_discount_start must be 0 or 1, got {future_discount_start}")
    rewards = jnp.asarray(rewards, jnp.float32)

    def step(later: Float[jax.Array, " group"], reward: Float[jax.Array, " group"]):
        return reward + gamma * later, later

    # Horner's rule per rollout: equal rows give bit-equal values on every backend, which a
    # matrix product with the discounts does not promise and the exact zeros below rely on.
    _, later = jax.lax.scan(step, jnp.zeros_like(rewards[:, 0]), rewards.T, reverse=True)
    future = later.T * gamma**future_discount_start
    return rewards * future if gate else future


def normalise_over_group(
    values: Float[Array, "group column"], *, eps: float = 1e-6
) -> Float[jax.Array, "group column"]:
    """Z(x) = (x - mean) / (std + eps) of each column over the group, population std (B.4).

    Exactly 0 where the column's largest and smallest value are equal: a rounded mean would leave a
    residue that eps turns into a visible advantage.
    """
    values = jnp.asarray(values, jnp.float32)
    mean = jnp.mean(values, axis=0, keepdims=True)
    std = jnp.std(values, axis=0, keepdims=True)
    constant = constant_columns(values)[None, :]
    return jnp.where(constant, 0.0, (values - mean) / (std + eps))


def constant_columns(values: Float[Array, "group column"]) -> Bool[jax.Array, " column"]:
    """Return which columns hold one value for the whole group and so carry no signal."""
    values = jnp.asarray(values)
    return jnp.max(values, axis=0) == jnp.min(values, axis=0)
