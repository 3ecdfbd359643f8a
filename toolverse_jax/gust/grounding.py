"""Grounding: turns stages of tools into golden calls that run, with the origin of every argument.

Goals are taken in topological order and executed on a session one by one. An identifier the
conversation has not shown is looked up first, by the shortest chain of lists; one it has shown is not
looked up again. A goal that fails on one row is tried on another, then dropped with a reason.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from toolverse_jax.environment.engine import Environment
from toolverse_jax.environment.spec import Operation
from toolverse_jax.gust.alternatives import prune_alternatives
from toolverse_jax.gust.dataflow import changes_state, terminal_entities
from toolverse_jax.gust.goals import CannotGround, GoalGrounder
from toolverse_jax.gust.graph import ToolDependencyGraph
from toolverse_jax.gust.knowledge import Knowledge
from toolverse_jax.gust.randomness import seeded_random
from toolverse_jax.gust.referring import Referrer
from toolverse_jax.gust.trace import GroundedCall, GroundedTrace, GroundedTurn
from toolverse_jax.gust.wording import Wording
from toolverse_jax.types import JSON, Binding

MAX_TURN_CALLS = 3
_MAX_TURN_GOALS = 2
_READS = ("list", "search", "get", "aggregate", "settings")


def ground(
    environment: Environment,
    graph: ToolDependencyGraph,
    stages: Sequence[Sequence[str]],
    seed: int,
    *,
    min_turns: int = 1,
    max_turns: int = 7,
    max_calls: int = 21,
    wording: Wording | None = None,
) -> GroundedTrace | None:
    """Ground one trace.

    Args:
        environment: the environment.
        graph: its tool dependency graph; says which lists to take an identifier from.
        stages: tools by stage, see `sampler.sample_stages`.
        seed: seed of the episode's rows and of all choices.
        min_turns: fewest turns of a trace worth having.
        max_turns: the trace ends after this many turns.
        max_calls: the trace ends before it has more calls.
        wording: words of the environment, to save building them again.

    Returns:
        The trace, or None where fewer than `min_turns` turns could be grounded.
    """
    grounder = _Grounder(environment, graph, seed, wording or Wording(environment.spec))
    grounder.run(stages, max_turns, max_calls)
    if len(grounder.turns) < min_turns:
        return None
    return GroundedTrace(
        environment=environment.name,
        graph_id=graph.graph_id,
        seed=seed,
        turns=prune_alternatives(grounder.turns),
        final_state_hash=grounder.session.state_hash(),
        identifiers=grounder.identifiers(),
        dropped=tuple(grounder.dropped),
    )


class _Grounder:
    def __init__(
        self, environment: Environment, graph: ToolDependencyGraph, seed: int, wording: Wording
    ) -> None:
        self.wording = wording
        self.graph = graph
        self.session = environment.session(seed)
        self.knowledge = Knowledge(wording)
        rng = seeded_random("ground", environment.name, graph.graph_id, seed)
        self.referrer = Referrer(wording, graph, self.session, self.knowledge, rng)
        self.goals = GoalGrounder(wording, self.session, self.knowledge, self.referrer, rng)
        self.turns: list[GroundedTurn] = []
        self.dropped: list[tuple[str, str]] = []
        self.open: list[GroundedCall] = []
        """Calls of the turn that is being filled."""
        self.year_before: int | None = None
        self.num_calls = 0
        self._first_identifiers = self._row_identifiers()

    def identifiers(self) -> tuple[JSON, ...]:
        """Return the identifiers of all rows there were, are or were shown."""
        return tuple(
            dict.fromkeys([*self._first_identifiers, *self._row_identifiers(), *self.knowledge.sources])
        )

    def _row_identifiers(self) -> list[JSON]:
        entities = self.wording.entities.values()
        return [row[entity.id_name] for entity in entities for row in self.session.rows(entity.name)]

    @property
    def turn(self) -> int:
        return len(self.turns)

    def run(self, stages: Sequence[Sequence[str]], max_turns: int, max_calls: int) -> None:
        for stage in stages:
            for position, tool in enumerate(stage):
                if self._serves(tool, stage[position + 1 :]):
                    continue
                try:
                    self._add_goal(tool, max_turns, max_calls)
                except CannotGround as failure:
                    self.dropped.append((tool, str(failure)))
            self._close_turn()
            if self.turn >= max_turns:
                return

    def _serves(self, tool: str, later: Sequence[str]) -> bool:
        """Return whether a read stands in the stage only for a goal after it."""
        return not self.graph.trait(tool).changes_state and any(
            edge.producer == tool and edge.parameter is not None
            for other in later
            for edge in self.graph.incoming(other)
        )

    # --- goals --------------------------------------------------------------------------------

    def _add_goal(self, tool: str, max_turns: int, max_calls: int) -> None:
        """Ground a goal in the open turn, or in a new one where it does not fit."""
        operation = self.wording.operations[tool]
        if self.open and not self._goes_with_turn(operation):
            self._close_turn()
        while self.turn < max_turns:
            room = min(MAX_TURN_CALLS - len(self.open), max_calls - self.num_calls)
            try:
                return self._execute_best(tool, room)
            except CannotGround:
                if not self.open:
                    raise
                self._close_turn()
        raise CannotGround("no_turn_left")

    def _execute_best(self, tool: str, room: int) -> None:
        reason = "too_many_calls"
        for calls in self.goals.candidates(tool, self.turn):
            if len(calls) > room or not self._may_follow(calls[-1]):
                continue
            try:
                return self._commit(self._execute(calls))
            except CannotGround as failure:
                reason = str(failure)
        raise CannotGround(reason)

    def _execute(self, calls: list[GroundedCall]) -> list[GroundedCall]:
        """Run look-ups and goal; on any failure the session is as before."""
        before = self.session.snapshot()
        done: list[GroundedCall] = []
        try:
            for call in calls:
                result = self.session.call(call.tool, call.arguments)
                if result.is_error:
                    raise CannotGround(f"failed_{result.value['error']['code']}")
                call = dataclasses.replace(call, result=result.value)
                if call.goal:
                    call = self._settle(call, changed=self.session.journal[-1].changed)
                done.append(call)
        except CannotGround:
            self.session.restore(before)
            raise
        return done

    def _settle(self, call: GroundedCall, changed: bool) -> GroundedCall:
        operation = self.wording.operations[call.tool]
        if changes_state(operation):
            if not changed:
                raise CannotGround("no_change")
            return call
        ask = self.goals.questioner.settle(call)
        if ask is None:
            raise CannotGround("already_known")
        return dataclasses.replace(call, ask=ask)

    def _commit(self, calls: list[GroundedCall]) -> None:
        if not self.open:
            self.year_before = self.knowledge.year
        for call in calls:
            bindings = self._bind(call)
            call = dataclasses.replace(
                call,
                bindings=bindings,
                alternatives=tuple(
                    dataclasses.replace(
                        other, bindings={p: bindings[p] for p in other.arguments if p in bindings}
                    )
                    for other in call.alternatives
                ),
            )
            self.knowledge.observe(call, self.turn, len(self.open))
            self._note_changes(call)
            self.open.append(call)
            self.num_calls += 1

    def _bind(self, call: GroundedCall) -> dict[str, Binding]:
        bindings: dict[str, Binding] = {}
        for parameter in call.arguments:
            reference = call.references.get(parameter)
            if reference is None:
                bindings[parameter] = Binding(source="user")
                continue
            turn, index, path = self.knowledge.sources[reference.id]
            source = "ref" if reference.mention == "described" else "prev"
            bindings[parameter] = Binding(source=source, turn=turn, call=index, path=path)
        return bindings

    def _note_changes(self, call: GroundedCall) -> None:
        operation = self.wording.operations[call.tool]
        if terminal_entities(self.wording.spec, operation):
            self.goals.ended.update(reference.id for reference in call.references.values())
        if operation.verb == "update":
            for parameter in call.said:
                place = self.wording.argument_field(call.tool, parameter)
                for reference in call.references.values():
                    if place is not None:
                        self.goals.changed.add((reference.id, place[1]))

    # --- turns --------------------------------------------------------------------------------

    def _goes_with_turn(self, operation: Operation) -> bool:
        """Return whether a goal may share a message with the goals already in it.

        The order of calls inside a turn is free, so goals of one turn must not depend on it: two
        new rows of one entity would swap identifiers, a list after a change would differ.
        """
        goals = [call for call in self.open if call.goal]
        if len(goals) >= _MAX_TURN_GOALS or len(self.open) >= MAX_TURN_CALLS:
            return False
        for call in goals:
            other = self.wording.operations[call.tool]
            if other.tool == operation.tool:
                return False
            if other.entity == operation.entity and (
                operation.verb in _READS or other.verb in _READS or "create" in (operation.verb, other.verb)
            ):
                return False
            if operation.verb in ("list", "search") and other.verb in ("list", "search"):
                return False
        return True

    def _may_follow(self, goal: GroundedCall) -> bool:
        """Return whether a goal leaves alone the rows that other goals of the turn change."""
        touched = {r.id for call in self.open if call.goal for r in call.references.values()}
        operation = self.wording.operations[goal.tool]
        if not touched or operation.verb in ("create", *_READS):
            return True
        return all(reference.id not in touched for reference in goal.references.values())

    def _close_turn(self) -> None:
        if not self.open:
            return
        self.turns.append(GroundedTurn(calls=tuple(self.open), year=self.year_before))
        self.knowledge.note_years(self.open)
        self.open = []
