"""Log-probabilities and entropies of tokens, without ever holding a `[tokens, vocabulary]` array.

The head is applied to a few hundred tokens at a time; the backward pass recomputes each chunk.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from toolverse_jax.policy.model import Params, Policy, head_weights

_CHUNK = 512
"""Tokens whose logits exist at once."""


def token_logprobs(
    policy: Policy,
    params: Params,
    hidden: Float[Array, "*batch dim"],
    targets: Int[Array, "*batch"],
    temperature: float | Array = 1.0,
    *,
    chunk: int = _CHUNK,
) -> tuple[Float[Array, "*batch"], Float[Array, "*batch"]]:
    """Return log softmax(logits / temperature) at the targets, and the entropy of that distribution.

    Args:
        policy: the network; its own `params` are not read.
        params: float32 master parameters.
        hidden: hidden states that predict the targets: `hidden[i]` belongs to `targets[i]`, so
            callers shift (or use `loss_token_logprobs`, which does).
        targets: token ids.
        temperature: > 0.
        chunk: tokens whose logits exist at once.

    Returns:
        Logprobs and entropies in nats, float32.
    """
    weights = head_weights(policy, params).astype(hidden.dtype)
    flat = hidden.reshape(-1, hidden.shape[-1])
    count = flat.shape[0]
    chunk = min(chunk, count)
    padding = -count % chunk
    flat = jnp.pad(flat, ((0, padding), (0, 0))).reshape(-1, chunk, hidden.shape[-1])
    flat_targets = jnp.pad(targets.reshape(-1), (0, padding)).reshape(-1, chunk)

    @jax.checkpoint
    def one_chunk(_: None, inputs: tuple[Array, Array]):
        states, ids = inputs
        logits = jnp.einsum("td,vd->tv", states, weights, preferred_element_type=jnp.float32) / temperature
        log_total = jax.nn.logsumexp(logits, axis=-1)
        chosen = jnp.take_along_axis(logits, ids[:, None], axis=-1)[:, 0]
        mean_logit = jnp.sum(jnp.exp(logits - log_total[:, None]) * logits, axis=-1)
        return None, (chosen - log_total, log_total - mean_logit)

    _, (logprobs, entropy) = jax.lax.scan(one_chunk, None, (flat, flat_targets))
    return tuple(x.reshape(-1)[:count].reshape(targets.shape) for x in (logprobs, entropy))  # type: ignore[return-value]


def loss_token_logprobs(
    policy: Policy,
    params: Params,
    hidden: Float[Array, "rows time dim"],
    tokens: Int[Array, "rows time"],
    loss_mask: Bool[Array, "rows time"],
    temperature: float | Array = 1.0,
    *,
    budget: int,
    chunk: int = _CHUNK,
) -> tuple[Float[Array, "rows time"], Float[Array, "rows time"]]:
    """Return logprobs and entropies of the loss tokens of packed rows; zero elsewhere.

    Position i of the result belongs to predicting `tokens[i]` from `hidden[i - 1]`, the alignment of
    `PackedBatch`. Only `budget` tokens of each row pass through the head, so the cost follows the
    number of loss tokens.

    Args:
        policy: the network; its own `params` are not read.
        params: float32 master parameters.
        hidden: hidden states of the whole rows.
        tokens: token ids of the rows.
        loss_mask: tokens that carry loss; false on the first token of each segment.
        temperature: > 0.
        budget: static bound on loss tokens in any row, from `loss_budget`. A row that exceeds it is
            answered with NaN, never cut silently.
        chunk: tokens whose logits exist at once.
    """

    def locate(mask: Array) -> tuple[Array, Array]:
        (index,) = jnp.nonzero(mask, size=budget, fill_value=mask.shape[0])
        return index, mask.sum() > budget

    index, overflow = jax.vmap(locate)(loss_mask)
    used = index < tokens.shape[1]
    safe = jnp.where(used, index, 1)
    picked = jnp.take_along_axis(hidden, jnp.maximum(safe - 1, 0)[..., None], axis=1)
    targets = jnp.take_along_axis(tokens, safe, axis=1)
    results = token_logprobs(policy, params, picked, targets, temperature, chunk=chunk)

    def spread(values: Array) -> Array:
        values = jnp.where(overflow[:, None], jnp.nan, values)
        row = jnp.arange(tokens.shape[0])[:, None]
        return jnp.zeros(tokens.shape, jnp.float32).at[row, index].set(values, mode="drop")

    return spread(results[0]), spread(results[1])


def loss_budget(loss_mask: np.ndarray, *, multiple: int = 128) -> int:
    """Return a static bound on the loss tokens of any row, rounded up so that few sizes compile."""
    most = int(np.asarray(loss_mask).sum(axis=-1).max(initial=0))
    return min(max(multiple, -(-most // multiple) * multiple), int(loss_mask.shape[-1]))
