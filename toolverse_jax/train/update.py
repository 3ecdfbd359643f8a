"""One batch of rollouts becomes a few optimizer updates."""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Sequence

import jax
import numpy as np

from toolverse_jax.errors import ToolverseError
from toolverse_jax.rl import microbatches, pack
from toolverse_jax.train.state import TrainState
from toolverse_jax.train.step import TrainStep
from toolverse_jax.types import PackedBatch, Trajectory

Sample = tuple[Trajectory, np.ndarray]
"""A rollout and its advantage of each user turn."""

# Sums of `rl.policy_loss` that are reported as means over loss tokens.
_MEANS = {
    "clipped": "policy/clip_fraction",
    "entropy": "policy/entropy",
    "loss": "policy/loss",
    "mismatch_kl": "policy/mismatch_kl",
    "mismatch_outside": "policy/mismatch_outside_fraction",
    "old_kl": "policy/old_kl",
    "ratio": "policy/ratio",
}


def deal_minibatches(
    groups: Sequence[Sequence[Sample]], count: int, generator: np.random.Generator
) -> list[list[Sample]]:
    """Deal the members of each group over minibatches, so that every update sees every task.

    Args:
        groups: samples by group.
        count: number of minibatches.
        generator: decides which members go together.

    Returns:
        Minibatches without rollouts that carry no loss; some may be empty.
    """
    minibatches: list[list[Sample]] = [[] for _ in range(count)]
    place = 0
    for group in groups:
        for index in generator.permutation(len(group)):
            sample = group[index]
            if np.any(sample[0].loss_mask[1:]):
                minibatches[place % count].append(sample)
                place += 1
    return minibatches


def pack_minibatches(
    minibatches: Sequence[Sequence[Sample]], *, row_length: int, rows: int
) -> list[PackedBatch]:
    """Pack the minibatches that hold anything, each into a multiple of `rows` rows."""
    return [
        pack(
            [trajectory for trajectory, _ in samples],
            [advantages for _, advantages in samples],
            row_length=row_length,
            rows_multiple=rows,
        )
        for samples in minibatches
        if samples
    ]


def update_policy(
    state: TrainState, step: TrainStep, batches: Sequence[PackedBatch], *, rows: int, on_policy: bool
) -> tuple[TrainState, dict[str, float]]:
    """Make one update per minibatch and return the new state and metrics.

    The old logprobs are computed by the trainer itself, in the packed layout and before the first
    update, so that the first ratio is exactly 1.

    Args:
        state: current state; it is consumed.
        step: compiled functions.
        batches: packed minibatches.
        rows: rows of a micro-batch.
        on_policy: the objective takes the current logprobs as old ones, see `policy_objective`.

    Raises:
        ToolverseError: a gradient is not finite.
    """
    if not on_policy:
        batches = [_with_old_logprobs(state, step, batch, rows) for batch in batches]
    sums: defaultdict[str, float] = defaultdict(float)
    norms: list[dict[str, jax.Array]] = []
    for batch in batches:
        gradients, parts = step.zeros(state.params), []
        for part in microbatches(batch, rows):
            gradients, metrics = step.accumulate(state.params, gradients, part)
            parts.append(metrics)
        state, update_norms = step.apply(state, gradients, float(batch.loss_mask.sum()))
        norms.append(update_norms)
        for metrics in jax.device_get(parts):
            for name, value in metrics.items():
                sums[name] += float(value)
    return state, _report(sums, jax.device_get(norms), batches)


def _with_old_logprobs(state: TrainState, step: TrainStep, batch: PackedBatch, rows: int) -> PackedBatch:
    parts = [np.asarray(step.logprobs(state.params, part)) for part in microbatches(batch, rows)]
    return dataclasses.replace(batch, old_logprobs=np.concatenate(parts))


def _report(
    sums: dict[str, float], norms: Sequence[dict[str, float]], batches: Sequence[PackedBatch]
) -> dict[str, float]:
    tokens = sum(int((batch.segment_ids > 0).sum()) for batch in batches)
    capacity = sum(batch.tokens.size for batch in batches)
    report = {
        "batch/loss_tokens": sums.get("tokens", 0.0),
        "batch/tokens": float(tokens),
        "batch/rows": float(sum(batch.shape[0] for batch in batches)),
        "batch/pad_fraction": 1.0 - tokens / capacity if capacity else 0.0,
        "optimizer/updates": float(len(norms)),
    }
    if not norms:
        return report
    for name in ("grad_norm", "update_norm"):
        values = [float(norm[name]) for norm in norms]
        if not all(map(math.isfinite, values)):
            raise ToolverseError(
                f"optimizer {name} is {values}, so the parameters are lost; "
                "run the same line again to resume from the last checkpoint, or lower optimizer.learning_rate in a new run"
            )
        report[f"optimizer/{name}"] = sum(values) / len(values)
    report.update({key: sums[name] / sums["tokens"] for name, key in _MEANS.items()})
    return report
