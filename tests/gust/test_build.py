from __future__ import annotations

import time

import pytest

from toolverse_jax.environment import Environment, list_environments, load_environment
from toolverse_jax.gust import task_from_json, task_to_json
from toolverse_jax.gust.build import MAX_CALLS, MIN_CALLS, TaskBuild, build_tasks
from toolverse_jax.gust.replay import replay, replay_langgraph
from toolverse_jax.gust.soundness import agent_rewards
from toolverse_jax.paths import envs_dir
from toolverse_jax.reward import turn_reward


@pytest.fixture(scope="module", params=list_environments(envs_dir()))
def built(request: pytest.FixtureRequest) -> tuple[Environment, TaskBuild]:
    environment = load_environment(envs_dir() / request.param)
    return environment, build_tasks(environment, count=25, seed=5)


def test_as_many_tasks_as_wanted_are_built(built) -> None:
    environment, build = built
    assert len(build.tasks) == 25
    assert all(task.environment == environment.name for task in build.tasks)
    assert sum(build.drops.values()) <= 25
    # The checks of finished tasks are a second line: what the grounder makes passes them.
    assert set(build.drops) <= {
        "changes_nothing",
        "no_words",
        "repeated_first_message",
        "too_few_calls",
        "too_few_turns",
    }


def test_tasks_have_three_to_five_turns_and_four_to_nine_calls(built) -> None:
    for task in built[1].tasks:
        assert 3 <= task.num_turns <= 5
        assert MIN_CALLS <= task.num_calls <= MAX_CALLS
        assert all(1 <= len(turn.golden) <= 3 for turn in task.turns)
        assert task.difficulty["turns"] == task.num_turns and task.difficulty["calls"] == task.num_calls


def test_every_task_replays(built) -> None:
    environment, build = built
    for task in build.tasks:
        assert replay(environment, task).ok
    assert replay_langgraph(environment, build.tasks[0]).ok


def test_agents_that_must_fail_do_fail(built) -> None:
    for task in built[1].tasks:
        assert not any(agent_rewards(task, "no_call"))
        assert not all(agent_rewards(task, "user_values"))


def test_leaving_out_any_golden_call_costs_the_turn(built) -> None:
    for task in built[1].tasks:
        for turn in task.turns:
            calls = [call.as_tool_call() for call in turn.golden]
            assert turn_reward(turn, calls) == 1.0
            for index in range(len(calls)):
                assert turn_reward(turn, calls[:index] + calls[index + 1 :]) == 0.0


def test_alternatives_are_golden_sets_of_the_same_size(built) -> None:
    for task in built[1].tasks:
        for turn in task.turns:
            for alternative in turn.any_of:
                assert len(alternative) == len(turn.golden)
                assert turn_reward(turn, [call.as_tool_call() for call in alternative]) == 1.0


def test_first_messages_are_all_different(built) -> None:
    first = [task.turns[0].user for task in built[1].tasks]
    assert len(set(first)) == len(first)


def test_most_tools_are_used(built) -> None:
    assert built[1].coverage_share >= 0.85


def test_tasks_survive_a_round_trip_through_json(built) -> None:
    for task in built[1].tasks[:3]:
        assert task_from_json(task_to_json(task)) == task


def test_the_same_seed_builds_the_same_tasks_and_another_seed_others() -> None:
    environment = load_environment(envs_dir() / "choir_calendar")
    first = build_tasks(environment, count=5, seed=3)
    assert first == build_tasks(environment, count=5, seed=3)
    assert first.tasks != build_tasks(environment, count=5, seed=4).tasks


def test_thirty_tasks_take_less_than_a_second_of_processor_time() -> None:
    environment = load_environment(envs_dir() / "marina_berths")
    build_tasks(environment, count=1, seed=0)
    start = time.process_time()
    assert len(build_tasks(environment, count=30, seed=1).tasks) == 30
    assert time.process_time() - start < 1.0


@pytest.mark.parametrize(("count", "low", "high"), [(-1, 3, 5), (1, 0, 5), (1, 4, 3)])
def test_bounds_that_make_no_sense_are_refused(count: int, low: int, high: int) -> None:
    environment = load_environment(envs_dir() / "choir_calendar")
    with pytest.raises(ValueError, match="min_turns"):
        build_tasks(environment, count=count, seed=0, min_turns=low, max_turns=high)
