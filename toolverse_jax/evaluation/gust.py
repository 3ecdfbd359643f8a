"""Evaluates a policy on GUST tasks: one greedy (or sampled) episode a task, strict coverage."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from toolverse_jax.errors import TaskError
from toolverse_jax.rollout import EpisodeLimits, Renderer, RolloutEngine, Sampling, run_episode
from toolverse_jax.types import Task, Trajectory

if TYPE_CHECKING:
    from toolverse_jax.environment import Environment


def play_tasks(
    tasks: Sequence[Task],
    environments: Mapping[str, Environment],
    engine: RolloutEngine,
    renderer: Renderer,
    *,
    limits: EpisodeLimits,
    sampling: Sampling,
    concurrency: int = 64,
    seed: int = 0,
    on_episode: Callable[[Trajectory], None] | None = None,
) -> list[Trajectory]:
    """Play each task once and return the trajectories in the order of the tasks.

    Args:
        tasks: tasks to play.
        environments: by name; every environment the tasks name.
        engine: samples the policy.
        renderer: of the policy's tokenizer.
        limits: bounds of an episode.
        sampling: temperature 0 decodes greedily.
        concurrency: episodes played at once.
        seed: seed of the samples; without effect when greedy.
        on_episode: called after each episode, for progress.

    Raises:
        TaskError: a task names an environment that is not given, or there are no tasks.
    """
    if not tasks:
        raise TaskError("there are no tasks to evaluate; give a task file with at least one task")
    missing = sorted({task.environment for task in tasks} - set(environments))
    if missing:
        raise TaskError(
            f"environment {missing[0]!r} of the tasks is not among the loaded ones; give its folder with --envs"
        )

    async def play_all() -> list[Trajectory]:
        gate = asyncio.Semaphore(concurrency)

        async def play(task: Task) -> Trajectory:
            async with gate:
                trajectory = await run_episode(
                    task,
                    environments[task.environment],
                    engine,
                    renderer,
                    limits=limits,
                    sampling=sampling,
                    seed=seed,
                )
            if on_episode is not None:
                on_episode(trajectory)
            return trajectory

        return list(await asyncio.gather(*(play(task) for task in tasks)))

    return asyncio.run(play_all())
