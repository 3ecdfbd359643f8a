"""Builds the task files of a folder of environments: training and two held-out sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from toolverse_jax.environment import Environment, load_environment
from toolverse_jax.environment.catalog import list_environments
from toolverse_jax.errors import EnvironmentSpecError, TaskError
from toolverse_jax.gust.build import TaskBuild, build_tasks
from toolverse_jax.gust.dataset import write_checksums, write_tasks
from toolverse_jax.synthesis.pipeline import split_of
from toolverse_jax.synthesis.toolset import read_toolset
from toolverse_jax.types import JSON, Task

TRAIN_FILE = "train.jsonl"
HELDOUT_TASKS_FILE = "heldout_tasks.jsonl"
"""Training environments with other seeds, so with other rows, identifiers and wordings."""
HELDOUT_ENVIRONMENTS_FILE = "heldout_environments.jsonl"
"""Environments that no training task is about."""

# Far apart, so that the two sets of a training environment draw from different seeds.
_EVALUATION_SEED_OFFSET = 1_000_003


def build_collection(
    envs_dir: Path,
    out_dir: Path,
    *,
    train_per_environment: int,
    evaluation_per_environment: int,
    min_turns: int,
    max_turns: int,
    seed: int,
    on_progress: Callable[[str], None] = lambda line: None,
) -> dict[str, JSON]:
    """Build and write train.jsonl, heldout_tasks.jsonl, heldout_environments.jsonl and SHA256SUMS.

    The split of an environment is the `split:` label of its toolset. The same arguments give the same
    bytes.

    Returns:
        Counts of tasks, turns and dropped candidates, and the share of tools that tasks use.

    Raises:
        EnvironmentSpecError: the folder holds no environment or an invalid one.
        TaskError: an environment gives no task, or an evaluation task repeats a training task.
    """
    names = list_environments(envs_dir)
    if not names:
        raise EnvironmentSpecError(
            f"{envs_dir} holds no environment (*/env.json); write some with `toolverse synthesize`"
        )
    sets: dict[str, list[Task]] = {TRAIN_FILE: [], HELDOUT_TASKS_FILE: [], HELDOUT_ENVIRONMENTS_FILE: []}
    drops: Counter[str] = Counter()
    used_tools = all_tools = 0
    for number, name in enumerate(names, start=1):
        environment = load_environment(envs_dir / name)
        held_out = split_of(read_toolset(envs_dir / name / "toolset.json")) == "held-out"
        wanted = {HELDOUT_ENVIRONMENTS_FILE: evaluation_per_environment}
        if not held_out:
            wanted = {TRAIN_FILE: train_per_environment, HELDOUT_TASKS_FILE: evaluation_per_environment}
        line = []
        for file, count in wanted.items():
            build = _build(environment, count, file, seed, min_turns, max_turns)
            sets[file] += build.tasks
            drops.update(build.drops)
            line.append(f"{len(build.tasks)} {'training' if file == TRAIN_FILE else 'held-out'}")
            if file != HELDOUT_TASKS_FILE:
                used_tools += sum(uses > 0 for uses in build.coverage.values())
                all_tools += len(build.coverage)
        on_progress(f"[{number}/{len(names)}] {name}: {' and '.join(line)} tasks")
    _check_disjoint(sets[TRAIN_FILE], sets[HELDOUT_TASKS_FILE])
    out_dir.mkdir(parents=True, exist_ok=True)
    for file, tasks in sets.items():
        write_tasks(out_dir / file, tasks)
    write_checksums(out_dir, list(sets))
    every = [task for tasks in sets.values() for task in tasks]
    return {
        "environments": len(names),
        **{file.removesuffix(".jsonl"): len(tasks) for file, tasks in sets.items()},
        "turns": sum(task.num_turns for task in every),
        "golden_calls": sum(task.num_calls for task in every),
        "dropped_candidates": sum(drops.values()),
        "tool_coverage": used_tools / all_tools,
    }


def _build(
    environment: Environment, count: int, file: str, seed: int, min_turns: int, max_turns: int
) -> TaskBuild:
    if file == HELDOUT_TASKS_FILE:
        seed += _EVALUATION_SEED_OFFSET
    build = build_tasks(environment, count=count, seed=seed, min_turns=min_turns, max_turns=max_turns)
    if not build.tasks:
        reasons = ", ".join(f"{reason}: {number}" for reason, number in sorted(build.drops.items()))
        raise TaskError(
            f"environment {environment.name} gives no task of {min_turns} to {max_turns} turns ({reasons}); "
            "allow other lengths or leave it out"
        )
    return build


def _check_disjoint(train: list[Task], held_out: list[Task]) -> None:
    seeds = {(task.environment, task.seed) for task in train}
    shared = [task for task in held_out if (task.environment, task.seed) in seeds]
    if shared:
        raise TaskError(
            f"held-out task {shared[0].id} has the episode seed of a training task; choose another seed"
        )
