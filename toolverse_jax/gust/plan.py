"""Chooses what a trace is about: goals, one producer for each slot they need, and what precedes what."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from toolverse_jax.gust.graph import Slot, ToolDependencyGraph

_OPTIONAL_RATE = 0.5
"""How often a slot is honoured that its tool can do without."""
_STRONG_EVIDENCE = 0.75
_MAX_VISITS = 3
_REVISIT_APPEAL = 0.15
"""Weight of a tool that is a goal already, so that second visits stay rare while other tools are left."""


class CoverageLedger:
    """Counts how often each tool was used, so that later traces prefer tools that were used less."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def record(self, stages: Iterable[Iterable[str]]) -> None:
        """Add the calls of one trace."""
        for stage in stages:
            self.counts.update(stage)

    def weight(self, tool: str) -> float:
        """Return the preference for a tool, from 1 (unused) towards 0."""
        return (1 + self.counts[tool]) ** -1.5

    def coverage(self, tools: Sequence[str]) -> float:
        """Return the share of `tools` that was used at least once."""
        return sum(self.counts[tool] > 0 for tool in tools) / len(tools) if tools else 1.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Unit:
    """A goal with the lookups that lead to it."""

    number: int
    tool: str
    lookups: tuple[str, ...]
    """In order of dependency; a lookup that an earlier unit performed is not repeated."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """Units and the acyclic relation between them."""

    units: tuple[Unit, ...]
    before: Mapping[int, frozenset[int]]
    """Numbers of the units that come in an earlier stage, by number."""


def make_plan(
    graph: ToolDependencyGraph,
    rng: random.Random,
    *,
    num_units: int,
    num_stages: int,
    max_calls: int,
    goals: Sequence[str],
    revisits: bool,
    ledger: CoverageLedger,
) -> Plan:
    """Choose about `num_units` goals and all they need.

    Args:
        graph: an acyclic graph.
        rng: source of all choices.
        num_units: wanted number of goals.
        num_stages: longest chain of stages that the goals may form; only `goals` may exceed it.
        max_calls: calls of one stage at most.
        goals: tools that are among the goals in any case.
        revisits: whether a tool may be a goal more than once.
        ledger: counts of tools in earlier traces.

    Raises:
        ValueError: the graph has a cycle, or a goal is unknown or locked.
    """
    locked = set(graph.locked())
    for goal in goals:
        if goal not in graph.nodes or goal in locked:
            raise ValueError(
                f"goal {goal!r} is {'locked' if goal in locked else 'not a tool'} in {graph.graph_id!r}"
            )
    planner = _Planner(graph, rng, ledger, locked)
    for goal in goals:
        planner.add(goal)
    while len(planner.visits) < num_units:
        candidates = {
            tool: planner.appeal(tool)
            for tool in graph.nodes
            if tool not in locked and tool not in planner.rejected
            if tool not in planner.visits or (revisits and planner.may_revisit(tool))
        }
        if not candidates:
            break
        tool = rng.choices(list(candidates), list(candidates.values()))[0]
        if not planner.add(tool, num_stages=num_stages, max_calls=max_calls):
            planner.rejected.add(tool)
    return planner.plan()


class _Planner:
    """Grows a plan goal by goal; a goal that would contradict the order of the others is rejected."""

    def __init__(
        self, graph: ToolDependencyGraph, rng: random.Random, ledger: CoverageLedger, locked: set[str]
    ) -> None:
        self.graph = graph
        self.rng = rng
        self.ledger = ledger
        self.locked = locked
        self.visits: list[str] = []
        """Tools of the units, in order of choice."""
        self.needs: dict[str, tuple[str, ...]] = {}
        """Chosen producers of each tool in the plan, lookups included."""
        self.rejected: set[str] = set()
        self.destroyers = {ordering.later for ordering in graph.orderings}
        """Rows are few; a trace ends at most one of them with the same tool."""
        self.slots = {tool: graph.slots(tool) for tool in graph.nodes}

    def appeal(self, tool: str) -> float:
        """Return the weight of a tool as the next goal."""
        weight = self.ledger.weight(tool)
        if tool in self.visits:
            weight *= _REVISIT_APPEAL
        if self.graph.trait(tool).changes_state:
            weight *= 2
        elif tool in self.needs or not self.slots[tool]:
            # It serves other goals, or it is a mere listing: seldom worth a turn of its own.
            weight *= 0.3
        known = set(self.needs)
        if any(known.intersection(slot.producers) for slot in self.slots[tool]):
            weight *= 1.5
        return weight

    def may_revisit(self, tool: str) -> bool:
        """Return whether another unit of the tool would make sense."""
        traits = self.graph.trait(tool)
        return (
            traits.repeatable
            and tool not in self.destroyers
            and (traits.changes_state or bool(self.slots[tool]))
            and self.visits.count(tool) < _MAX_VISITS
        )

    def add(self, tool: str, *, num_stages: int | None = None, max_calls: int = 1) -> bool:
        """Add a unit for a tool with all it needs; return False where order or length allow none."""
        visits, needs = list(self.visits), dict(self.needs)
        self._close(tool)
        self.visits.append(tool)
        for needed in self._closure(tool):
            if self.graph.trait(needed).changes_state and needed not in self.visits:
                self.visits.append(needed)
        length = _length(self.plan(), max_calls)
        if length is not None and (num_stages is None or length <= num_stages):
            return True
        self.visits, self.needs = visits, needs
        return False

    def plan(self) -> Plan:
        """Return the units and their order."""
        first = {tool: self.visits.index(tool) for tool in dict.fromkeys(self.visits)}
        units = tuple(
            Unit(number=number, tool=tool, lookups=tuple(t for t in self._closure(tool) if t not in first))
            for number, tool in enumerate(self.visits)
        )
        before: dict[int, set[int]] = {unit.number: set() for unit in units}
        for unit in units:
            for tool in (unit.tool, *unit.lookups):
                before[unit.number].update(first[need] for need in self.needs[tool] if need in first)
            earlier = [n for n in range(unit.number) if self.visits[n] == unit.tool]
            before[unit.number].update(earlier[-1:])
        for ordering in self.graph.orderings:
            for later in units:
                if later.tool == ordering.later:
                    before[later.number].update(
                        unit.number
                        for unit in units
                        if unit.number != later.number and ordering.earlier in (unit.tool, *unit.lookups)
                    )
        return Plan(units=units, before={number: frozenset(names) for number, names in before.items()})

    def _close(self, tool: str, path: tuple[str, ...] = ()) -> None:
        """Choose one producer for each honoured slot, for the tool and all it then needs."""
        if tool in path:
            raise ValueError(f"graph {self.graph.graph_id!r} has a cycle through {tool!r}; sanitise it first")
        if tool in self.needs:
            return
        chosen: list[str] = []
        for slot in self.slots[tool]:
            producer = self._choose(slot, makes_rows=any(self.graph.trait(t).changes_state for t in chosen))
            if producer is not None:
                self._close(producer, (*path, tool))
                chosen.append(producer)
        self.needs[tool] = tuple(dict.fromkeys(chosen))

    def _choose(self, slot: Slot, *, makes_rows: bool) -> str | None:
        edges = [edge for edge in slot.edges if edge.producer not in self.locked]
        if not edges:
            return None
        # A row that the trace itself makes is in its initial state, so the state has to be brought about.
        strong = any(edge.confidence >= _STRONG_EVIDENCE for edge in edges)
        forced = slot.required or (slot.parameter is None and makes_rows and strong)
        if not forced and self.rng.random() >= _OPTIONAL_RATE:
            return None
        weights = [
            edge.confidence * self.ledger.weight(edge.producer) * (2 if edge.producer in self.needs else 1)
            for edge in edges
        ]
        return self.rng.choices(edges, weights)[0].producer

    def _closure(self, tool: str) -> list[str]:
        """Return all that a tool needs, producers first, without itself."""
        order: list[str] = []

        def visit(name: str) -> None:
            for need in self.needs[name]:
                if need not in order:
                    visit(need)
                    order.append(need)

        visit(tool)
        return order


def _length(plan: Plan, max_calls: int) -> int | None:
    """Return the number of stages that the longest chain of units takes, None where there is a cycle."""
    ends: dict[int, int] = {}
    while len(ends) < len(plan.units):
        fresh = [u for u in plan.units if u.number not in ends and plan.before[u.number] <= ends.keys()]
        if not fresh:
            return None
        for unit in fresh:
            own = -(-(len(unit.lookups) + 1) // max_calls)
            ends[unit.number] = own + max((ends[n] for n in plan.before[unit.number]), default=0)
    return max(ends.values(), default=0)
