"""Next-token training on golden trajectories, before reinforcement learning."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

import jax

from toolverse_jax.config import MeshConfig, OptimizerConfig
from toolverse_jax.errors import ToolverseError
from toolverse_jax.policy import Params, Policy, make_mesh
from toolverse_jax.rl import arrange_rows, microbatches, pack_supervised
from toolverse_jax.train.optimizer import make_optimizer
from toolverse_jax.train.state import init_state
from toolverse_jax.train.step import TrainStep, supervised_objective
from toolverse_jax.types import Trajectory

Report = Callable[[int, dict[str, float]], bool | None]
"""Called after each update with its number and metrics; returning True ends the training."""


class SupervisedTrainer:
    """Keeps parameters and optimizer over several calls, so that a curriculum can change the examples."""

    def __init__(
        self,
        policy: Policy,
        params: Params,
        *,
        optimizer: OptimizerConfig,
        total_updates: int,
        row_length: int,
        rows: int,
        rows_per_microbatch: int = 0,
        mesh: MeshConfig | None = None,
        compute_dtype: str = "float32",
    ):
        """Prepare training; nothing compiles before the first update.

        Args:
            policy: the network.
            params: initial parameters; they are copied.
            optimizer: AdamW and its schedule.
            total_updates: updates of the whole training, for the schedule.
            row_length: tokens of a packed row.
            rows: packed rows of one update.
            rows_per_microbatch: rows at once; 0: all.
            mesh: sizes of the mesh axes.
            compute_dtype: type of activations.
        """
        self._mesh = make_mesh(mesh or MeshConfig())
        chain = make_optimizer(optimizer, total_updates)
        self._step = TrainStep(
            policy, params, chain, supervised_objective, self._mesh, compute_dtype=compute_dtype
        )
        self._state = init_state(params, chain, self._mesh)
        self._row_length = row_length
        shards = self._step.row_shards
        self._micro = -(-(rows_per_microbatch or rows) // shards) * shards
        self._rows = -(-rows // self._micro) * self._micro
        self.traces = self._step.traces
        """How often each compiled function was traced."""

    @property
    def params(self) -> Params:
        """Current parameters; the next update consumes these arrays, so copy what you keep."""
        return self._state.params

    @property
    def num_updates(self) -> int:
        return int(self._state.update)

    def batches(self, examples: Iterable[Trajectory]) -> Iterator[list[Trajectory]]:
        """Cut a stream of examples into lists that fill the rows of one update."""
        batch: list[Trajectory] = []
        lengths: list[int] = []
        for example in examples:
            size = len(example.tokens)
            if batch and not self._fits([*lengths, size]):
                yield batch
                batch, lengths = [], []
            batch.append(example)
            lengths.append(size)
        if batch:
            yield batch

    def update(self, examples: Sequence[Trajectory], *, other_weight: float = 0.1) -> dict[str, float]:
        """Make one update on examples and return its metrics.

        Args:
            examples: golden trajectories, any number.
            other_weight: loss weight of tokens outside the loss mask.

        Returns:
            `loss` per unit of weight and `action_loss` per action token (nats), `tokens`,
            `grad_norm`.

        Raises:
            ToolverseError: the gradient is not finite.
        """
        batch = pack_supervised(
            examples, row_length=self._row_length, rows_multiple=self._micro, other_weight=other_weight
        )
        gradients, parts = self._step.zeros(self._state.params), []
        for part in microbatches(batch, self._micro):
            gradients, metrics = self._step.accumulate(self._state.params, gradients, part)
            parts.append(metrics)
        self._state, norms = self._step.apply(self._state, gradients, float(batch.advantages.sum()))
        sums: defaultdict[str, float] = defaultdict(float)
        for metrics in jax.device_get(parts):
            for name, value in metrics.items():
                sums[name] += float(value)
        norm = float(norms["grad_norm"])
        if not math.isfinite(norm):
            raise ToolverseError(f"the supervised gradient norm is {norm}; lower optimizer.learning_rate")
        return {
            "loss": sums["loss"] / sums["weight"],
            "action_loss": sums["action_loss"] / max(sums["action_tokens"], 1.0),
            "tokens": float((batch.segment_ids > 0).sum()),
            "grad_norm": norm,
        }

    def _fits(self, lengths: Sequence[int]) -> bool:
        if sum(lengths) > self._rows * self._row_length:
            return False
        return len(arrange_rows(lengths, self._row_length)) <= self._rows


def warm_start(
    policy: Policy,
    params: Params,
    examples: Iterable[Trajectory],
    *,
    optimizer: OptimizerConfig,
    updates: int,
    row_length: int,
    rows: int,
    rows_per_microbatch: int = 0,
    other_weight: float = 0.1,
    mesh: MeshConfig | None = None,
    report: Report | None = None,
) -> Params:
    """Train on a stream of golden trajectories and return the new parameters.

    Args:
        policy: the network.
        params: initial parameters; they are not changed.
        examples: golden trajectories; order and curriculum are the caller's. Training ends where
            they end.
        optimizer: AdamW and its schedule.
        updates: optimizer updates at most.
        row_length: tokens of a packed row.
        rows: packed rows of one update.
        rows_per_microbatch: rows at once; 0: all.
        other_weight: loss weight of tokens that are not the assistant's.
        mesh: sizes of the mesh axes.
        report: called after each update.
    """
    trainer = SupervisedTrainer(
        policy,
        params,
        optimizer=optimizer,
        total_updates=updates,
        row_length=row_length,
        rows=rows,
        rows_per_microbatch=rows_per_microbatch,
        mesh=mesh,
    )
    for number, batch in enumerate(itertools.islice(trainer.batches(examples), updates), start=1):
        metrics = trainer.update(batch, other_weight=other_weight)
        if report is not None and report(number, metrics):
            break
    return trainer.params
