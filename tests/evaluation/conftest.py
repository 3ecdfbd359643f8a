"""A small run folder, written by the code that writes real ones."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from toolverse_jax.config import RunConfig
from toolverse_jax.evaluation import EpisodeScore, EvaluationResult, write_result
from toolverse_jax.gust import write_tasks
from toolverse_jax.rollout.episode_record import EpisodeRecord, check_trajectory
from toolverse_jax.train.metrics import MetricsWriter
from toolverse_jax.train.run_folder import RunFolder
from toolverse_jax.types import GoldenCall, Task, TaskTurn, Trajectory

ENVIRONMENT = Path(__file__).parents[2] / "envs" / "marina_berths"
HOSTILE = '<script>alert("tool")</script><img src=x onerror=alert(1)>'


def make_result(label: str, rewards: Sequence[Sequence[float]], **fields) -> EvaluationResult:
    """Return a result with one episode for each tuple of turn rewards, two to an environment."""
    episodes = tuple(
        EpisodeScore(
            task_id=f"task/{number}",
            environment=f"place_{number // 2}",
            turn_rewards=tuple(turns),
            status="completed",
            stats={"tool_calls": 2.0, "tool_errors": 1.0},
        )
        for number, turns in enumerate(rewards)
    )
    return EvaluationResult(
        **{"label": label, "settings": {"policy": "tiny"}, "episodes": episodes, **fields}
    )


def make_task(number: int, turns: int = 2) -> Task:
    return Task(
        id=f"marina_berths/7/{number}",
        environment="marina_berths",
        seed=number,
        turns=tuple(
            TaskTurn(user=f"Ask {turn} & wait", golden=(GoldenCall(tool="get_berth", arguments={"n": turn}),))
            for turn in range(turns)
        ),
        final_state_hash="",
    )


def make_rollout(task: Task, sample: int, rewards: Sequence[float], reached: int | None = None) -> Trajectory:
    """Return a rollout whose token ids are the code points of its text."""
    record = EpisodeRecord(task)

    def note(role: str, text: str, turn: int, *, sampled: bool = False, **more) -> None:
        ids = [ord(letter) for letter in text]
        span = record.append(ids, turn, [-0.5] * len(ids) if sampled else None)
        record.note(role, text, turn_id=turn, span=span, **more)

    note("system", "Tools: get_berth(n)\n", 0)
    for turn in range(len(rewards) if reached is None else reached):
        record.turn_reached[turn] = True
        record.turn_rewards[turn] = rewards[turn]
        note("user", task.turns[turn].user, turn + 1)
        call = {"name": "get_berth", "arguments": {"n": turn if rewards[turn] else 99}}
        note(
            "assistant",
            f"call <{call}>",
            turn + 1,
            sampled=True,
            tool_calls=[call],
            errors=[],
            finish_reason="stop",
        )
        note("tool", HOSTILE, turn + 1, name="get_berth", is_error=not rewards[turn])
        note(
            "assistant",
            f"answer {turn} of sample {sample}",
            turn + 1,
            sampled=True,
            tool_calls=[],
            finish_reason="stop",
        )
    trajectory = record.trajectory(status="completed", group_id=task.id, sample_index=sample)
    check_trajectory(trajectory)
    return trajectory


def decode(ids: Sequence[int]) -> str:
    return "".join(map(chr, ids))


def write_train(folder: Path, samples: Sequence[tuple[Trajectory, np.ndarray]], *, step: int = 3) -> None:
    run = RunFolder(folder)
    run.claim(RunConfig())
    writer = MetricsWriter(run.metrics)
    for number in range(1, step + 1):
        writer.write(
            number,
            {
                "reward/mean_turn": 0.25 * number,
                "reward/trace_score": 0.125 * number,
                "reward/turn_1": 0.3,
                "reward/turn_2": 0.2,
                "rollout/tool_errors": 1.5,
                "policy/entropy": float("nan"),
            },
        )
    run.write_trajectories(step, samples, decode)


@pytest.fixture(scope="session")
def samples() -> list[tuple[Trajectory, np.ndarray]]:
    """Groups of two rollouts of three tasks: right and wrong, half right and wrong, wrong and cut off."""
    tasks = [make_task(number) for number in range(3)]
    return [
        (make_rollout(tasks[0], 0, (1, 1)), np.array([1.25, 0.0])),
        (make_rollout(tasks[0], 1, (0, 1)), np.array([-1.25, 0.0])),
        (make_rollout(tasks[1], 0, (1, 0)), np.array([0.5, -0.75])),
        (make_rollout(tasks[1], 1, (0, 0)), np.array([-0.5, -0.75])),
        (make_rollout(tasks[2], 0, (0, 0)), np.array([0.0, 0.0])),
        (make_rollout(tasks[2], 1, (0, 0), reached=1), np.array([0.0, 0.0])),
    ]


@pytest.fixture(scope="session")
def whole_run(samples, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with all its parts; tests must not change it."""
    run = tmp_path_factory.mktemp("runs") / "pilot"
    write_train(run / "train", samples)
    shutil.copytree(ENVIRONMENT, run / "envs" / "marina_berths")
    (run / "tasks").mkdir()
    write_tasks(run / "tasks" / "train.jsonl", [make_task(number) for number in range(3)])
    before = [(1, 0), (0, 0), (1, 0, 0), (0, 0)]
    after = [(1, 1), (1, 0), (1, 1, 1), (0, 1)]
    for name in ("heldout_tasks", "heldout_environments"):
        write_result(run / "eval" / f"before_{name}.json", make_result("before", before))
        write_result(run / "eval" / f"after_{name}.json", make_result("after", after))
    return run


@pytest.fixture
def copy_of_run(whole_run: Path, tmp_path: Path) -> Callable[..., Path]:
    """Copies chosen parts of the run into a fresh folder."""

    def copy(*parts: str) -> Path:
        run = tmp_path / "pilot"
        run.mkdir()
        for part in parts:
            shutil.copytree(whole_run / part, run / part)
        return run

    return copy


@pytest.fixture(scope="session")
def result_of() -> Callable[..., EvaluationResult]:
    return make_result


@pytest.fixture(scope="session")
def task_of() -> Callable[..., Task]:
    return make_task


@pytest.fixture(scope="session")
def rollout_of() -> Callable[..., Trajectory]:
    return make_rollout


@pytest.fixture(scope="session")
def write_train_folder() -> Callable[..., None]:
    return write_train


@pytest.fixture(scope="session")
def hostile_output() -> str:
    """What a tool of the run answers: markup that must stay text."""
    return HOSTILE
