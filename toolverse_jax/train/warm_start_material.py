"""Environments and tasks for warming a small policy up: the shipped training ones and invented ones."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np

from toolverse_jax.environment import Environment, load_environment
from toolverse_jax.environment.catalog import list_environments
from toolverse_jax.environment.spec import EnvSpec
from toolverse_jax.gust.build import build_tasks
from toolverse_jax.synthesis.invented import invented_toolset
from toolverse_jax.synthesis.pipeline import split_of
from toolverse_jax.synthesis.rules import RulesAuthor
from toolverse_jax.synthesis.toolset import read_toolset
from toolverse_jax.types import Task, Trajectory

_TASK_SEED = 7_000_001
"""Far from the seeds of `toolverse tasks`, so that no evaluated episode was ever shown."""


@dataclasses.dataclass(frozen=True)
class Material:
    """Tasks of the shipped training environments and of invented ones, with their environments."""

    environments: Mapping[str, Environment]
    shipped: tuple[Task, ...]
    invented: tuple[Task, ...]

    def draw(self, rng: random.Random, *, shipped_share: float, max_turns: int) -> Task:
        """Draw a task, cut to its first `max_turns` user turns."""
        pool = self.shipped if rng.random() < shipped_share else self.invented
        task = rng.choice(pool)
        return dataclasses.replace(task, turns=task.turns[:max_turns])


def build_material(
    envs_dir: Path,
    *,
    shipped_per_environment: int,
    num_invented: int,
    tasks_per_invented: int,
    seed: int,
    on_progress: Callable[[str], None] = lambda line: None,
) -> Material:
    """Build the tasks; held-out environments are left out.

    Args:
        envs_dir: shipped environments; only those of the training split are used.
        shipped_per_environment: tasks of each.
        num_invented: invented environments.
        tasks_per_invented: tasks of each.
        seed: seed of everything drawn.
        on_progress: takes a line of progress.
    """
    environments: dict[str, Environment] = {}
    shipped: list[Task] = []
    for name in list_environments(envs_dir):
        if split_of(read_toolset(envs_dir / name / "toolset.json")) == "held-out":
            continue
        environments[name] = load_environment(envs_dir / name)
        shipped += _tasks(environments[name], shipped_per_environment, seed)
    on_progress(f"{len(shipped)} tasks in {len(environments)} shipped environments")
    invented: list[Task] = []
    for number in range(num_invented):
        spec = RulesAuthor().author(invented_toolset(seed * 1_000_000 + number), seed=0)
        if not isinstance(spec, EnvSpec):
            continue
        environments[spec.name] = Environment(spec)
        invented += _tasks(environments[spec.name], tasks_per_invented, seed)
        if (number + 1) % 100 == 0:
            on_progress(f"{len(invented)} tasks in {number + 1} of {num_invented} invented environments")
    return Material(environments, tuple(shipped), tuple(invented))


def copy_examples(vocab_size: int, *, seed: int, length: int = 48) -> Iterator[Trajectory]:
    """Yield random tokens that are repeated once, with loss on the repeat.

    Copying from context is most of using tools: identifiers and names come from earlier text.
    """
    rng = np.random.default_rng(seed)
    number = 0
    while True:
        half = rng.integers(0, vocab_size, length).astype(np.int32)
        mask = np.arange(2 * length) >= length
        yield Trajectory(
            task_id=f"copy/{number}",
            group_id=f"copy/{number}",
            environment="",
            sample_index=0,
            tokens=np.concatenate([half, half]),
            loss_mask=mask,
            sampler_logprobs=np.where(mask, 0.0, np.nan).astype(np.float32),
            turn_ids=mask.astype(np.int16),
            turn_rewards=np.ones(1, np.float32),
            turn_reached=np.ones(1, np.bool_),
            status="completed",
        )
        number += 1


def _tasks(environment: Environment, count: int, seed: int) -> list[Task]:
    build = build_tasks(environment, count=count, seed=_TASK_SEED + seed, min_turns=3, max_turns=5)
    return list(build.tasks)
