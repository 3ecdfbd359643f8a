"""Logprobs of the loss tokens only, at a cost that follows their number, with static shapes.

Three of four tokens of a rollout are the environment's and carry no loss; the vocabulary head is the
largest matrix product of a small policy. Each row's loss tokens are moved to its front, and the head
runs over columns of the moved rows, skipping columns that hold none.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from toolverse_jax.policy import Params, Policy, token_logprobs

_COLUMNS = 128
"""Columns of moved rows that pass through the head at once."""


def loss_tokens_first(loss_mask: Bool[Array, "rows length"]) -> Int[Array, "rows length"]:
    """Return positions of each row, those of loss tokens first, both parts in order."""
    return jnp.argsort(jnp.logical_not(loss_mask), axis=1, stable=True)


def moved_logprobs(
    policy: Policy,
    params: Params,
    hidden: Float[Array, "rows length dim"],
    tokens: Int[Array, "rows length"],
    loss_mask: Bool[Array, "rows length"],
    order: Int[Array, "rows length"],
    temperature: float,
) -> tuple[Float[Array, "rows length"], Float[Array, "rows length"]]:
    """Return logprobs and entropies of the loss tokens in the order of `loss_tokens_first`.

    Args:
        policy: the network.
        params: its parameters.
        hidden: hidden states; index i predicts token i + 1.
        tokens: token ids.
        loss_mask: tokens that carry loss; false at position 0.
        order: from `loss_tokens_first`.
        temperature: sampling temperature.

    Returns:
        Values in the moved order, 0 beyond the loss tokens.
    """
    rows, length = hidden.shape[:2]
    padding = -length % _COLUMNS
    # The state before a token predicts it; -1 of position 0 is clipped and never counts.
    states = _take(hidden, jnp.maximum(order - 1, 0))
    targets = jnp.take_along_axis(tokens, order, axis=1)
    counts = jnp.sum(loss_mask, axis=1, keepdims=True)

    def columns(array: Array) -> Array:
        widths = [(0, 0), (0, padding)] + [(0, 0)] * (array.ndim - 2)
        split = jnp.pad(array, widths).reshape(rows, -1, _COLUMNS, *array.shape[2:])
        return jnp.moveaxis(split, 1, 0)

    # Under checkpoint only the inputs are kept for the backward pass, not a copy of the head's
    # weights per column block.
    @jax.checkpoint
    def run_head(params: Params, states: Array, targets: Array, used: Array) -> tuple[Array, Array]:
        logprobs, entropy = token_logprobs(
            policy, params, states, targets, temperature, chunk=rows * _COLUMNS
        )
        return jnp.where(used, logprobs, 0.0), jnp.where(used, entropy, 0.0)

    def skip(params: Params, states: Array, targets: Array, used: Array) -> tuple[Array, Array]:
        zeros = jnp.zeros(targets.shape, jnp.float32)
        return zeros, zeros

    def one_block(_: None, inputs: tuple[Array, Array, Array]) -> tuple[None, tuple[Array, Array]]:
        states, targets, used = inputs
        return None, jax.lax.cond(jnp.any(used), run_head, skip, params, states, targets, used)

    used = jnp.arange(length)[None, :] < counts
    _, results = jax.lax.scan(one_block, None, (columns(states), columns(targets), columns(used)))
    logprobs, entropy = (jnp.moveaxis(x, 0, 1).reshape(rows, -1)[:, :length] for x in results)
    return logprobs, entropy


def _take(hidden: Array, index: Array) -> Array:
    return jax.vmap(lambda states, positions: states[positions])(hidden, index)
