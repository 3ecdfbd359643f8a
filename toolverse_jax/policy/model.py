"""The Qwen2 / Qwen3 decoder as a Flax NNX module with stacked layers, and its functional face.

The module is built once; `Policy` keeps its graph definition, and every function takes the
parameters explicitly as a nested dictionary of arrays, so plain `jax.jit` and `jax.grad` apply.
Parameters of all layers are stacked on a leading axis L and run by one `lax.scan`. Master parameters
are float32; activations have the compute type of the call; norms and softmax are float32.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, DTypeLike, Float, Int

from toolverse_jax.policy.attention import AttentionName, attention
from toolverse_jax.policy.config import ModelConfig
from toolverse_jax.policy.sharding import constrain_activations

Params = dict[str, Any]
"""Nested dictionary of arrays; `layers/...` leaves have a leading axis L."""

RematName = Literal["none", "full", "dots"]

_REMAT: dict[str, Any] = {
    "full": jax.checkpoint_policies.nothing_saveable,
    "dots": jax.checkpoint_policies.dots_with_no_batch_dims_saveable,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Policy:
    """A policy network: what is static about it, and the parameters it was loaded with.

    Equality and hash ignore `params`; the functions of this package never read them and take the
    parameters as an argument of their own.
    """

    config: ModelConfig
    graphdef: Any
    """NNX graph definition of `Qwen`."""
    params: Params = dataclasses.field(compare=False, repr=False, default_factory=dict)

    @classmethod
    def from_config(cls, config: ModelConfig, params: Params | None = None) -> Policy:
        """Return the policy of an architecture, without allocating parameters."""
        graphdef, _ = nnx.split(nnx.eval_shape(lambda: Qwen(config, nnx.Rngs(0))))
        return cls(config=config, graphdef=graphdef, params={} if params is None else params)


def rms_norm(x: Array, weight: Array, eps: float) -> Array:
    """Scale to unit mean square over the last axis, in float32, then by `weight`."""
    wide = x.astype(jnp.float32)
    wide = wide * jax.lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + eps)
    # Cast before the weight as the original does; it matters for bfloat16.
    return wide.astype(x.dtype) * weight.astype(x.dtype)


def rope_tables(positions: Array, head_dim: int, theta: float) -> tuple[Array, Array]:
    """Return cosine and sine, float32 `positions.shape + [head_dim / 2]`."""
    frequencies = theta ** (-jnp.arange(0, head_dim, 2, dtype=jnp.float32) / head_dim)
    angles = positions[..., None].astype(jnp.float32) * frequencies
    return jnp.cos(angles), jnp.sin(angles)


def apply_rope(x: Array, cos: Array, sin: Array) -> Array:
    """Rotate heads `[..., heads, H]` by the tables `[..., H / 2]`; first half pairs with second half."""
    first, second = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    cos, sin = cos[..., None, :], sin[..., None, :]
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1).astype(x.dtype)


class Attention(nnx.Module):
    """Grouped-query attention with rotary positions, for all layers at once."""

    def __init__(self, config: ModelConfig, rngs: nnx.Rngs):
        self.config = config
        L, D, H = config.num_layers, config.hidden_size, config.head_dim
        N, K = config.num_heads, config.num_kv_heads
        self.query = _normal(config, rngs, (L, D, N, H))
        self.key = _normal(config, rngs, (L, D, K, H))
        self.value = _normal(config, rngs, (L, D, K, H))
        self.out = _normal(config, rngs, (L, N, H, D))
        if config.attention_bias:
            self.query_bias = nnx.Param(jnp.zeros((L, N, H)))
            self.key_bias = nnx.Param(jnp.zeros((L, K, H)))
            self.value_bias = nnx.Param(jnp.zeros((L, K, H)))
        if config.attention_output_bias:
            self.out_bias = nnx.Param(jnp.zeros((L, D)))
        if config.qk_norm:
            self.query_norm = nnx.Param(jnp.ones((L, H)))
            self.key_norm = nnx.Param(jnp.ones((L, H)))

    def project(self, x: Array, cos: Array, sin: Array) -> tuple[Array, Array, Array]:
        """Return rotated queries, rotated keys and values of activations `[B, T, D]`."""
        config, dtype = self.config, x.dtype
        q = jnp.einsum("btd,dnh->btnh", x, self.query[...].astype(dtype))
        k = jnp.einsum("btd,dkh->btkh", x, self.key[...].astype(dtype))
        v = jnp.einsum("btd,dkh->btkh", x, self.value[...].astype(dtype))
        if config.attention_bias:
            q += self.query_bias[...].astype(dtype)
            k += self.key_bias[...].astype(dtype)
            v += self.value_bias[...].astype(dtype)
        if config.qk_norm:
            q = rms_norm(q, self.query_norm[...], config.rms_norm_eps)
            k = rms_norm(k, self.key_norm[...], config.rms_norm_eps)
        return apply_rope(q, cos, sin), apply_rope(k, cos, sin), v

    def merge(self, heads: Array) -> Array:
        """Project attention results `[B, T, N, H]` back to `[B, T, D]`."""
        out = jnp.einsum("btnh,nhd->btd", heads, self.out[...].astype(heads.dtype))
        return out + self.out_bias[...].astype(heads.dtype) if self.config.attention_output_bias else out


class Mlp(nnx.Module):
    """Gated feed-forward network, silu(x gate) * (x up) down, for all layers at once."""

    def __init__(self, config: ModelConfig, rngs: nnx.Rngs):
        L, D, F = config.num_layers, config.hidden_size, config.intermediate_size
        self.gate = _normal(config, rngs, (L, D, F))
        self.up = _normal(config, rngs, (L, D, F))
        self.down = _normal(config, rngs, (L, F, D))

    def __call__(self, x: Array) -> Array:
        gate = jnp.einsum("btd,df->btf", x, self.gate[...].astype(x.dtype))
        up = jnp.einsum("btd,df->btf", x, self.up[...].astype(x.dtype))
        return jnp.einsum("btf,fd->btd", jax.nn.silu(gate) * up, self.down[...].astype(x.dtype))


class Block(nnx.Module):
    """All decoder layers, stacked; called on one layer's slice inside the scan."""

    def __init__(self, config: ModelConfig, rngs: nnx.Rngs):
        self.config = config
        self.attention_norm = nnx.Param(jnp.ones((config.num_layers, config.hidden_size)))
        self.attention = Attention(config, rngs)
        self.mlp_norm = nnx.Param(jnp.ones((config.num_layers, config.hidden_size)))
        self.mlp = Mlp(config, rngs)

    def __call__(self, x: Array, cos: Array, sin: Array, segment_ids: Array, name: AttentionName) -> Array:
        eps = self.config.rms_norm_eps
        q, k, v = self.attention.project(rms_norm(x, self.attention_norm[...], eps), cos, sin)
        x = x + self.attention.merge(attention(q, k, v, segment_ids, implementation=name))
        x = x + self.mlp(rms_norm(x, self.mlp_norm[...], eps))
        return constrain_activations(x)


class Qwen(nnx.Module):
    """Embedding, stacked decoder layers, final norm and (where untied) output head."""

    def __init__(self, config: ModelConfig, rngs: nnx.Rngs):
        self.config = config
        self.embed = _normal(config, rngs, (config.vocab_size, config.hidden_size))
        self.layers = Block(config, rngs)
        self.final_norm = nnx.Param(jnp.ones((config.hidden_size,)))
        if not config.tie_word_embeddings:
            self.head = _normal(config, rngs, (config.vocab_size, config.hidden_size))

    def __call__(
        self,
        tokens: Array,
        segment_ids: Array,
        positions: Array,
        *,
        dtype: DTypeLike,
        remat: RematName,
        attention: AttentionName,
    ) -> Array:
        """Return the normed hidden states `[B, T, D]`."""
        cos, sin = rope_tables(positions, self.config.head_dim, self.config.rope_theta)
        block_def, block_params = nnx.split(self.layers)

        def layer(x: Array, params: Any) -> tuple[Array, None]:
            return nnx.merge(block_def, params)(x, cos, sin, segment_ids, attention), None

        if remat != "none":
            layer = jax.checkpoint(layer, policy=_REMAT[remat], prevent_cse=False)
        x = constrain_activations(self.embed[...][tokens].astype(dtype))
        x, _ = jax.lax.scan(layer, x, block_params)
        return rms_norm(x, self.final_norm[...], self.config.rms_norm_eps)


def _normal(config: ModelConfig, rngs: nnx.Rngs, shape: tuple[int, ...]) -> nnx.Param:
    return nnx.Param(jax.random.normal(rngs.params(), shape, jnp.float32) * config.initializer_range)


def init_policy(config: ModelConfig, key: Array) -> Policy:
    """Return a policy with random float32 parameters (normal, std `initializer_range`).

    Under `jax.jit` with `out_shardings` on the parameters, no device ever holds the whole.
    """
    graphdef, state = nnx.split(Qwen(config, nnx.Rngs(key)))
    return Policy(config=config, graphdef=graphdef, params=nnx.to_pure_dict(state))


def abstract_params(config: ModelConfig) -> Params:
    """Return the shapes and types of the parameters, as `jax.ShapeDtypeStruct` leaves."""
    return nnx.to_pure_dict(nnx.state(nnx.eval_shape(lambda: Qwen(config, nnx.Rngs(0)))))


def hidden_states(
    policy: Policy,
    params: Params,
    tokens: Int[Array, "rows time"],
    segment_ids: Int[Array, "rows time"],
    positions: Int[Array, "rows time"],
    *,
    dtype: DTypeLike = jnp.float32,
    remat: RematName = "none",
    attention: AttentionName = "auto",
) -> Float[Array, "rows time dim"]:
    """Run the decoder over packed rows, causally inside each segment.

    Args:
        policy: the network; its own `params` are not read.
        params: float32 master parameters.
        tokens: token ids, any valid id on padding.
        segment_ids: 1-based inside a row, 0 on padding.
        positions: position inside the segment.
        dtype: compute type of activations.
        remat: what the backward pass recomputes: `none` keeps all, `dots` keeps matrix products,
            `full` keeps only the input of each layer.
        attention: implementation, see `attention.attention`.

    Returns:
        Hidden states after the final norm, in the compute type; index i predicts token i + 1.
    """
    model = nnx.merge(policy.graphdef, params)
    return model(tokens, segment_ids, positions, dtype=dtype, remat=remat, attention=attention)


def head_weights(policy: Policy, params: Params) -> Float[Array, "vocab dim"]:
    """Return the output head; for a tied policy this is the embedding table."""
    return params["embed"] if policy.config.tie_word_embeddings else params["head"]
