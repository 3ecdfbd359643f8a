"""The decoder with a key-value cache: one program to prefill, one to generate a run of tokens.

Both read the cache and return the new keys and values beside it; `cache.write` stores them. So the
large cache is never carried through a loop and never copied. Layers are unrolled, which lets each
read its own cache array in place.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, DTypeLike, Float, Int, UInt

from toolverse_jax.policy.config import ModelConfig
from toolverse_jax.policy.model import Params, Policy, apply_rope, head_weights, rms_norm, rope_tables
from toolverse_jax.policy.sampling import choose_tokens

_HISTORY_BLOCK = 256
"""Cached tokens that a prefill attends to at once; the cache length is a multiple of it."""
_MASKED = -1e30

Layers = tuple[dict[str, Array], ...]


class Weights(NamedTuple):
    """Parameters as the sampler wants them: unstacked, projections fused, in the compute type."""

    embed: Array
    head: Array
    final_norm: Array
    layers: Layers


class Rows(NamedTuple):
    """The sequences of one decode batch; every array has the batch axis first, and may be NumPy's."""

    token: Int[Array, " batch"]
    """Last token, not yet in the cache."""
    position: Int[Array, " batch"]
    """Its position, which is the number of cached tokens."""
    remaining: Int[Array, " batch"]
    """Tokens that may still be generated; 0 marks an idle row."""
    stop_ids: Int[Array, "batch stops"]
    """Padded with -1."""
    key: UInt[Array, "batch 2"]
    """Words of the PRNG key of the request."""
    temperature: Float[Array, " batch"]
    top_p: Float[Array, " batch"]
    top_k: Int[Array, " batch"]


class Generated(NamedTuple):
    """What one run of decoding steps produced."""

    tokens: Int[Array, "batch steps"]
    logprobs: Float[Array, "batch steps"]
    num_tokens: Int[Array, " batch"]
    """Tokens of the row that are valid."""
    active: Array
    """bool `[batch]`, true where the row can go on."""
    keys: tuple[Array, ...]
    """Per layer `[batch, K, H, steps]`."""
    values: tuple[Array, ...]
    """Per layer `[batch, K, steps, H]`."""


@functools.partial(jax.jit, static_argnames=("policy", "dtype"))
def prepare_weights(policy: Policy, params: Params, dtype: DTypeLike) -> Weights:
    """Unstack the layers and fuse projections that share an input."""
    config = policy.config
    D = config.hidden_size
    cast = functools.partial(jnp.asarray, dtype=dtype)
    layers = []
    for index in range(config.num_layers):
        block = jax.tree.map(lambda leaf: leaf[index], params["layers"])  # noqa: B023
        attention, mlp = block["attention"], block["mlp"]
        parts = [attention[name].reshape(D, -1) for name in ("query", "key", "value")]
        layer = {
            "attention_norm": block["attention_norm"],
            "qkv": jnp.concatenate(parts, axis=1),
            "out": attention["out"].reshape(-1, D),
            "mlp_norm": block["mlp_norm"],
            "gate_up": jnp.concatenate([mlp["gate"], mlp["up"]], axis=1),
            "down": mlp["down"],
        }
        if config.attention_bias:
            biases = [attention[f"{name}_bias"].reshape(-1) for name in ("query", "key", "value")]
            layer["qkv_bias"] = jnp.concatenate(biases)
        for name in ("out_bias", "query_norm", "key_norm"):
            if name in attention:
                layer[name] = attention[name]
        layers.append(jax.tree.map(cast, layer))
    head = cast(head_weights(policy, params).T)
    return Weights(cast(params["embed"]), head, cast(params["final_norm"]), tuple(layers))


def _project(config: ModelConfig, layer: dict[str, Array], x: Array, cos: Array, sin: Array):
    """Return rotated queries `[..., N, H]`, rotated keys and values `[..., K, H]`."""
    N, K, H = config.num_heads, config.num_kv_heads, config.head_dim
    fused = rms_norm(x, layer["attention_norm"], config.rms_norm_eps) @ layer["qkv"]
    if "qkv_bias" in layer:
        fused += layer["qkv_bias"]
    heads = fused.reshape(*fused.shape[:-1], N + 2 * K, H)
    q, k, v = heads[..., :N, :], heads[..., N : N + K, :], heads[..., N + K :, :]
    if config.qk_norm:
        q = rms_norm(q, layer["query_norm"], config.rms_norm_eps)
        k = rms_norm(k, layer["key_norm"], config.rms_norm_eps)
    return apply_rope(q, cos, sin), apply_rope(k, cos, sin), v


def _finish_layer(config: ModelConfig, layer: dict[str, Array], x: Array, heads: Array) -> Array:
    """Add the attention result (heads merged) and the feed-forward network."""
    x = x + heads.astype(x.dtype) @ layer["out"]
    if "out_bias" in layer:
        x = x + layer["out_bias"]
    fused = rms_norm(x, layer["mlp_norm"], config.rms_norm_eps) @ layer["gate_up"]
    gate, up = jnp.split(fused, 2, axis=-1)
    return x + (jax.nn.silu(gate) * up) @ layer["down"]


_dot = functools.partial(jnp.einsum, preferred_element_type=jnp.float32)


@functools.partial(jax.jit, static_argnames=("config", "steps"))
def decode(
    config: ModelConfig,
    weights: Weights,
    keys: tuple[Array, ...],
    values: tuple[Array, ...],
    rows: Rows,
    min_active: int | Array,
    *,
    steps: int,
) -> Generated:
    """Generate up to `steps` tokens for every row; stop once no more than `min_active` rows go on.

    Args:
        config: the architecture.
        weights: prepared weights.
        keys: per layer `[batch, K, H, S]`; only the first `rows.position` columns of a row count.
        values: per layer `[batch, K, S, H]`.
        rows: the sequences.
        min_active: rows that may be left unfinished without another step.
        steps: static bound on steps.
    """
    batch, K, H = rows.token.shape[0], config.num_kv_heads, config.head_dim
    dtype = weights.embed.dtype
    start = Generated(
        tokens=jnp.zeros((batch, steps), jnp.int32),
        logprobs=jnp.zeros((batch, steps), jnp.float32),
        num_tokens=jnp.zeros(batch, jnp.int32),
        active=rows.remaining > 0,
        keys=tuple(jnp.zeros((batch, K, H, steps), dtype) for _ in weights.layers),
        values=tuple(jnp.zeros((batch, K, steps, H), dtype) for _ in weights.layers),
    )

    def go_on(carry: tuple[Array, Array, Generated]) -> Array:
        step, _, done = carry
        return (step < steps) & (done.active.sum() > min_active)

    def one_step(carry: tuple[Array, Array, Generated]):
        step, token, done = carry
        logits, new_keys, new_values = _decode_step(
            config, weights, keys, values, done.keys, done.values, rows.position, token, step
        )
        token, logprob = choose_tokens(
            logits, rows.key, rows.position + step, rows.temperature, rows.top_p, rows.top_k
        )
        stopped = jnp.any(token[:, None] == rows.stop_ids, axis=-1)
        num_tokens = done.num_tokens + done.active
        return (
            step + 1,
            token,
            Generated(
                tokens=jax.lax.dynamic_update_slice_in_dim(done.tokens, token[:, None], step, axis=1),
                logprobs=jax.lax.dynamic_update_slice_in_dim(done.logprobs, logprob[:, None], step, axis=1),
                num_tokens=num_tokens,
                active=done.active & ~stopped & (num_tokens < rows.remaining),
                keys=new_keys,
                values=new_values,
            ),
        )

    return jax.lax.while_loop(go_on, one_step, (jnp.int32(0), rows.token, start))[2]


def _decode_step(
    config: ModelConfig,
    weights: Weights,
    keys: tuple[Array, ...],
    values: tuple[Array, ...],
    new_keys: tuple[Array, ...],
    new_values: tuple[Array, ...],
    position: Array,
    token: Array,
    step: Array,
) -> tuple[Array, tuple[Array, ...], tuple[Array, ...]]:
    """Return the logits `[batch, V]` after `token`, and the new keys and values with it appended."""
    K = config.num_kv_heads
    batch = token.shape[0]
    cos, sin = rope_tables(position + step, config.head_dim, config.rope_theta)
    cached = (jnp.arange(keys[0].shape[-1]) < position[:, None])[:, None, None]
    fresh = (jnp.arange(new_keys[0].shape[-1]) <= step)[None, None, None]
    x = weights.embed[token]
    out_keys, out_values = [], []
    for layer, key, value, new_key, new_value in zip(
        weights.layers, keys, values, new_keys, new_values, strict=True
    ):
        q, k, v = _project(config, layer, x, cos, sin)
        new_key = jax.lax.dynamic_update_slice_in_dim(new_key, k[..., None], step, axis=3)
        new_value = jax.lax.dynamic_update_slice_in_dim(new_value, v[:, :, None], step, axis=2)
        out_keys.append(new_key)
        out_values.append(new_value)
        q = q.reshape(batch, K, -1, config.head_dim)
        old = _dot("bkgh,bkhs->bkgs", q, key) * config.head_dim**-0.5
        new = _dot("bkgh,bkhs->bkgs", q, new_key) * config.head_dim**-0.5
        # Two softmaxes with a common maximum, so that old and new logits are never concatenated.
        old, new = jnp.where(cached, old, _MASKED), jnp.where(fresh, new, _MASKED)
        best = jnp.maximum(old.max(axis=-1), new.max(axis=-1))[..., None]
        old, new = jnp.exp(old - best), jnp.exp(new - best)
        total = (old.sum(axis=-1) + new.sum(axis=-1))[..., None]
        mixed = _dot("bkgs,bksh->bkgh", old.astype(value.dtype), value)
        mixed += _dot("bkgs,bksh->bkgh", new.astype(value.dtype), new_value)
        x = _finish_layer(config, layer, x, (mixed / total).reshape(batch, -1))
    x = rms_norm(x, weights.final_norm, config.rms_norm_eps)
    return _dot("bd,dv->bv", x, weights.head), tuple(out_keys), tuple(out_values)


@functools.partial(jax.jit, static_argnames=("config",))
def prefill(
    config: ModelConfig,
    weights: Weights,
    keys: tuple[Array, ...],
    values: tuple[Array, ...],
    start: Int[Array, " batch"],
    tokens: Int[Array, "batch time"],
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Return the keys and values of new tokens that follow the cached ones.

    Args:
        config: the architecture.
        weights: prepared weights.
        keys: per layer `[batch, K, H, S]`, cached keys of the rows.
        values: per layer `[batch, K, S, H]`.
        start: cached tokens of each row that count.
        tokens: new tokens, right-padded.

    Returns:
        Per layer keys `[batch, K, H, T]` and values `[batch, K, T, H]`; columns of padding are junk.
    """
    batch, time = tokens.shape
    K, H = config.num_kv_heads, config.head_dim
    cos, sin = rope_tables(start[:, None] + jnp.arange(time), H, config.rope_theta)
    x = weights.embed[tokens]
    out_keys, out_values = [], []
    for number, (layer, cached_key, cached_value) in enumerate(
        zip(weights.layers, keys, values, strict=True)
    ):
        q, k, v = _project(config, layer, x, cos, sin)
        k, v = jnp.einsum("btkh->bkht", k), jnp.einsum("btkh->bkth", v)
        out_keys.append(k)
        out_values.append(v)
        if number + 1 == config.num_layers:
            break  # only keys and values are wanted, and the last layer's do not depend on its attention
        q = jnp.einsum("btkgh->bkgth", q.reshape(batch, time, K, -1, H))
        mixed = _prefill_attention(q, k, v, cached_key, cached_value, start)
        x = _finish_layer(config, layer, x, jnp.einsum("bkgth->btkgh", mixed).reshape(batch, time, -1))
    return tuple(out_keys), tuple(out_values)


def _prefill_attention(
    q: Array, k: Array, v: Array, cached_key: Array, cached_value: Array, start: Array
) -> Array:
    """Attend causally among the new tokens, then to the cached ones block by block (online softmax)."""
    time, scale = q.shape[3], q.shape[-1] ** -0.5
    index = jnp.arange(time)
    logits = _dot("bkgth,bkhs->bkgts", q, k) * scale
    logits = jnp.where(index[:, None] >= index, logits, _MASKED)
    best = logits.max(axis=-1)
    weight = jnp.exp(logits - best[..., None])
    out = _dot("bkgts,bksh->bkgth", weight.astype(v.dtype), v)

    def add_block(number: Array, carry: tuple[Array, Array, Array]):
        best, total, out = carry
        first = number * _HISTORY_BLOCK
        key = jax.lax.dynamic_slice_in_dim(cached_key, first, _HISTORY_BLOCK, axis=3)
        value = jax.lax.dynamic_slice_in_dim(cached_value, first, _HISTORY_BLOCK, axis=2)
        visible = (first + jnp.arange(_HISTORY_BLOCK) < start[:, None])[:, None, None, None]
        logits = jnp.where(visible, _dot("bkgth,bkhs->bkgts", q, key) * scale, _MASKED)
        new_best = jnp.maximum(best, logits.max(axis=-1))
        weight = jnp.exp(logits - new_best[..., None])
        shrink = jnp.exp(best - new_best)
        update = _dot("bkgts,bksh->bkgth", weight.astype(value.dtype), value)
        return new_best, total * shrink + weight.sum(axis=-1), out * shrink[..., None] + update

    blocks = (jnp.max(start) + _HISTORY_BLOCK - 1) // _HISTORY_BLOCK
    _, total, out = jax.lax.fori_loop(0, blocks, add_block, (best, weight.sum(axis=-1), out))
    return out / total[..., None]
