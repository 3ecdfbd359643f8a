"""Collects groups of rollouts: all members of a group or none."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, overload

from toolverse_jax.config import RolloutConfig
from toolverse_jax.errors import EngineError, TaskError
from toolverse_jax.rollout.agent_loop import run_episode
from toolverse_jax.rollout.engine import RolloutEngine
from toolverse_jax.rollout.episode_record import check_trajectory
from toolverse_jax.rollout.limits import EpisodeLimits, Sampling
from toolverse_jax.rollout.renderer import Renderer
from toolverse_jax.types import Task, Trajectory

if TYPE_CHECKING:
    from toolverse_jax.environment import Environment

_log = logging.getLogger(__name__)

Group = list[Trajectory]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Collection(Sequence[Group]):
    """The groups of one collection in the order of the tasks; behaves as a sequence of groups."""

    groups: tuple[Group, ...]
    num_retried: int = 0
    """Groups that were played a second time because a member failed."""
    dropped: tuple[str, ...] = ()
    """Groups that are left out, each with the first error: failed twice, or the prompt is too long."""

    @overload
    def __getitem__(self, index: int) -> Group: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Group]: ...
    def __getitem__(self, index: int | slice) -> Group | Sequence[Group]:
        return self.groups[index]

    def __len__(self) -> int:
        return len(self.groups)

    def __iter__(self) -> Iterator[Group]:
        return iter(self.groups)

    def metrics(self) -> dict[str, float]:
        """Return counts and means over all trajectories, keys `rollout/...`."""
        members = [trajectory for group in self.groups for trajectory in group]
        result = {
            "rollout/groups": float(len(self.groups)),
            "rollout/retried_groups": float(self.num_retried),
            "rollout/dropped_groups": float(len(self.dropped)),
        }
        if not members:
            return result
        for name in members[0].stats:
            result[f"rollout/{name}"] = sum(member.stats[name] for member in members) / len(members)
        turns = sum(len(member.turn_rewards) for member in members)
        result["rollout/turn_reward"] = sum(float(member.turn_rewards.sum()) for member in members) / turns
        result["rollout/trace_score"] = sum(member.trace_score for member in members) / len(members)
        for status in ("completed", "context_exhausted", "step_limit"):
            share = sum(member.status == status for member in members) / len(members)
            result[f"rollout/{status}_fraction"] = share
        return result


def collect(
    tasks: Sequence[Task],
    environments: Mapping[str, Environment],
    engine: RolloutEngine,
    renderer: Renderer,
    *,
    group_size: int,
    seed: int,
    policy_version: int = 0,
    config: RolloutConfig | None = None,
    system: str = "",
) -> Collection:
    """Play every task `group_size` times and return the groups; see `collect_async`.

    Blocks until all are finished; inside an event loop await `collect_async` instead.
    """
    return asyncio.run(
        collect_async(
            tasks,
            environments,
            engine,
            renderer,
            group_size=group_size,
            seed=seed,
            policy_version=policy_version,
            config=config,
            system=system,
        )
    )


async def collect_async(
    tasks: Sequence[Task],
    environments: Mapping[str, Environment],
    engine: RolloutEngine,
    renderer: Renderer,
    *,
    group_size: int,
    seed: int,
    policy_version: int = 0,
    config: RolloutConfig | None = None,
    system: str = "",
) -> Collection:
    """Play every task `group_size` times, `config.slots` episodes at once.

    The result depends on tasks, parameters and seed alone. A group with a failed member is played once
    more, then dropped and counted. A task that is listed twice gets two groups of different samples.

    Args:
        tasks: in the order of the result.
        environments: by name.
        engine: samples the policy.
        renderer: of the policy's tokenizer.
        group_size: rollouts of each task.
        seed: seed of the samples; derive one for each training step.
        policy_version: version of the parameters that the engine must report.
        config: limits and sampling, default `RolloutConfig()`.
        system: system prompt; empty: that of the chat template.

    Raises:
        TaskError: a task names an environment that is not given.
        EngineError: the engine samples with another policy version.
    """
    config = config or RolloutConfig()
    missing = sorted({task.environment for task in tasks} - set(environments))
    if missing:
        raise TaskError(
            f"environment {missing[0]!r} is not loaded; the given ones are {sorted(environments)}"
        )
    player = _Player(
        environments=environments,
        engine=engine,
        renderer=renderer,
        group_size=group_size,
        seed=seed,
        policy_version=policy_version,
        limits=EpisodeLimits.from_config(config),
        sampling=Sampling.from_config(config),
        system=system,
        gate=asyncio.Semaphore(config.slots),
    )
    seen: Counter[str] = Counter()
    jobs = []
    for task in tasks:
        jobs.append(player.play_group(task, seen[task.id]))
        seen[task.id] += 1
    return _collection(await asyncio.gather(*jobs), policy_version)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Player:
    """What all episodes of one collection share."""

    environments: Mapping[str, Environment]
    engine: RolloutEngine
    renderer: Renderer
    group_size: int
    seed: int
    policy_version: int
    limits: EpisodeLimits
    sampling: Sampling
    system: str
    gate: asyncio.Semaphore
    """Bounds the episodes that run at once; it serves in the order of asking."""

    async def play_group(self, task: Task, repeat: int) -> tuple[Group, int]:
        """Play all members of a group, all once more if one fails; return them and the retries."""
        group_id = f"{self.policy_version}/{task.id}/{repeat}"
        first = repeat * self.group_size
        group: Group = []
        for attempt in range(2):
            members = (self._play(task, group_id, first + index, attempt) for index in range(self.group_size))
            group = list(await asyncio.gather(*members))
            if all(member.status != "failed" for member in group):
                return group, attempt
        return group, 1

    async def _play(self, task: Task, group_id: str, sample_index: int, attempt: int) -> Trajectory:
        async with self.gate:
            trajectory = await run_episode(
                task,
                self.environments[task.environment],
                self.engine,
                self.renderer,
                limits=self.limits,
                sampling=self.sampling,
                sample_index=sample_index,
                seed=self.seed,
                group_id=group_id,
                attempt=attempt,
                system=self.system,
            )
        if trajectory.status != "failed":
            check_trajectory(trajectory)
        return trajectory


def _collection(played: Sequence[tuple[Group, int]], policy_version: int) -> Collection:
    groups: list[Group] = []
    dropped: list[str] = []
    for group, _ in played:
        failures = [member.error for member in group if member.status == "failed"]
        failures += ["the first prompt is too long" for member in group if not len(member.tokens)]
        if failures:
            dropped.append(f"{group[0].group_id}: {failures[0]}")
            _log.warning("group dropped: %s", dropped[-1])
            continue
        groups.append(
            [
                member if member.stop_reasons else dataclasses.replace(member, policy_version=policy_version)
                for member in group
            ]
        )
        versions = sorted({member.policy_version for member in groups[-1]})
        if versions != [policy_version]:
            raise EngineError(
                f"the engine sampled with policy version {versions[0]}, expected {policy_version}; call set_params first"
            )
    return Collection(
        groups=tuple(groups), num_retried=sum(attempt for _, attempt in played), dropped=tuple(dropped)
    )
