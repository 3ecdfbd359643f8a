"""The table between our parameter names and Hugging Face's, one to one in both directions.

A stacked parameter of ours corresponds to one tensor per layer. A Hugging Face matrix is
`[outputs, inputs]` with heads merged into one axis; ours is `[inputs, outputs]` with heads apart.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from toolverse_jax.policy.config import ModelConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class TensorMap:
    """How one parameter of ours lies in a checkpoint."""

    path: str
    """Our name, such as `layers/attention/query`."""
    template: str
    """Their name; `{layer}` where the parameter is stacked."""
    split: tuple[int, ...]
    """Their shape (one layer) with merged axes apart."""
    shape: tuple[int, ...]
    """Their shape (one layer) on disk."""
    order: tuple[int, ...]
    """Transposition from `split` to our axes (one layer)."""
    layers: int
    """Number of layers, 0 where the parameter is not stacked."""

    @property
    def names(self) -> tuple[str, ...]:
        """Their tensor names, in the order of layers."""
        if not self.layers:
            return (self.template,)
        return tuple(self.template.format(layer=layer) for layer in range(self.layers))

    @property
    def our_shape(self) -> tuple[int, ...]:
        one = tuple(self.split[axis] for axis in self.order)
        return (self.layers, *one) if self.layers else one

    def to_ours(self, tensor: np.ndarray) -> np.ndarray:
        """Rearrange one of their tensors into one layer of ours."""
        return tensor.reshape(self.split).transpose(self.order)

    def to_theirs(self, array: np.ndarray) -> np.ndarray:
        """Rearrange one layer of ours into their tensor, contiguous."""
        return np.ascontiguousarray(array.transpose(np.argsort(self.order)).reshape(self.shape))

    def read(self, source: Any, index: tuple[slice, ...]) -> np.ndarray:
        """Read the part `index` (our axes, one layer) from a sliceable tensor of theirs.

        Only the first axis on disk is sliced there, so that a shard reads its own rows.
        """
        index = tuple(slice(*part.indices(size)) for part, size in zip(index, self._one_layer, strict=True))
        theirs = [index[self.order.index(axis)] for axis in range(len(self.split))]
        merged = math.prod(self.split) // math.prod(self.shape[1:]) // self.split[0]
        rows = slice(theirs[0].start * merged, theirs[0].stop * merged)
        part = source[rows].reshape(theirs[0].stop - theirs[0].start, *self.split[1:])
        return part[(slice(None), *theirs[1:])].transpose(self.order)

    @property
    def _one_layer(self) -> tuple[int, ...]:
        return tuple(self.split[axis] for axis in self.order)


def tensor_table(config: ModelConfig) -> tuple[TensorMap, ...]:
    """Return the maps of all parameters of an architecture, sorted by our name."""
    D, F, H = config.hidden_size, config.intermediate_size, config.head_dim
    N, K, V = config.num_heads, config.num_kv_heads, config.vocab_size
    layer = "model.layers.{layer}."
    table: list[TensorMap] = []

    def add(path: str, template: str, split: tuple[int, ...], *, shape=None, order=None) -> None:
        order = tuple(range(len(split))) if order is None else order
        layers = config.num_layers if "{layer}" in template else 0
        table.append(
            TensorMap(
                path=path, template=template, split=split, shape=shape or split, order=order, layers=layers
            )
        )

    add("embed", "model.embed_tokens.weight", (V, D))
    add("final_norm", "model.norm.weight", (D,))
    if not config.tie_word_embeddings:
        add("head", "lm_head.weight", (V, D))
    add("layers/attention_norm", layer + "input_layernorm.weight", (D,))
    add("layers/mlp_norm", layer + "post_attention_layernorm.weight", (D,))
    for ours, theirs, heads in (("query", "q", N), ("key", "k", K), ("value", "v", K)):
        name = f"{layer}self_attn.{theirs}_proj"
        add(
            f"layers/attention/{ours}", f"{name}.weight", (heads, H, D), shape=(heads * H, D), order=(2, 0, 1)
        )
        if config.attention_bias:
            add(f"layers/attention/{ours}_bias", f"{name}.bias", (heads, H), shape=(heads * H,))
        if config.qk_norm and ours != "value":
            add(f"layers/attention/{ours}_norm", f"{layer}self_attn.{theirs}_norm.weight", (H,))
    out = f"{layer}self_attn.o_proj"
    add("layers/attention/out", f"{out}.weight", (D, N, H), shape=(D, N * H), order=(1, 2, 0))
    if config.attention_output_bias:
        add("layers/attention/out_bias", f"{out}.bias", (D,))
    add("layers/mlp/gate", layer + "mlp.gate_proj.weight", (F, D), order=(1, 0))
    add("layers/mlp/up", layer + "mlp.up_proj.weight", (F, D), order=(1, 0))
    add("layers/mlp/down", layer + "mlp.down_proj.weight", (D, F), order=(1, 0))
    return tuple(sorted(table, key=lambda entry: entry.path))


def flatten(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested parameters by path, such as `layers/mlp/up`."""
    flat: dict[str, Any] = {}
    for key, value in params.items():
        if isinstance(value, Mapping):
            flat.update({f"{key}/{rest}": leaf for rest, leaf in flatten(value).items()})
        else:
            flat[key] = value
    return flat


def unflatten(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Return the nested form of parameters by path."""
    nested: dict[str, Any] = {}
    for path, leaf in flat.items():
        *parents, name = path.split("/")
        node = nested
        for parent in parents:
            node = node.setdefault(parent, {})
        node[name] = leaf
    return nested
