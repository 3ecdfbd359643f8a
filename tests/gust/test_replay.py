from __future__ import annotations

import dataclasses

import pytest

from toolverse_jax.environment import Environment, load_environment
from toolverse_jax.errors import TaskError
from toolverse_jax.gust.build import build_tasks
from toolverse_jax.gust.replay import replay, replay_langgraph
from toolverse_jax.paths import envs_dir
from toolverse_jax.types import Task


@pytest.fixture(scope="module")
def environment() -> Environment:
    return load_environment(envs_dir() / "marina_berths")


@pytest.fixture(scope="module")
def tasks(environment: Environment) -> tuple[Task, ...]:
    return build_tasks(environment, count=6, seed=11).tasks


def test_both_replayers_agree_on_good_tasks(environment: Environment, tasks: tuple[Task, ...]) -> None:
    for task in tasks:
        direct, independent = replay(environment, task), replay_langgraph(environment, task)
        assert direct.ok and independent.ok
        assert direct == independent


@pytest.mark.parametrize("replayer", [replay, replay_langgraph])
def test_a_wrong_identifier_is_found(replayer, environment: Environment, tasks: tuple[Task, ...]) -> None:
    task = next(t for t in tasks if any(b.source != "user" for b in t.turns[-1].golden[-1].bindings.values()))
    last = task.turns[-1]
    call = last.golden[-1]
    forged = {n: "zzzzz" if call.bindings[n].source != "user" else v for n, v in call.arguments.items()}
    golden = (*last.golden[:-1], dataclasses.replace(call, arguments=forged))
    broken = dataclasses.replace(task, turns=(*task.turns[:-1], dataclasses.replace(last, golden=golden)))
    report = replayer(environment, broken)
    assert report.errors and not report.ok


@pytest.mark.parametrize("replayer", [replay, replay_langgraph])
def test_a_wrong_final_state_is_found(replayer, environment: Environment, tasks: tuple[Task, ...]) -> None:
    report = replayer(environment, dataclasses.replace(tasks[0], final_state_hash="0" * 32))
    assert not report.errors and not report.ok


def test_a_task_of_another_environment_is_refused(environment: Environment, tasks: tuple[Task, ...]) -> None:
    with pytest.raises(TaskError, match="is of environment 'elsewhere'"):
        replay(environment, dataclasses.replace(tasks[0], environment="elsewhere"))
