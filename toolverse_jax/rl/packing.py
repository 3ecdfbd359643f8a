"""Packs trajectories of different lengths into rows of one static length (NumPy, deterministic)."""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from toolverse_jax.rl.scatter import scatter_turn_advantages
from toolverse_jax.types import PackedBatch, Trajectory

# Sizes of the turn table are rounded up to these, so that the scatter compiles for few shapes.
_SEGMENTS_STEP = 16
_TURNS_STEP = 8


def pack(
    trajectories: Sequence[Trajectory],
    turn_advantages: Sequence[np.ndarray],
    *,
    row_length: int,
    rows_multiple: int = 1,
) -> PackedBatch:
    """Pack rollouts for a policy-gradient step; `old_logprobs` are left 0 for the trainer to fill.

    Args:
        trajectories: rollouts, each no longer than a row.
        turn_advantages: for each trajectory one advantage per user turn.
        row_length: tokens of a row.
        rows_multiple: the number of rows is padded with empty ones to a multiple of this.

    Returns:
        The packed rows, each loss token with the advantage of its turn.

    Raises:
        ValueError: a trajectory is empty or longer than a row, its arrays differ in length, a loss
            token has no finite sampler logprob, or its turn has no advantage.
    """
    if len(trajectories) != len(turn_advantages):
        raise ValueError(
            f"turn_advantages must have one entry per trajectory ({len(trajectories)}), got {len(turn_advantages)}"
        )
    for trajectory, advantages in zip(trajectories, turn_advantages, strict=True):
        _check(trajectory, len(advantages))
    rows = arrange_rows([len(t.tokens) for t in trajectories], row_length, rows_multiple)
    batch = _lay_out(trajectories, rows, row_length, [t.loss_mask for t in trajectories])
    table = _turn_table(turn_advantages, rows)
    advantages = [
        np.asarray(
            scatter_turn_advantages(
                table[chunk], batch.segment_ids[chunk], batch.turn_ids[chunk], batch.loss_mask[chunk]
            )
        )
        # Chunks of a fixed number of rows keep the shape, and so the compiled scatter, the same.
        for chunk in _chunks(len(rows), rows_multiple)
    ]
    return dataclasses.replace(batch, advantages=np.concatenate(advantages))


def pack_supervised(
    trajectories: Sequence[Trajectory],
    *,
    row_length: int,
    rows_multiple: int = 1,
    other_weight: float = 0.1,
) -> PackedBatch:
    """Pack golden trajectories for next-token training; `advantages` holds the loss weights.

    Args:
        trajectories: records whose loss mask marks the assistant's tokens (weight 1).
        row_length: tokens of a row.
        rows_multiple: the number of rows is padded with empty ones to a multiple of this.
        other_weight: loss weight of all other tokens; 0 leaves them out of the loss.

    Raises:
        ValueError: a trajectory is empty or longer than a row.
    """
    rows = arrange_rows([len(t.tokens) for t in trajectories], row_length, rows_multiple)
    weights = [np.where(t.loss_mask, 1.0, other_weight).astype(np.float32) for t in trajectories]
    batch = _lay_out(trajectories, rows, row_length, [w > 0 for w in weights])
    placed = _place(rows, row_length, weights, np.float32)
    return dataclasses.replace(
        batch,
        advantages=np.where(batch.loss_mask, placed, np.float32(0)),
        sampler_logprobs=np.zeros_like(batch.sampler_logprobs),
    )


def arrange_rows(lengths: Sequence[int], row_length: int, rows_multiple: int = 1) -> list[list[int]]:
    """Assign documents to rows by best-fit decreasing.

    Rows come in order of falling attention cost (the sum of squared lengths), so that rows which
    shards compute side by side cost about the same; empty rows fill up to the multiple.

    Returns:
        Document indices of each row.

    Raises:
        ValueError: a document is empty or longer than a row.
    """
    rows: list[list[int]] = []
    space: list[tuple[int, int]] = []  # (tokens left, row), sorted
    for document in sorted(range(len(lengths)), key=lambda index: (-lengths[index], index)):
        length = lengths[document]
        if not 1 <= length <= row_length:
            raise ValueError(
                f"trajectory {document} has {length} tokens, allowed are 1 to {row_length}; "
                "raise the row length or shorten the rollouts"
            )
        at = bisect.bisect_left(space, (length, -1))
        if at == len(space):
            rows.append([])
            left, row = row_length, len(rows) - 1
        else:
            left, row = space.pop(at)
        rows[row].append(document)
        bisect.insort(space, (left - length, row))
    rows.sort(key=lambda row: (-sum(lengths[d] ** 2 for d in row), row[0]))
    rows += [[] for _ in range(-len(rows) % rows_multiple)]
    return rows or [[] for _ in range(rows_multiple)]


def microbatches(batch: PackedBatch, rows: int) -> Iterator[PackedBatch]:
    """Yield consecutive slices of `rows` rows; the number of rows must be a multiple of it.

    Raises:
        ValueError: the rows do not divide evenly.
    """
    total = batch.shape[0]
    if total % rows:
        raise ValueError(f"a batch of {total} rows does not divide into micro-batches of {rows}")
    for chunk in _chunks(total, rows):
        yield PackedBatch(**{name: array[chunk] for name, array in batch.arrays().items()})


def _chunks(total: int, size: int) -> Iterator[slice]:
    return (slice(start, start + size) for start in range(0, total, size))


def _check(trajectory: Trajectory, num_turns: int) -> None:
    where = f"trajectory {trajectory.sample_index} of group {trajectory.group_id!r}"
    for name in ("loss_mask", "sampler_logprobs", "turn_ids"):
        length = len(getattr(trajectory, name))
        if length != len(trajectory.tokens):
            raise ValueError(f"{where} has {len(trajectory.tokens)} tokens but {length} {name}")
    if not np.all(np.isfinite(trajectory.sampler_logprobs[trajectory.loss_mask])):
        raise ValueError(f"{where} has a loss token without a finite sampler logprob")
    last = int(np.max(trajectory.turn_ids, initial=0))
    if last > num_turns:
        raise ValueError(f"{where} has tokens of turn {last} but advantages of {num_turns} turns only")


def _lay_out(
    trajectories: Sequence[Trajectory],
    rows: list[list[int]],
    row_length: int,
    loss_masks: Sequence[np.ndarray],
) -> PackedBatch:
    def place(values: Sequence[np.ndarray], dtype: type) -> np.ndarray:
        return _place(rows, row_length, values, dtype)

    lengths = [len(t.tokens) for t in trajectories]
    positions = place([np.arange(n) for n in lengths], np.int32)
    # No token precedes the first of a segment, so nothing predicts it.
    loss_mask = place(loss_masks, np.bool_) & (positions > 0)
    sampler_logprobs = place([t.sampler_logprobs for t in trajectories], np.float32)
    segment_ids = np.zeros_like(positions)
    for row, documents in enumerate(rows):
        numbers = np.repeat(np.arange(1, len(documents) + 1), [lengths[d] for d in documents])
        segment_ids[row, : len(numbers)] = numbers
    return PackedBatch(
        tokens=place([t.tokens for t in trajectories], np.int32),
        segment_ids=segment_ids,
        positions=positions,
        turn_ids=place([t.turn_ids for t in trajectories], np.int32),
        loss_mask=loss_mask,
        advantages=np.zeros(positions.shape, np.float32),
        sampler_logprobs=np.where(loss_mask, sampler_logprobs, np.float32(0)),
        old_logprobs=np.zeros(positions.shape, np.float32),
    )


def _place(rows: list[list[int]], row_length: int, values: Sequence[np.ndarray], dtype: type) -> np.ndarray:
    """Write one value per token of each document into zero-filled rows."""
    placed = np.zeros((len(rows), row_length), dtype)
    for row, documents in enumerate(rows):
        start = 0
        for document in documents:
            end = start + len(values[document])
            placed[row, start:end] = values[document]
            start = end
    return placed


def _turn_table(turn_advantages: Sequence[np.ndarray], rows: list[list[int]]) -> np.ndarray:
    """Return the advantages `[rows, segments + 1, turns + 1]` by 1-based segment and turn."""
    segments = _round_up(max(map(len, rows)) + 1, _SEGMENTS_STEP)
    turns = _round_up(max((len(a) for a in turn_advantages), default=0) + 1, _TURNS_STEP)
    table = np.zeros((len(rows), segments, turns), np.float32)
    for row, documents in enumerate(rows):
        for segment, document in enumerate(documents, start=1):
            advantages = turn_advantages[document]
            table[row, segment, 1 : len(advantages) + 1] = advantages
    return table


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
