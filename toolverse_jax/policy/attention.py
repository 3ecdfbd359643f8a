"""Causal attention over packed rows: one contract, several implementations.

Contract: queries `[B, T, N, H]`, keys and values `[B, T, K, H]` with N a multiple of K, and segment
ids `[B, T]`. Token i sees token j iff they share a segment, j <= i, and the segment is not 0
(padding). Rows of padding tokens are exactly zero. Logits, softmax and sums are float32; the result
has the type of the queries.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

AttentionName = Literal["auto", "dense", "chunked"]

_BLOCK = 256
"""Tokens of one block of queries and of keys in the chunked implementation."""
_LONGEST_DENSE_ROW = _BLOCK
"""Tokens up to which the whole `[T, T]` table of one row is cheaper than a loop over blocks."""
_MASKED = -1e30
"""Logit of a pair that is not visible; finite, so that a wholly masked row has no NaN."""


def attention(
    query: Float[Array, "rows time heads head_dim"],
    key: Float[Array, "rows time kv_heads head_dim"],
    value: Float[Array, "rows time kv_heads head_dim"],
    segment_ids: Int[Array, "rows time"],
    *,
    implementation: AttentionName = "auto",
) -> Float[Array, "rows time heads head_dim"]:
    """Compute softmax(q k^T / sqrt(H)) v inside each segment, causally.

    Args:
        query: rotated queries.
        key: rotated keys; each serves N / K consecutive query heads.
        value: values.
        segment_ids: 0 marks padding.
        implementation: `dense` keeps the table of logits, `chunked` needs memory linear in the row
            and skips blocks that lie in the future or in earlier segments; `auto` chooses by length.
    """
    if implementation == "auto":
        implementation = "dense" if query.shape[1] <= _LONGEST_DENSE_ROW else "chunked"
    rows, time, heads, head_dim = query.shape
    kv_heads = key.shape[2]
    grouped = query.reshape(rows, time, kv_heads, heads // kv_heads, head_dim)
    with jax.named_scope(f"attention_{implementation}"):
        out = _IMPLEMENTATIONS[implementation](grouped, key, value, segment_ids)
    return out.reshape(rows, time, heads, head_dim)


def _visible(query_segments: Array, key_segments: Array, query_index: Array, key_index: Array) -> Array:
    """Return the mask `[B, 1, 1, T, S]`."""
    same = query_segments[:, :, None] == key_segments[:, None, :]
    mask = same & (query_segments[:, :, None] != 0) & (query_index[:, None] >= key_index[None, :])[None]
    return mask[:, None, None]


def _dense(query: Array, key: Array, value: Array, segment_ids: Array) -> Array:
    time = query.shape[1]
    index = jnp.arange(time)
    mask = _visible(segment_ids, segment_ids, index, index)
    scale = query.shape[-1] ** -0.5
    logits = jnp.einsum("btkgh,bskh->bkgts", query, key, preferred_element_type=jnp.float32) * scale
    weights = jax.nn.softmax(jnp.where(mask, logits, _MASKED), axis=-1)
    weights = jnp.where(mask, weights, 0.0).astype(value.dtype)
    out = jnp.einsum("bkgts,bskh->btkgh", weights, value, preferred_element_type=jnp.float32)
    return out.astype(query.dtype)


def _chunked(query: Array, key: Array, value: Array, segment_ids: Array) -> Array:
    time = query.shape[1]
    padding = -time % _BLOCK
    if padding:
        query, key, value = (
            jnp.pad(x, [(0, 0), (0, padding)] + [(0, 0)] * (x.ndim - 2)) for x in (query, key, value)
        )
        segment_ids = jnp.pad(segment_ids, [(0, 0), (0, padding)])
    return _flash(query, key, value, segment_ids)[:, :time]


@jax.custom_vjp
def _flash(query: Array, key: Array, value: Array, segment_ids: Array) -> Array:
    return _flash_forward(query, key, value, segment_ids)[0]


def _block(array: Array, number: Array) -> Array:
    return jax.lax.dynamic_slice_in_dim(array, number * _BLOCK, _BLOCK, axis=1)


def _first_key_block(segment_ids: Array, query_block: Array) -> Array:
    """Return the earliest key block that any query of a block of queries can see, over all rows."""
    segments = _block(segment_ids, query_block)
    index = jnp.arange(segment_ids.shape[1])
    in_block = (segment_ids[:, :, None] == segments[:, None, :]) & (segments != 0)[:, None, :]
    first = jnp.min(jnp.where(jnp.any(in_block, axis=-1), index, query_block * _BLOCK))
    return first // _BLOCK


def _block_logits(query: Array, key: Array, segment_ids: Array, i: Array, j: Array) -> tuple[Array, Array]:
    offsets = jnp.arange(_BLOCK)
    mask = _visible(
        _block(segment_ids, i), _block(segment_ids, j), i * _BLOCK + offsets, j * _BLOCK + offsets
    )
    logits = jnp.einsum("btkgh,bskh->bkgts", query, key, preferred_element_type=jnp.float32)
    return jnp.where(mask, logits * query.shape[-1] ** -0.5, _MASKED), mask


def _flash_forward(query: Array, key: Array, value: Array, segment_ids: Array):
    """Online softmax over key blocks, one block of queries after the other (Milakov, Gimelshein 2018)."""
    rows, time, kv_heads, group, head_dim = query.shape

    def one_query_block(_: None, i: Array):
        q = _block(query, i)

        def add_key_block(j: Array, carry: tuple[Array, Array, Array]):
            best, total, out = carry
            logits, mask = _block_logits(q, _block(key, j), segment_ids, i, j)
            new_best = jnp.maximum(best, logits.max(axis=-1))
            weights = jnp.where(mask, jnp.exp(logits - new_best[..., None]), 0.0)
            shrink = jnp.exp(best - new_best)
            total = total * shrink + weights.sum(axis=-1)
            update = jnp.einsum(
                "bkgts,bskh->bkgth",
                weights.astype(value.dtype),
                _block(value, j),
                preferred_element_type=jnp.float32,
            )
            return new_best, total, out * shrink[..., None] + update

        shape = (rows, kv_heads, group, _BLOCK)
        start = (jnp.full(shape, _MASKED), jnp.zeros(shape), jnp.zeros((*shape, head_dim)))
        best, total, out = jax.lax.fori_loop(_first_key_block(segment_ids, i), i + 1, add_key_block, start)
        safe = jnp.where(total > 0, total, 1.0)
        block_out = jnp.einsum("bkgth->btkgh", out / safe[..., None]).astype(query.dtype)
        return None, (block_out, best + jnp.log(safe))

    _, (out, log_total) = jax.lax.scan(one_query_block, None, jnp.arange(time // _BLOCK))
    out = jnp.moveaxis(out, 0, 1).reshape(query.shape)
    return out, (query, key, value, segment_ids, out, log_total)


def _flash_backward(saved: tuple[Array, ...], cotangent: Array):
    """Recompute each block of weights from the saved log-sums (Dao et al. 2022, alg. 4)."""
    query, key, value, segment_ids, out, log_total = saved
    scale = query.shape[-1] ** -0.5
    float32 = functools.partial(jnp.einsum, preferred_element_type=jnp.float32)
    delta = jnp.sum(cotangent.astype(jnp.float32) * out.astype(jnp.float32), axis=-1)

    def one_query_block(carry: tuple[Array, Array], i: Array):
        q, d_out = _block(query, i), _block(cotangent, i)
        block_delta = jnp.einsum("btkg->bkgt", _block(delta, i))

        def add_key_block(j: Array, carry: tuple[Array, Array, Array]):
            d_query, d_key, d_value = carry
            k, v = _block(key, j), _block(value, j)
            logits, mask = _block_logits(q, k, segment_ids, i, j)
            weights = jnp.where(mask, jnp.exp(logits - log_total[i][..., None]), 0.0)
            d_weights = float32("btkgh,bskh->bkgts", d_out, v)
            d_logits = (weights * (d_weights - block_delta[..., None]) * scale).astype(q.dtype)
            d_query += float32("bkgts,bskh->btkgh", d_logits, k)
            d_key = _add_block(d_key, float32("bkgts,btkgh->bskh", d_logits, q), j)
            d_value = _add_block(d_value, float32("bkgts,btkgh->bskh", weights.astype(q.dtype), d_out), j)
            return d_query, d_key, d_value

        start = (jnp.zeros(q.shape, jnp.float32), *carry)
        d_query, *sums = jax.lax.fori_loop(_first_key_block(segment_ids, i), i + 1, add_key_block, start)
        return tuple(sums), d_query

    zeros = (jnp.zeros(key.shape, jnp.float32), jnp.zeros(value.shape, jnp.float32))
    (d_key, d_value), d_query = jax.lax.scan(one_query_block, zeros, jnp.arange(query.shape[1] // _BLOCK))
    d_query = jnp.moveaxis(d_query, 0, 1).reshape(query.shape)
    return d_query.astype(query.dtype), d_key.astype(key.dtype), d_value.astype(value.dtype), None


def _add_block(array: Array, block: Array, number: Array) -> Array:
    return jax.lax.dynamic_update_slice_in_dim(array, _block(array, number) + block, number * _BLOCK, axis=1)


_flash.defvjp(_flash_forward, _flash_backward)

_IMPLEMENTATIONS: dict[str, Callable[[Array, Array, Array, Array], Array]] = {
    "chunked": _chunked,
    "dense": _dense,
}
