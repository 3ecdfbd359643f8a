"""Dynamic Unlocking Sampling (DUS): draws stages of tools whose dependencies are already met.

`mode="paper"` is Algorithm 1 of ToolVerse to the letter: every incoming edge counts (AND), and since it
stops only when nothing is ready, each trace is a permutation of the whole toolset.

`mode="or"`, the default, departs from it in four ways. One producer per slot is enough. A trace grows
from goals that a user would ask for and what they need, not from the whole graph; a ledger keeps
coverage over the collection of traces, as B.3 asks. The batch size varies from stage to stage. What a
trace destroys is not used afterwards. A lookup that only serves a goal sits in the stage of the goal
that first needs it, since a user asks for outcomes.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence
from typing import Literal

from toolverse_jax.gust.graph import ToolDependencyGraph
from toolverse_jax.gust.plan import CoverageLedger, Plan, Unit, make_plan

_ATTEMPTS = 12

Mode = Literal["or", "paper"]
Stages = list[list[str]]


def sample_stages(
    graph: ToolDependencyGraph,
    seed: int,
    *,
    mode: Mode = "or",
    batch_size: int = 3,
    min_stages: int = 3,
    max_stages: int = 7,
    max_calls: int = 3,
    goals: Sequence[str] = (),
    revisits: bool = True,
    ledger: CoverageLedger | None = None,
) -> Stages:
    """Draw one trace: a list of stages, each a list of tool names ordered by dependency.

    Args:
        graph: an acyclic graph, see `sanitize`.
        seed: the same seed (and ledger counts) gives the same trace.
        mode: `or` or `paper`; the arguments after `batch_size` belong to `or`.
        batch_size: most goals (paper: tools) of one stage, N in Algorithm 1.
        min_stages: wanted number of stages at least; a graph with too few tools gives fewer.
        max_stages: number of stages at most.
        max_calls: calls of one stage at most, lookups included; a longer chain of lookups before one
            goal begins in the stage before.
        goals: tools that must be among the goals; a goal that `max_stages` leaves no room for is cut.
        revisits: whether a tool may come again in a later stage, on another row.
        ledger: counts of tools in earlier traces, which this trace is added to.

    Raises:
        ValueError: the graph has a cycle, a goal is unknown or locked, or a bound is out of range.
    """
    if not 1 <= min_stages <= max_stages or batch_size < 1 or max_calls < 1:
        raise ValueError(
            f"bounds must satisfy 1 <= min_stages <= max_stages and be >= 1, got min_stages={min_stages}, "
            f"max_stages={max_stages}, batch_size={batch_size}, max_calls={max_calls}"
        )
    rng = random.Random(seed)
    if mode == "paper":
        stages = _algorithm_1(graph, rng, batch_size)
    else:
        stages = _best_of(graph, rng, batch_size, min_stages, max_stages, max_calls, goals, revisits, ledger)
    if ledger is not None:
        ledger.record(stages)
    return stages


def sample_traces(graph: ToolDependencyGraph, count: int, seed: int, **options) -> list[Stages]:
    """Draw several traces that share a coverage ledger; options are those of `sample_stages`."""
    options.setdefault("ledger", CoverageLedger())
    return [sample_stages(graph, _derived_seed(seed, n), **options) for n in range(count)]


def stage_faults(graph: ToolDependencyGraph, stages: Stages) -> tuple[str, ...]:
    """Return what is wrong with a trace under OR-slots and orderings, one sentence each; empty if nothing."""
    faults: list[str] = []
    done: list[str] = []
    for number, stage in enumerate(stages, start=1):
        for tool in stage:
            for slot in graph.slots(tool):
                if slot.required and not set(done).intersection(slot.producers):
                    faults.append(
                        f"stage {number}: {tool} needs {slot.parameter or 'a state'}, which nothing before gives"
                    )
            for ordering in graph.orderings:
                if ordering.earlier == tool and ordering.later in done:
                    faults.append(f"stage {number}: {tool} comes after {ordering.later}: {ordering.reason}")
            done.append(tool)
    return tuple(faults)


def _derived_seed(seed: int, number: int) -> int:
    return int.from_bytes(hashlib.blake2b(f"{seed}/{number}".encode(), digest_size=8).digest())


def _algorithm_1(graph: ToolDependencyGraph, rng: random.Random, batch_size: int) -> Stages:
    # Successors of a graph are a set: several edges of one pair of tools count once.
    pairs = dict.fromkeys((edge.producer, edge.consumer) for edge in graph.edges)
    in_degree = {tool: 0 for tool in graph.nodes}
    successors: dict[str, list[str]] = {tool: [] for tool in graph.nodes}
    for producer, consumer in pairs:
        in_degree[consumer] += 1
        successors[producer].append(consumer)
    ready = [tool for tool in graph.nodes if in_degree[tool] == 0]
    stages: Stages = []
    while ready:
        stage = rng.sample(ready, min(len(ready), batch_size))
        ready = [tool for tool in ready if tool not in stage]
        stages.append(stage)
        for tool in stage:
            for successor in successors[tool]:
                in_degree[successor] -= 1
                if in_degree[successor] == 0:
                    ready.append(successor)
    if sum(map(len, stages)) < len(graph.nodes):
        raise ValueError(f"graph {graph.graph_id!r} has a cycle; sanitise it first")
    return stages


def _best_of(
    graph: ToolDependencyGraph,
    rng: random.Random,
    batch_size: int,
    min_stages: int,
    max_stages: int,
    max_calls: int,
    goals: Sequence[str],
    revisits: bool,
    ledger: CoverageLedger | None,
) -> Stages:
    """Plan and schedule until a trace is long enough; of short ones return the longest."""
    best: Stages = []
    for _ in range(_ATTEMPTS):
        target = rng.randint(min_stages, max_stages)
        plan = make_plan(
            graph,
            rng,
            num_units=rng.randint(target, target + target // 2),
            num_stages=target,
            max_calls=max_calls,
            goals=goals,
            revisits=revisits,
            ledger=ledger or CoverageLedger(),
        )
        stages = list(_schedule(plan, rng, batch_size, target, max_calls))
        if len(stages) > len(best):
            best = stages
        if len(best) >= min_stages:
            break
    return best


def _schedule(
    plan: Plan, rng: random.Random, batch_size: int, num_stages: int, max_calls: int
) -> Iterator[list[str]]:
    """Unlock the units of a plan in at most `num_stages` stages of at most `batch_size` units each."""
    waiting = {unit.number: len(plan.before[unit.number]) for unit in plan.units}
    ready = [unit for unit in plan.units if waiting[unit.number] == 0]
    performed: set[str] = set()
    last: set[int] = set()
    remaining = len(plan.units)
    for stages_left in range(num_stages, 0, -1):
        if not ready:
            return
        size = _batch(rng, len(ready), batch_size, remaining, stages_left)
        stage: list[str] = []
        taken: list[Unit] = []
        for unit in _weighted_order(plan, ready, last, rng):
            lookups = [tool for tool in unit.lookups if tool not in performed and tool not in stage]
            if len(taken) == size or len(stage) + len(lookups) + 1 > max_calls:
                if not stage and not taken:
                    # The chain before this goal is too long for one stage: its beginning is asked for alone.
                    stage = lookups[: min(max_calls, len(lookups) + 1 - max_calls)]
                    break
                continue
            stage += [*lookups, unit.tool]
            taken.append(unit)
        performed.update(stage)
        last = {unit.number for unit in taken}
        remaining -= len(taken)
        ready = [unit for unit in ready if unit.number not in last]
        for unit in plan.units:
            met = len(last.intersection(plan.before[unit.number]))
            waiting[unit.number] -= met
            if met and waiting[unit.number] == 0:
                ready.append(unit)
        yield stage


def _batch(rng: random.Random, ready: int, batch_size: int, remaining: int, stages_left: int) -> int:
    """Draw k in [1, N], not so large that later stages stay empty, nor so small that units are cut."""
    largest = min(ready, batch_size)
    size = rng.randint(1, largest)
    size = min(size, max(1, remaining - (stages_left - 1)))
    return min(largest, max(size, -(-remaining // stages_left)))


def _weighted_order(plan: Plan, ready: list[Unit], last: set[int], rng: random.Random) -> list[Unit]:
    """Order ready units at random; those that build on the last stage tend to come first."""
    keys = {
        unit.number: rng.random() ** (1 / (3.0 if last.intersection(plan.before[unit.number]) else 1.0))
        for unit in ready
    }
    return sorted(ready, key=lambda unit: -keys[unit.number])
