"""From groups of rollouts to advantages; groups that carry no signal are dropped and counted."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import jax
import numpy as np

from toolverse_jax.config import AdvantageConfig
from toolverse_jax.rl import grpo_advantages, tara_advantages
from toolverse_jax.types import Trajectory

Group = Sequence[Trajectory]

_TURNS_STEP = 8


def group_advantages(groups: Sequence[Group], config: AdvantageConfig) -> list[np.ndarray]:
    """Return the advantages `[group, turns]` of each group by the configured estimator.

    For GRPO every turn of a rollout has the advantage of its trajectory. Turns that were not reached
    count as reward 0.
    """
    if not groups:
        return []
    turns = [len(group[0].turn_rewards) for group in groups]
    # Turns appended with equal rewards change nothing, so that all tasks share one compiled shape.
    width = -(-max(turns) // _TURNS_STEP) * _TURNS_STEP
    sizes = {len(group) for group in groups}
    if len(sizes) != 1:
        raise ValueError(f"all groups must have the same number of rollouts, got sizes {sorted(sizes)}")
    if config.estimator == "tara":
        rewards = np.zeros((len(groups), sizes.pop(), width), np.float32)
        for index, group in enumerate(groups):
            rewards[index, :, : turns[index]] = np.stack([member.turn_rewards for member in group])
        table = np.asarray(_tara(config)(rewards))
        return [table[index, :, :count] for index, count in enumerate(turns)]
    returns = np.stack([_returns(group, config.grpo_return) for group in groups])
    flat = np.asarray(_grpo(config.eps)(returns))
    return [np.repeat(flat[index][:, None], count, axis=1) for index, count in enumerate(turns)]


def signal_metrics(groups: Sequence[Group], advantages: Sequence[np.ndarray]) -> dict[str, float]:
    """Count which groups teach something, and which only a turn-level estimator can use.

    Keys `signal/...`: `groups`; `kept` (any advantage differs from 0); `constant_turns`, the fraction
    of turns in which a group's rewards are all equal; and of the groups in which some turn varies the
    number that GRPO would drop on the trace score (`grpo_drops_by_trace_score`) or on the mean turn
    reward (`grpo_drops_by_mean_turn_reward`).
    """
    rewards = [np.stack([member.turn_rewards for member in group]) for group in groups]
    constant = [np.ptp(table, axis=0) == 0 for table in rewards]
    varied = [index for index, columns in enumerate(constant) if not np.all(columns)]

    def lost(name: str) -> float:
        return float(sum(np.ptp(_returns(groups[index], name)) == 0 for index in varied))

    num_turns = sum(map(len, constant))
    return {
        "signal/groups": float(len(groups)),
        "signal/kept": float(sum(has_signal(table) for table in advantages)),
        "signal/constant_turns": sum(int(c.sum()) for c in constant) / num_turns if num_turns else 0.0,
        "signal/grpo_drops_by_trace_score": lost("trace_score"),
        "signal/grpo_drops_by_mean_turn_reward": lost("mean_turn_reward"),
    }


def has_signal(advantages: np.ndarray) -> bool:
    """Return whether a group teaches anything: constant turns have advantage exactly 0."""
    return bool(np.any(advantages != 0))


def reward_metrics(groups: Sequence[Group]) -> dict[str, float]:
    """Return mean rewards: by turn index (1-based), over all turns, and of whole traces; NaN of none."""
    members = [member for group in groups for member in group]
    longest = max((len(member.turn_rewards) for member in members), default=0)
    metrics = {
        f"reward/turn_{turn + 1}": _mean(
            [float(m.turn_rewards[turn]) for m in members if turn < len(m.turn_rewards)]
        )
        for turn in range(longest)
    }
    metrics["reward/mean_turn"] = _mean([float(reward) for m in members for reward in m.turn_rewards])
    metrics["reward/trace_score"] = _mean([member.trace_score for member in members])
    return metrics


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def _returns(group: Group, name: str) -> np.ndarray:
    if name == "trace_score":
        return np.array([member.trace_score for member in group], np.float32)
    return np.array([member.turn_rewards.mean() for member in group], np.float32)


@functools.cache
def _tara(config: AdvantageConfig) -> Callable[[np.ndarray], jax.Array]:
    estimate = functools.partial(
        tara_advantages,
        lambda_=config.lambda_,
        gamma=config.gamma,
        gate=config.gate,
        future_discount_start=config.future_discount_start,
        eps=config.eps,
    )
    return jax.jit(jax.vmap(estimate))


@functools.cache
def _grpo(eps: float) -> Callable[[np.ndarray], jax.Array]:
    return jax.jit(jax.vmap(functools.partial(grpo_advantages, eps=eps)))
