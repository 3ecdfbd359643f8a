from __future__ import annotations

import dataclasses

import pytest

from toolverse_jax.environment import Environment, load_environment
from toolverse_jax.gust.build import build_tasks
from toolverse_jax.gust.dataflow import changes_state
from toolverse_jax.gust.soundness import (
    agent_rewards,
    binding_faults,
    dependency_depth,
    golden_results,
    unforced_calls,
)
from toolverse_jax.paths import envs_dir
from toolverse_jax.types import Binding, GoldenCall, Task


@pytest.fixture(scope="module")
def environment() -> Environment:
    return load_environment(envs_dir() / "marina_berths")


@pytest.fixture(scope="module")
def task(environment: Environment) -> Task:
    tasks = build_tasks(environment, count=8, seed=2).tasks
    return next(t for t in tasks if t.turns[0].golden[0].tool == "list_piers")


def _with_first_turn(task: Task, golden: tuple[GoldenCall, ...]) -> Task:
    return dataclasses.replace(
        task, turns=(dataclasses.replace(task.turns[0], golden=golden), *task.turns[1:])
    )


def test_a_built_task_has_no_faults(environment: Environment, task: Task) -> None:
    writes = {op.tool: changes_state(op) for op in environment.spec.operations}
    results = golden_results(environment, task)
    assert binding_faults(task, results) == []
    assert unforced_calls(task, results, writes) == []


def test_a_repeated_lookup_is_not_forced(environment: Environment, task: Task) -> None:
    writes = {op.tool: changes_state(op) for op in environment.spec.operations}
    last = task.turns[-1]
    again = GoldenCall(tool="list_piers", arguments={})
    longer = dataclasses.replace(
        task, turns=(*task.turns[:-1], dataclasses.replace(last, golden=(*last.golden, again)))
    )
    faults = unforced_calls(longer, golden_results(environment, longer), writes)
    assert faults == [f"turn {task.num_turns}: list_piers shows nothing new"]


def test_a_binding_to_another_place_is_found(environment: Environment, task: Task) -> None:
    place = next(
        (t, c)
        for t, turn in enumerate(task.turns)
        for c in turn.golden
        if "ref" in {b.source for b in c.bindings.values()}
    )
    turn, call = place
    forged = {
        name: Binding(source="ref", turn=0, call=0, path=("nowhere",)) if b.source == "ref" else b
        for name, b in call.bindings.items()
    }
    golden = tuple(
        dataclasses.replace(c, bindings=forged) if c is call else c for c in task.turns[turn].golden
    )
    turns = tuple(dataclasses.replace(t, golden=golden) if i == turn else t for i, t in enumerate(task.turns))
    assert binding_faults(dataclasses.replace(task, turns=turns), golden_results(environment, task))


def test_an_agent_that_calls_nothing_earns_nothing(task: Task) -> None:
    assert agent_rewards(task, "no_call") == (0.0,) * task.num_turns


def test_an_agent_with_the_users_words_only_fails_where_identifiers_are_needed(task: Task) -> None:
    rewards = agent_rewards(task, "user_values")
    for reward, turn in zip(rewards, task.turns, strict=True):
        needs = any(b.source != "user" for call in turn.golden for b in call.bindings.values())
        assert reward == (0.0 if needs else 1.0)


def test_a_task_of_user_values_alone_is_solved_by_them(task: Task) -> None:
    alone = GoldenCall(tool="add_pier", arguments={"name": "X"}, bindings={"name": Binding(source="user")})
    assert agent_rewards(_with_first_turn(task, (alone,)), "user_values")[0] == 1.0


def test_depth_is_the_longest_chain_of_identifiers() -> None:
    first = GoldenCall(tool="a", arguments={})
    second = GoldenCall(tool="b", arguments={"x": 1}, bindings={"x": Binding(source="ref", turn=0, call=0)})
    third = GoldenCall(tool="c", arguments={"x": 1}, bindings={"x": Binding(source="prev", turn=0, call=1)})
    from toolverse_jax.types import TaskTurn

    turn = TaskTurn(user="", golden=(first, second, third))
    task = Task(id="t", environment="e", seed=0, turns=(turn,), final_state_hash="")
    assert dependency_depth(task) == 3
