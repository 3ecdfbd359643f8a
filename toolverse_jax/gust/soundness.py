"""Checks of a finished task that do not trust the grounder: forced calls, bindings, agents that must fail."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from toolverse_jax.environment.engine import Environment
from toolverse_jax.reward import turn_reward
from toolverse_jax.types import JSON, GoldenCall, Task, ToolCall

Results = Mapping[tuple[int, int], JSON]
"""Structured result of each golden call, by turn and call."""


def golden_results(environment: Environment, task: Task) -> dict[tuple[int, int], JSON]:
    """Run the golden calls and return their results."""
    session = environment.session(task.seed)
    return {
        (number, index): session.call(call.tool, call.arguments).value
        for number, turn in enumerate(task.turns)
        for index, call in enumerate(turn.golden)
    }


def binding_faults(task: Task, results: Results) -> list[str]:
    """Return the arguments whose binding does not lead to their value, one sentence each."""
    faults = []
    for place, call in _golden_calls(task):
        for parameter, binding in call.bindings.items():
            if binding.source not in ("ref", "prev"):
                continue
            source = (binding.turn or 0, binding.call or 0)
            value = _at(results.get(source), binding.path)
            if source >= place or value != call.arguments[parameter]:
                faults.append(
                    f"turn {place[0] + 1}: {parameter} of {call.tool} is not what its binding gives"
                )
    return faults


def unforced_calls(task: Task, results: Results, writes: Mapping[str, bool]) -> list[str]:
    """Return the golden reads that an assistant could do without, one sentence each.

    A read is forced where it shows an identifier for the first time that a later golden call takes,
    or where it shows something the conversation had not shown and no later call accounts for it.

    Args:
        task: the task.
        results: results of its golden calls.
        writes: whether a tool changes state, by name.
    """
    faults = []
    shown: set[str] = set()
    used = {
        (binding.turn or 0, binding.call or 0)
        for _, call in _golden_calls(task)
        for binding in call.bindings.values()
        if binding.source in ("ref", "prev")
    }
    made: set[str] = set()
    for place, call in _golden_calls(task):
        leaves = {f"{path}={value!r}" for path, value in _facts(results[place])}
        text = f"{call.tool} {sorted(call.arguments.items())!r}"
        news = leaves - shown or not leaves
        if not writes[call.tool] and (text in made or (place not in used and not news)):
            faults.append(f"turn {place[0] + 1}: {call.tool} shows nothing new")
        shown |= leaves
        made.add(text)
    return faults


def agent_rewards(task: Task, agent: str) -> tuple[float, ...]:
    """Return the turn rewards of an agent that must not solve the task.

    Args:
        task: the task.
        agent: `no_call` makes no calls; `user_values` makes the golden calls with what the user said
            only: an identifier is replaced by the words the row was referred to with.
    """
    rewards = []
    for turn in task.turns:
        calls: list[ToolCall] = []
        if agent == "user_values":
            calls = [_without_identifiers(call, turn.user) for call in turn.golden]
        rewards.append(turn_reward(turn, calls, changed=[False] * len(calls)))
    return tuple(rewards)


def _without_identifiers(call: GoldenCall, words: str) -> ToolCall:
    arguments = {
        name: value if call.bindings[name].source == "user" else words
        for name, value in call.arguments.items()
    }
    return ToolCall(name=call.tool, arguments=arguments)


def dependency_depth(task: Task) -> int:
    """Return the length of the longest chain of calls, each taking a value from the one before."""
    depth: dict[tuple[int, int], int] = {}
    for place, call in _golden_calls(task):
        sources = [
            depth.get((b.turn or 0, b.call or 0), 0)
            for b in call.bindings.values()
            if b.source in ("ref", "prev")
        ]
        depth[place] = 1 + max(sources, default=0)
    return max(depth.values(), default=0)


def _golden_calls(task: Task) -> Iterator[tuple[tuple[int, int], GoldenCall]]:
    for number, turn in enumerate(task.turns):
        for index, call in enumerate(turn.golden):
            yield (number, index), call


def _at(value: JSON, path: tuple[str | int, ...]) -> JSON:
    for step in path:
        if isinstance(value, Mapping) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def _facts(value: JSON, owner: str = "") -> Iterator[tuple[str, JSON]]:
    """Yield the facts of a result: members of rows, named by the row's first member, its identifier."""
    if isinstance(value, Mapping):
        rows = [item for item in value.values() if isinstance(item, list)]
        if not rows and value:
            owner = str(next(iter(value.values())))
        for name, item in value.items():
            if isinstance(item, Mapping | list):
                yield from _facts(item, owner)
            else:
                yield f"{owner}.{name}", item
    elif isinstance(value, list):
        for item in value:
            yield from _facts(item, owner)
