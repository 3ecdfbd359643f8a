"""Chooses tokens from logits, one random stream per request, independent of the batch."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, UInt

_SCAN_BLOCK = 128
"""Probabilities summed by one matrix product when the distribution function is formed."""


def choose_tokens(
    logits: Float[Array, "batch vocab"],
    key: UInt[Array, "batch 2"],
    position: Int[Array, " batch"],
    temperature: Float[Array, " batch"],
    top_p: Float[Array, " batch"],
    top_k: Int[Array, " batch"],
) -> tuple[Int[Array, " batch"], Float[Array, " batch"]]:
    """Sample one token of every row and return it with its logprob.

    A row draws one uniform number from fold_in(key, position) and inverts the distribution function,
    so the draw depends on the request and the position alone.

    Args:
        logits: float32.
        key: words of the PRNG key of each request.
        position: position of the token before, folded into the key.
        temperature: 0 chooses the most probable token.
        top_p: keep the most probable tokens up to this mass; 1 keeps all.
        top_k: keep this many most probable tokens; 0 keeps all.

    Returns:
        Token ids, and log softmax(logits / temperature) at them: the distribution before top-p and
        top-k, which is what a trainer computes. Where the temperature is 0, that at temperature 1.
    """
    greedy = temperature <= 0
    scaled = logits / jnp.where(greedy, 1.0, temperature)[:, None]
    best = scaled.max(axis=-1, keepdims=True)
    weight = jnp.exp(scaled - best)
    log_total = jnp.log(weight.sum(axis=-1))
    filtered = jnp.any(((top_p < 1) | (top_k > 0)) & ~greedy)
    # The sort costs more than everything else here, so it runs only where some row asks for it.
    kept = jax.lax.cond(filtered, lambda: _filter(weight, top_p, top_k), lambda: weight)
    sampled = _invert(kept, _uniform(key, position))
    token = jnp.where(greedy, jnp.argmax(scaled, axis=-1), sampled).astype(jnp.int32)
    chosen = jnp.take_along_axis(scaled, token[:, None], axis=-1)[:, 0]
    # The maximum first: at low temperatures it is large, and the sum would lose digits.
    return token, (chosen - best[:, 0]) - log_total


def _uniform(key: Array, position: Array) -> Array:
    def one(words: Array, where: Array) -> Array:
        return jax.random.uniform(
            jax.random.fold_in(jax.random.wrap_key_data(words, impl="threefry2x32"), where)
        )

    return jax.vmap(one)(key, position)


def _filter(weight: Array, top_p: Array, top_k: Array) -> Array:
    """Set to zero what top-k and then top-p leave out; equal probabilities stand or fall together."""
    vocab = weight.shape[-1]
    ordered = jnp.sort(weight, axis=-1, descending=True)
    limit = jnp.where(top_k > 0, jnp.minimum(top_k, vocab), vocab)
    kth = jnp.take_along_axis(ordered, limit[:, None] - 1, axis=-1)
    ordered = jnp.where(ordered >= kth, ordered, 0.0)
    mass = jnp.cumsum(ordered, axis=-1)
    before = mass - ordered
    inside = before < top_p[:, None] * mass[:, -1:]
    smallest = jnp.where(inside, ordered, jnp.inf).min(axis=-1, keepdims=True)
    smallest = jnp.where(top_p[:, None] < 1, smallest, 0.0)
    return jnp.where((weight >= kth) & (weight >= smallest), weight, 0.0)


def _invert(weight: Array, uniform: Array) -> Array:
    """Return the first index whose cumulative weight exceeds uniform times the total.

    Sums inside blocks come from a product with a triangular matrix, much faster than a scan.
    """
    batch, vocab = weight.shape
    padded = jnp.pad(weight, ((0, 0), (0, -vocab % _SCAN_BLOCK)))
    blocks = padded.reshape(batch, -1, _SCAN_BLOCK)
    inner = blocks @ jnp.triu(jnp.ones((_SCAN_BLOCK, _SCAN_BLOCK), weight.dtype))
    ends = jnp.cumsum(inner[..., -1], axis=-1)
    mass = (inner + (ends - inner[..., -1])[..., None]).reshape(batch, -1)
    # A token of weight zero must never be chosen, whatever the rounding of the sums.
    hit = (mass > uniform[:, None] * ends[:, -1:]) & (padded > 0)
    return jnp.where(hit.any(axis=-1), jnp.argmax(hit, axis=-1), jnp.argmax(padded, axis=-1))
