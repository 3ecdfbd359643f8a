"""The jitted training step: accumulate gradients of micro-batches, then apply them once.

Shapes are static (rows of a micro-batch, row length); the number of micro-batches is a loop on the
host, so it never recompiles. Losses are sums; `apply` divides by the global denominator, so the
result does not depend on packing, micro-batching or mesh.
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float

from toolverse_jax.policy import Params, Policy, batch_sharding, hidden_states, param_shardings
from toolverse_jax.policy.attention import AttentionName
from toolverse_jax.policy.model import RematName
from toolverse_jax.rl import cross_entropy, policy_loss
from toolverse_jax.train.loss_tokens import loss_tokens_first, moved_logprobs
from toolverse_jax.train.state import TrainState, state_shardings
from toolverse_jax.types import PackedBatch

Batch = dict[str, jax.Array]
"""Arrays of a PackedBatch by field name, `[rows, length]`."""
Metrics = dict[str, jax.Array]

_LONGEST_DENSE_ROW_ON_CPU = 512
Objective = Callable[[Array, Batch], tuple[Array, Metrics]]
"""From logprobs and batch fields at loss tokens to the loss sum and sums of metrics."""


def policy_objective(
    *, clip_low: float, clip_high: float, importance_sampling_cap: float, on_policy: bool = False
) -> Objective:
    """Return the clipped policy-gradient loss of `rl.policy_loss`.

    Args:
        clip_low: lower clipping distance.
        clip_high: upper clipping distance.
        importance_sampling_cap: bound of the sampler-to-trainer weight; 0: no correction.
        on_policy: take the current logprobs as the old ones, right for the first update of a batch,
            which saves a forward pass.
    """

    def objective(logprobs: Array, batch: Batch) -> tuple[Array, Metrics]:
        old = jax.lax.stop_gradient(logprobs) if on_policy else batch["old_logprobs"]
        return policy_loss(
            logprobs,
            old,
            batch["sampler_logprobs"],
            batch["advantages"],
            batch["loss_mask"],
            clip_low=clip_low,
            clip_high=clip_high,
            importance_sampling_cap=importance_sampling_cap,
        )

    return objective


def supervised_objective(logprobs: Array, batch: Batch) -> tuple[Array, Metrics]:
    """Weighted next-token cross-entropy; the weights are the batch's `advantages`."""
    return cross_entropy(logprobs, batch["advantages"], batch["loss_mask"])


class TrainStep:
    """Compiled functions of one training run.

    `traces` counts how often each function was traced; after warm-up the counts stand still.
    """

    def __init__(
        self,
        policy: Policy,
        params: Params,
        optimizer: optax.GradientTransformation,
        objective: Objective,
        mesh: Mesh,
        *,
        temperature: float = 1.0,
        compute_dtype: str = "float32",
        remat: RematName = "none",
    ):
        """Prepare the functions; nothing compiles before the first call.

        Args:
            policy: the network.
            params: parameters or their shapes.
            optimizer: from `make_optimizer`.
            objective: loss of a micro-batch.
            mesh: device mesh; rows are split over its data and fsdp axes.
            temperature: sampling temperature at which logprobs are compared.
            compute_dtype: type of activations.
            remat: what the backward pass recomputes.
        """
        self.mesh = mesh
        self.traces: collections.Counter[str] = collections.Counter()
        self._policy, self._objective, self._optimizer = policy, objective, optimizer
        self._temperature = temperature
        self._hidden = functools.partial(hidden_states, policy, dtype=jnp.dtype(compute_dtype), remat=remat)
        self._rows = batch_sharding(mesh)
        everywhere = NamedSharding(mesh, PartitionSpec())
        params_on = param_shardings(params, mesh)
        state_on = state_shardings(params, optimizer, mesh)
        self._zeros = jax.jit(self._trace_zeros, out_shardings=params_on)
        self._accumulate = jax.jit(
            self._trace_accumulate, donate_argnums=1, out_shardings=(params_on, everywhere)
        )
        self._apply = jax.jit(self._trace_apply, donate_argnums=0, out_shardings=(state_on, everywhere))
        self._logprobs = jax.jit(self._trace_logprobs, out_shardings=self._rows)

    @property
    def row_shards(self) -> int:
        """Number of shards that rows are split over; a micro-batch is a multiple of it."""
        return self.mesh.shape["data"] * self.mesh.shape["fsdp"]

    def zeros(self, params: Params) -> Params:
        """Return zero gradients to accumulate into."""
        with jax.set_mesh(self.mesh):
            return self._zeros(params)

    def accumulate(self, params: Params, gradients: Params, batch: PackedBatch) -> tuple[Params, Metrics]:
        """Add the gradients of one micro-batch; `gradients` is consumed.

        Returns:
            The gradient sums, and sums of the metrics over this micro-batch's loss tokens.
        """
        with jax.set_mesh(self.mesh):
            return self._accumulate(params, gradients, self._place(batch))

    def apply(self, state: TrainState, gradients: Params, denominator: float) -> tuple[TrainState, Metrics]:
        """Divide the gradients by the denominator and update; `state` is consumed.

        Args:
            state: current state.
            gradients: sums over all micro-batches.
            denominator: global number, or weight, of loss tokens; must be > 0.

        Returns:
            The new state, and the norms of the gradient (before clipping) and of the update.

        Raises:
            ValueError: the denominator is not positive; skip the update instead.
        """
        if not denominator > 0:
            raise ValueError(f"the denominator of an update must be > 0, got {denominator}")
        with jax.set_mesh(self.mesh):
            return self._apply(state, gradients, np.float32(denominator))

    def logprobs(self, params: Params, batch: PackedBatch) -> Float[Array, "rows length"]:
        """Return logprobs of the loss tokens in the packed layout; 0 elsewhere."""
        with jax.set_mesh(self.mesh):
            return self._logprobs(params, self._place(batch))

    def _place(self, batch: PackedBatch) -> Batch:
        return {name: jax.device_put(array, self._rows) for name, array in batch.arrays().items()}

    def _trace_zeros(self, params: Params) -> Params:
        return jax.tree.map(lambda p: jnp.zeros(p.shape, jnp.float32), params)

    def _trace_accumulate(self, params: Params, gradients: Params, batch: Batch) -> tuple[Params, Metrics]:
        self.traces["accumulate"] += 1
        new, metrics = jax.grad(self._loss, has_aux=True)(params, batch)
        return jax.tree.map(jnp.add, gradients, new), metrics

    def _trace_apply(self, state: TrainState, gradients: Params, denominator: Array):
        self.traces["apply"] += 1
        gradients = jax.tree.map(lambda g: g / denominator, gradients)
        updates, opt_state = self._optimizer.update(gradients, state.opt_state, state.params)
        params = optax.apply_updates(state.params, updates)
        norms = {"grad_norm": optax.tree.norm(gradients), "update_norm": optax.tree.norm(updates)}
        return TrainState(params, opt_state, state.update + 1), norms  # type: ignore[arg-type]

    def _trace_logprobs(self, params: Params, batch: Batch) -> Array:
        self.traces["logprobs"] += 1
        order, logprobs, _ = self._forward(params, batch)
        rows = jnp.arange(order.shape[0])[:, None]
        return jnp.zeros(order.shape, jnp.float32).at[rows, order].set(logprobs)

    def _loss(self, params: Params, batch: Batch) -> tuple[Array, Metrics]:
        order, logprobs, entropy = self._forward(params, batch)
        moved = {name: jnp.take_along_axis(array, order, axis=1) for name, array in batch.items()}
        loss, metrics = self._objective(logprobs, moved)
        return loss, {**metrics, "entropy": jax.lax.stop_gradient(jnp.sum(entropy))}

    def _forward(self, params: Params, batch: Batch) -> tuple[Array, Array, Array]:
        """Return the order, and logprobs and entropies in that order."""
        hidden = self._hidden(
            params,
            batch["tokens"],
            batch["segment_ids"],
            batch["positions"],
            attention=_attention_for(batch["tokens"].shape[1]),
        )
        order = loss_tokens_first(batch["loss_mask"])
        logprobs, entropy = moved_logprobs(
            self._policy, params, hidden, batch["tokens"], batch["loss_mask"], order, self._temperature
        )
        return order, logprobs, entropy


def _attention_for(length: int) -> AttentionName:
    # A CPU reads and writes the whole table of logits from memory: at 1024 tokens the loop over
    # blocks is six times faster.
    return "chunked" if jax.default_backend() == "cpu" and length > _LONGEST_DENSE_ROW_ON_CPU else "auto"
