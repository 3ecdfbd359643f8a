from __future__ import annotations

import itertools
import random

import pytest

from toolverse_jax.reward import count_extra_calls, covers, turn_reward
from toolverse_jax.types import GoldenCall, TaskTurn, ToolCall


def call(name: str, **arguments) -> ToolCall:
    return ToolCall(name=name, arguments=arguments)


def golden(tool: str, match: dict[str, str] | None = None, **arguments) -> GoldenCall:
    return GoldenCall(tool=tool, arguments=arguments, match=match or {})


def turn(*calls: GoldenCall, any_of: tuple[tuple[GoldenCall, ...], ...] = ()) -> TaskTurn:
    return TaskTurn(user="please", golden=calls, any_of=any_of)


def test_order_is_free_and_extra_calls_are_allowed():
    wanted = [call("a", x=1), call("b", x=2)]
    assert covers(wanted, [call("c"), call("b", x=2.0), call("a", x=1)])
    assert not covers(wanted, [call("a", x=1)])


def test_a_repeated_golden_call_needs_a_repeated_call():
    wanted = [call("a", x=1), call("a", x=1)]
    assert not covers(wanted, [call("a", x=1), call("b")])
    assert covers(wanted, [call("a", x=1), call("a", x=1)])


def test_matching_finds_the_assignment_that_a_greedy_one_misses():
    loose = golden("a", {"note": "ignore"}, id=1, note="n")
    strict = golden("a", id=1, note="m")
    calls = [call("a", id=1, note="m"), call("a", id=1, note="z")]
    for order in itertools.permutations(calls):
        assert covers([loose, strict], order)
        assert covers([strict, loose], order)


def test_matching_agrees_with_trying_every_assignment():
    draw = random.Random(0)
    modes = ({}, {"x": "ignore"}, {"y": "ignore"}, {"x": "optional"})
    for _ in range(300):
        wanted = [
            golden("t", draw.choice(modes), x=draw.randint(0, 1), y=draw.randint(0, 1))
            for _ in range(draw.randint(0, 3))
        ]
        calls = [call("t", x=draw.randint(0, 1), y=draw.randint(0, 1)) for _ in range(draw.randint(0, 4))]
        brute = any(
            all(covers([g], [c]) for g, c in zip(wanted, chosen, strict=True))
            for chosen in itertools.permutations(calls, len(wanted))
        )
        assert covers(wanted, calls) is brute


def test_covering_any_alternative_fulfils_the_turn():
    task_turn = turn(golden("a"), any_of=((golden("b"), golden("c")),))
    assert turn_reward(task_turn, [call("a")]) == 1.0
    assert turn_reward(task_turn, [call("c"), call("b")]) == 1.0
    assert turn_reward(task_turn, [call("b")]) == 0.0


@pytest.mark.parametrize(
    ("changed", "reward"), [(False, 1.0), (True, 0.0), ([False, False], 1.0), ([False, True], 0.0)]
)
def test_a_turn_without_golden_calls_is_fulfilled_iff_nothing_changed(changed, reward):
    assert turn_reward(turn(), [call("look"), call("write")], changed=changed) == reward


def test_a_turn_without_golden_calls_is_fulfilled_by_no_calls():
    assert turn_reward(turn(), []) == 1.0


def test_a_turn_without_golden_calls_cannot_be_judged_without_knowing_what_changed():
    with pytest.raises(ValueError, match="changed"):
        turn_reward(turn(), [call("look")])


def test_an_extra_call_that_changed_state_costs_the_reward_only_under_no_mutation():
    task_turn = turn(golden("pay", id=1))
    calls = [call("look"), call("pay", id=1), call("pay", id=1)]
    once, twice = [False, True, False], [False, True, True]
    assert turn_reward(task_turn, calls, changed=twice) == 1.0
    assert turn_reward(task_turn, calls, changed=twice, extra_calls="no_mutation") == 0.0
    assert turn_reward(task_turn, calls, changed=once, extra_calls="no_mutation") == 1.0
    assert turn_reward(task_turn, calls[:2], changed=[True, True], extra_calls="no_mutation") == 0.0


def test_the_number_of_flags_must_be_the_number_of_calls():
    with pytest.raises(ValueError, match="one flag per call"):
        turn_reward(turn(golden("a")), [call("a")], changed=[True, False])


def test_extra_calls_are_those_no_golden_call_accounts_for():
    task_turn = turn(golden("a"), golden("a"), any_of=((golden("b"), golden("c"), golden("d")),))
    assert count_extra_calls(task_turn, []) == 0
    assert count_extra_calls(task_turn, [call("a"), call("a"), call("a")]) == 1
    assert count_extra_calls(task_turn, [call("a"), call("b"), call("c"), call("d")]) == 1
    assert count_extra_calls(turn(), [call("a")]) == 1
