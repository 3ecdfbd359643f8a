"""Groups arrive whole or not at all, in the order of the tasks, whatever the order of the answers."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import numpy as np
import pytest

from toolverse_jax.config import RolloutConfig
from toolverse_jax.environment import Environment
from toolverse_jax.errors import EngineError, TaskError
from toolverse_jax.rollout import (
    Generation,
    GenerationRequest,
    Renderer,
    ScriptedEngine,
    collect,
    golden_script,
)
from toolverse_jax.types import Task


class SlowOracle(ScriptedEngine):
    """Answers episodes in a shuffled order and fails those it is told to."""

    def __init__(
        self, scripts: Any, *, waits: int = 0, failing: tuple[str, ...] = (), version: int = 0
    ) -> None:
        super().__init__(scripts, policy_version=version)
        self._waits, self._failing = waits, failing
        self.running: set[str] = set()
        self.most_running = 0

    async def generate(self, request: GenerationRequest) -> Generation:
        self.running.add(request.sequence_id)
        self.most_running = max(self.most_running, len(self.running))
        for _ in range(self._waits * request.seed % 7):
            await asyncio.sleep(0)
        if request.sequence_id in self._failing:
            raise EngineError(f"no answer for {request.sequence_id}")
        return await super().generate(request)

    def release(self, sequence_id: str) -> None:
        self.running.discard(sequence_id)
        super().release(sequence_id)


@pytest.fixture
def tasks(task: Task) -> list[Task]:
    return [dataclasses.replace(task, id=f"slipway-{index}") for index in range(3)]


@pytest.fixture
def scripts(tasks: list[Task], renderer: Renderer) -> dict[str, list[list[int]]]:
    idle = [renderer.assistant("Done.")] * 3
    return {task.id: golden_script(task, renderer) if n != 1 else idle for n, task in enumerate(tasks)}


def run(tasks: list[Task], environment: Environment, engine: Any, renderer: Renderer, **options: Any):
    options = {"group_size": 3, "seed": 1, **options}
    return collect(tasks, {"slipway": environment}, engine, renderer, **options)


def test_groups_come_in_the_order_of_tasks_and_samples(
    tasks: list[Task], environment: Environment, renderer: Renderer, scripts: Any
):
    plain = run(tasks, environment, SlowOracle(scripts), renderer)
    slow = run(tasks, environment, SlowOracle(scripts, waits=5), renderer)
    assert len(plain) == 3 and plain.metrics() == slow.metrics()
    for group, other, task in zip(plain, slow, tasks, strict=True):
        assert [member.sample_index for member in group] == [0, 1, 2]
        assert {member.task_id for member in group} == {task.id}
        assert len({member.group_id for member in group}) == 1
        for member, twin in zip(group, other, strict=True):
            assert np.array_equal(member.tokens, twin.tokens) and member.messages == twin.messages
    assert [float(group[0].turn_rewards.sum()) for group in plain] == [3, 0, 3]
    assert plain.metrics()["rollout/trace_score"] == pytest.approx(2 / 3)


def test_a_failed_group_is_played_once_more(
    tasks: list[Task], environment: Environment, renderer: Renderer, scripts: Any
):
    engine = SlowOracle(scripts, failing=("slipway-1#2.0",))
    collection = run(tasks, environment, engine, renderer)
    assert len(collection) == 3 and collection.num_retried == 1 and not collection.dropped
    assert [len(group) for group in collection] == [3, 3, 3]
    assert sum(request.sequence_id.endswith(".1") for request in engine.requests) == 3 * 3


def test_a_group_that_fails_twice_is_dropped_whole_and_counted(
    tasks: list[Task], environment: Environment, renderer: Renderer, scripts: Any
):
    engine = SlowOracle(scripts, failing=("slipway-1#2.0", "slipway-1#0.1"))
    collection = run(tasks, environment, engine, renderer)
    assert [group[0].task_id for group in collection] == ["slipway-0", "slipway-2"]
    assert collection.num_retried == 1 and len(collection.dropped) == 1
    assert "no answer for slipway-1#0.1" in collection.dropped[0]
    assert collection.metrics()["rollout/dropped_groups"] == 1


def test_a_task_listed_twice_gets_two_groups_of_different_samples(
    tasks: list[Task], environment: Environment, renderer: Renderer, scripts: Any
):
    engine = SlowOracle(scripts)
    first, second = run([tasks[0], tasks[0]], environment, engine, renderer)
    assert first[0].group_id != second[0].group_id
    assert [member.sample_index for member in [*first, *second]] == [0, 1, 2, 3, 4, 5]
    assert len({request.seed for request in engine.requests}) == len(engine.requests)


def test_no_more_episodes_run_at_once_than_there_are_slots(
    tasks: list[Task], environment: Environment, renderer: Renderer, scripts: Any
):
    engine = SlowOracle(scripts, waits=1)
    assert len(run(tasks, environment, engine, renderer, config=RolloutConfig(slots=2))) == 3
    assert engine.most_running == 2 and not engine.running


def test_an_engine_with_stale_parameters_is_refused(
    tasks: list[Task], environment: Environment, renderer: Renderer, scripts: Any
):
    collection = run(tasks, environment, SlowOracle(scripts, version=4), renderer, policy_version=4)
    assert {member.policy_version for group in collection for member in group} == {4}
    with pytest.raises(EngineError, match="policy version 3, expected 4"):
        run(tasks, environment, SlowOracle(scripts, version=3), renderer, policy_version=4)


def test_a_missing_environment_is_named(tasks: list[Task], renderer: Renderer, scripts: Any):
    with pytest.raises(TaskError, match="environment 'slipway' is not loaded"):
        collect(tasks, {}, ScriptedEngine(scripts), renderer, group_size=2, seed=0)


def test_nothing_to_collect_is_an_empty_collection(environment: Environment, renderer: Renderer):
    collection = run([], environment, ScriptedEngine([]), renderer)
    assert len(collection) == 0 and collection.metrics()["rollout/groups"] == 0


def test_groups_whose_first_prompt_is_too_long_are_dropped_and_named(
    tasks: list[Task], environment: Environment, renderer: Renderer, scripts: Any
):
    config = RolloutConfig(max_prompt_tokens=5)
    collection = run(tasks, environment, SlowOracle(scripts), renderer, config=config)
    assert not len(collection) and not collection.num_retried
    assert [reason.partition(": ")[2] for reason in collection.dropped] == [
        "the first prompt is too long"
    ] * 3
