"""TrainState: everything an update changes, as one tree of arrays that lies on the mesh."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from toolverse_jax.policy import Params, param_shardings


class TrainState(NamedTuple):
    """The parameters and what the optimizer remembers about them."""

    params: Params
    """float32 master parameters."""
    opt_state: optax.OptState
    update: jax.Array
    """int32 scalar, optimizer updates so far."""


def init_state(params: Params, optimizer: optax.GradientTransformation, mesh: Mesh) -> TrainState:
    """Place parameters on the mesh and start the optimizer; the caller's arrays are not kept."""
    shardings = state_shardings(params, optimizer, mesh)
    # Copies, since the update donates its state and would otherwise delete the caller's arrays.
    placed = jax.tree.map(
        lambda p, s: jax.device_put(jnp.array(p, jnp.float32, copy=True), s), params, shardings.params
    )
    opt_state = jax.jit(optimizer.init, out_shardings=shardings.opt_state)(placed)
    return TrainState(placed, opt_state, jax.device_put(jnp.zeros((), jnp.int32), shardings.update))


def state_shardings(params: Params, optimizer: optax.GradientTransformation, mesh: Mesh) -> TrainState:
    """Return the sharding of every leaf of the state; moments lie like their parameters."""
    replicated = NamedSharding(mesh, PartitionSpec())
    by_param = param_shardings(params, mesh)
    shapes = jax.eval_shape(optimizer.init, jax.tree.map(_shape, params))
    opt_state: Any = optax.tree_map_params(
        optimizer, lambda _, s: s, shapes, by_param, transform_non_params=lambda _: replicated
    )
    return TrainState(by_param, opt_state, replicated)  # type: ignore[arg-type]


def abstract_state(params: Params, optimizer: optax.GradientTransformation, mesh: Mesh) -> TrainState:
    """Return shapes, types and shardings of the state, for restoring a checkpoint."""
    shapes = jax.tree.map(_shape, params)
    tree = TrainState(shapes, jax.eval_shape(optimizer.init, shapes), jax.ShapeDtypeStruct((), jnp.int32))  # type: ignore[arg-type]
    return jax.tree.map(
        lambda leaf, sharding: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding),
        tree,
        state_shardings(params, optimizer, mesh),
    )


def _shape(leaf: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(leaf.shape, jnp.float32)
