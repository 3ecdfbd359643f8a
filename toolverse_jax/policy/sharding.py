"""How parameters and activations lie on the device mesh: a table of rules, and nothing implicit.

Mesh axes: `data` (replicas), `fsdp` (parameters and batch), `tensor` (heads, feed-forward,
vocabulary), `context` (positions in a row).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from toolverse_jax.config import MeshConfig
from toolverse_jax.errors import ConfigError

MESH_AXES = ("data", "fsdp", "tensor", "context")

LOGICAL_AXES: dict[str, str | tuple[str, ...] | None] = {
    "batch": ("data", "fsdp"),
    "embed": "fsdp",
    "head_dim": None,
    "heads": "tensor",
    "kv_heads": "tensor",
    "layers": None,
    "mlp": "tensor",
    "norm": None,
    "sequence": "context",
    "vocab": "tensor",
}
"""Mesh axes of each logical axis."""

PARTITION_RULES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"embed", ("vocab", "embed")),
    (r"head", ("vocab", "embed")),
    (r"final_norm", ("norm",)),
    (r"layers/(attention|mlp)_norm", ("layers", "norm")),
    (r"layers/attention/query", ("layers", "embed", "heads", "head_dim")),
    (r"layers/attention/(key|value)", ("layers", "embed", "kv_heads", "head_dim")),
    (r"layers/attention/out", ("layers", "heads", "head_dim", "embed")),
    (r"layers/attention/query_bias", ("layers", "heads", "head_dim")),
    (r"layers/attention/(key|value)_bias", ("layers", "kv_heads", "head_dim")),
    (r"layers/attention/out_bias", ("layers", "norm")),
    (r"layers/attention/(query|key)_norm", ("layers", "norm")),
    (r"layers/mlp/(gate|up)", ("layers", "embed", "mlp")),
    (r"layers/mlp/down", ("layers", "mlp", "embed")),
)
"""Logical axes by parameter path; a pattern matches the whole path."""


def make_mesh(config: MeshConfig, devices: Sequence[Any] | None = None) -> Mesh:
    """Return the mesh of a run, with automatic axes.

    Raises:
        ConfigError: the sizes do not multiply to the number of devices, or more than one is -1.
    """
    devices = jax.devices() if devices is None else list(devices)
    sizes = [getattr(config, axis) for axis in MESH_AXES]
    described = ", ".join(f"{axis}={size}" for axis, size in zip(MESH_AXES, sizes, strict=True))
    if sizes.count(-1) > 1 or any(size < 1 and size != -1 for size in sizes):
        raise ConfigError(f"mesh sizes must be >= 1, one of them may be -1; got {described}")
    known = math.prod(size for size in sizes if size != -1)
    if -1 in sizes:
        sizes[sizes.index(-1)] = len(devices) // known
    if math.prod(sizes) != len(devices):
        raise ConfigError(f"mesh ({described}) does not fit {len(devices)} devices; change the mesh section")
    return jax.make_mesh(
        tuple(sizes), MESH_AXES, axis_types=(AxisType.Auto,) * len(MESH_AXES), devices=devices
    )


def param_specs(params: Any, mesh: Mesh | None = None) -> Any:
    """Return the PartitionSpec of every parameter, in the structure of `params`.

    With a mesh, an axis whose size the mesh does not divide (say, 2 key-value heads over 4 tensor
    shards) is replicated.

    Raises:
        ValueError: a parameter matches no rule, or its rank is not the rule's.
    """
    return jax.tree_util.tree_map_with_path(
        lambda path, leaf: _spec(_path_name(path), leaf.shape, mesh), params
    )


def param_shardings(params: Any, mesh: Mesh) -> Any:
    """Return the NamedSharding of every parameter; `params` may be `jax.ShapeDtypeStruct` leaves."""
    is_spec = lambda x: isinstance(x, PartitionSpec)  # noqa: E731
    return jax.tree.map(lambda spec: NamedSharding(mesh, spec), param_specs(params, mesh), is_leaf=is_spec)


def batch_sharding(mesh: Mesh) -> NamedSharding:
    """Return the sharding of packed `[rows, length]` arrays."""
    return NamedSharding(mesh, PartitionSpec(LOGICAL_AXES["batch"], LOGICAL_AXES["sequence"]))


def constrain_activations(x: jax.Array) -> jax.Array:
    """Keep activations `[rows, time, dim]` split by rows and time where a mesh is set, else do nothing.

    Without this the partitioner may follow the parameters and split the model dimension instead.
    """
    mesh = jax.sharding.get_abstract_mesh()
    if mesh.empty or not set(MESH_AXES) <= set(mesh.axis_names):
        return x
    spec = PartitionSpec(LOGICAL_AXES["batch"], LOGICAL_AXES["sequence"], None)
    return jax.lax.with_sharding_constraint(x, spec)


def _path_name(path: tuple[Any, ...]) -> str:
    return "/".join(str(getattr(part, "key", getattr(part, "name", part))) for part in path)


def _spec(name: str, shape: tuple[int, ...], mesh: Mesh | None) -> PartitionSpec:
    axes = next((axes for pattern, axes in PARTITION_RULES if re.fullmatch(pattern, name)), None)
    if axes is None:
        raise ValueError(f"parameter {name} matches no rule; add it to PARTITION_RULES")
    if len(axes) != len(shape):
        raise ValueError(f"parameter {name} has shape {shape} but its rule names {len(axes)} axes: {axes}")
    return PartitionSpec(*(_mesh_axis(axis, size, mesh) for axis, size in zip(axes, shape, strict=True)))


def _mesh_axis(axis: str, size: int, mesh: Mesh | None) -> str | tuple[str, ...] | None:
    target = LOGICAL_AXES[axis]
    if target is None or mesh is None:
        return target
    names = (target,) if isinstance(target, str) else target
    shards = int(np.prod([mesh.shape[name] for name in names]))
    return target if size % shards == 0 else None
