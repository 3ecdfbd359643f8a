"""Measures advantages and their scatter to packed tokens, against a NumPy loop over trajectories."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from toolverse_jax.rl.advantages import tara_advantages
from toolverse_jax.rl.packing import pack
from toolverse_jax.rl.scatter import scatter_turn_advantages
from toolverse_jax.types import PackedBatch, Trajectory


def benchmark_tara(
    *,
    groups: int = 64,
    group_size: int = 8,
    turns: int = 5,
    tokens: int = 700,
    row_length: int = 4096,
    seed: int = 0,
) -> dict[str, float]:
    """Time TARA over groups and the scatter over packed rows; both sides must agree to 1e-5.

    Args:
        groups: number of groups.
        group_size: rollouts of each.
        turns: user turns of each task.
        tokens: mean length of a rollout.
        row_length: tokens of a packed row.
        seed: of rewards and lengths.

    Returns:
        Seconds of the fastest of several repeats: `advantages_s`, `scatter_s`, `loop_advantages_s`,
        `loop_scatter_s`, `pack_s`; `speedup_advantages` and `speedup_scatter`; and the sizes.
    """
    draw = np.random.default_rng(seed)
    rewards = (draw.random((groups, group_size, turns)) < 0.6).astype(np.float32)
    estimate = jax.jit(jax.vmap(tara_advantages))
    advantages, advantages_s = _fastest(lambda: np.asarray(estimate(rewards)))
    by_loop, loop_advantages_s = _fastest(lambda: np.stack([_tara_by_loop(group) for group in rewards]))
    np.testing.assert_allclose(advantages, by_loop, atol=1e-5)

    lengths = draw.integers(tokens // 2, tokens * 3 // 2, groups * group_size)
    trajectories = [_trajectory(int(length), turns, draw) for length in lengths]
    per_rollout = list(advantages.reshape(-1, turns))
    batch, pack_s = _fastest(lambda: pack(trajectories, per_rollout, row_length=row_length), repeats=2)
    segments = int(batch.segment_ids.max())
    table = _table_of(batch, segments, turns)
    scattered, scatter_s = _fastest(
        lambda: np.asarray(scatter_turn_advantages(table, batch.segment_ids, batch.turn_ids, batch.loss_mask))
    )
    looped, loop_scatter_s = _fastest(lambda: _scatter_by_loop(batch, table), repeats=2)
    np.testing.assert_array_equal(scattered, looped)
    np.testing.assert_array_equal(scattered, batch.advantages)
    return {
        "advantages_s": advantages_s,
        "loop_advantages_s": loop_advantages_s,
        "speedup_advantages": loop_advantages_s / advantages_s,
        "scatter_s": scatter_s,
        "loop_scatter_s": loop_scatter_s,
        "speedup_scatter": loop_scatter_s / scatter_s,
        "pack_s": pack_s,
        "trajectories": float(len(trajectories)),
        "tokens": float(lengths.sum()),
        "rows": float(batch.shape[0]),
        "row_length": float(row_length),
    }


def _fastest(function: Callable[[], Any], repeats: int = 5) -> tuple[Any, float]:
    result, best = function(), float("inf")
    for _ in range(repeats):
        began = time.perf_counter()
        result = function()
        best = min(best, time.perf_counter() - began)
    return result, best


def _tara_by_loop(
    rewards: np.ndarray, lambda_: float = 0.5, gamma: float = 0.5, eps: float = 1e-6
) -> np.ndarray:
    """Follow eqs. 1-5 rollout by rollout and turn by turn, in float64."""
    size, turns = rewards.shape
    future = np.zeros((size, turns))
    for i in range(size):
        for t in range(turns):
            later = sum(gamma**k * float(rewards[i, t + 1 + k]) for k in range(turns - t - 1))
            future[i, t] = float(rewards[i, t]) * later
    result = np.zeros((size, turns))
    for weight, values in ((1.0, rewards), (lambda_, future)):
        for t in range(turns):
            column = [float(value) for value in values[:, t]]
            if max(column) == min(column):
                continue
            mean = sum(column) / size
            std = (sum((value - mean) ** 2 for value in column) / size) ** 0.5
            for i in range(size):
                result[i, t] += weight * (column[i] - mean) / (std + eps)
    return result


def _scatter_by_loop(batch: PackedBatch, table: np.ndarray) -> np.ndarray:
    """Fill the advantages segment by segment and turn by turn."""
    result = np.zeros(batch.shape, np.float32)
    for row in range(batch.shape[0]):
        for segment in range(1, table.shape[1]):
            inside = batch.segment_ids[row] == segment
            for turn in range(1, table.shape[2]):
                chosen = inside & (batch.turn_ids[row] == turn) & batch.loss_mask[row]
                result[row, chosen] = table[row, segment, turn]
    return result


def _table_of(batch: PackedBatch, segments: int, turns: int) -> np.ndarray:
    """Read the turn table `[rows, segments + 1, turns + 1]` back from a packed batch."""
    table = np.zeros((batch.shape[0], segments + 1, turns + 1), np.float32)
    rows = np.broadcast_to(np.arange(batch.shape[0])[:, None], batch.shape)
    mask = batch.loss_mask
    table[rows[mask], batch.segment_ids[mask], batch.turn_ids[mask]] = batch.advantages[mask]
    return table


def _trajectory(length: int, turns: int, draw: np.random.Generator) -> Trajectory:
    """Return a rollout with a quarter of its tokens sampled, in runs as real ones have."""
    turn_ids = np.minimum(np.arange(length) * (turns + 1) // length, turns).astype(np.int16)
    mask = (np.arange(length) % 80 < 20 + 80 // (turns + 1)) & (turn_ids > 0)
    return Trajectory(
        task_id="synthetic",
        group_id="synthetic",
        environment="synthetic",
        sample_index=0,
        tokens=draw.integers(1, 1000, length).astype(np.int32),
        loss_mask=mask,
        sampler_logprobs=np.where(mask, np.float32(-1), np.float32(np.nan)),
        turn_ids=turn_ids,
        turn_rewards=np.zeros(turns, np.float32),
        turn_reached=np.ones(turns, np.bool_),
        status="completed",
    )


def synthetic_trajectories(count: int, *, turns: int, tokens: int, seed: int) -> Sequence[Trajectory]:
    """Return rollouts of about `tokens` tokens each, for benchmarks."""
    draw = np.random.default_rng(seed)
    lengths = draw.integers(tokens * 4 // 5, tokens * 6 // 5, count)
    return [_trajectory(int(length), turns, draw) for length in lengths]
