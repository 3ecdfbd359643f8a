"""Builds verified tasks of one environment: graph, stages, golden trace, user messages, checks."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping

from toolverse_jax.environment.engine import Environment
from toolverse_jax.errors import TaskError
from toolverse_jax.gust.dataflow import changes_state
from toolverse_jax.gust.graph import ToolDependencyGraph
from toolverse_jax.gust.grounding import ground
from toolverse_jax.gust.inference import NUM_VARIANTS, infer_graph
from toolverse_jax.gust.instructions import write_turns
from toolverse_jax.gust.plan import CoverageLedger
from toolverse_jax.gust.randomness import derived_seed
from toolverse_jax.gust.replay import replay
from toolverse_jax.gust.sampler import sample_stages
from toolverse_jax.gust.sanitize import sanitize
from toolverse_jax.gust.soundness import (
    agent_rewards,
    binding_faults,
    dependency_depth,
    golden_results,
    unforced_calls,
)
from toolverse_jax.gust.trace import GroundedTrace
from toolverse_jax.gust.wording import Wording
from toolverse_jax.types import Task, TaskTurn

MIN_CALLS = 4
MAX_CALLS = 9
_ATTEMPTS_PER_TASK = 12


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskBuild:
    """Tasks of one environment and what was left out."""

    tasks: tuple[Task, ...]
    drops: Mapping[str, int]
    """Candidates left out, by reason."""
    coverage: Mapping[str, int]
    """Golden calls by tool, tools without any included."""
    tool_drops: Mapping[str, int] = dataclasses.field(default_factory=dict)
    """Tools of a trace that could not be grounded, by `<tool>: <reason>`; their tasks may be fine."""

    @property
    def coverage_share(self) -> float:
        """Share of the tools that some golden call uses."""
        return sum(count > 0 for count in self.coverage.values()) / max(1, len(self.coverage))


class _Rejected(Exception):
    """A candidate is no task; the message is the reason that is counted."""


def build_tasks(
    environment: Environment, *, count: int, seed: int, min_turns: int = 3, max_turns: int = 5
) -> TaskBuild:
    """Build up to `count` tasks; fewer where the environment does not give more.

    Every task is replayed on the engine, its bindings and the need for every golden call are checked
    apart from the grounder, and agents that must fail do fail.

    Args:
        environment: the environment.
        count: tasks wanted.
        seed: the same seed gives the same tasks.
        min_turns: fewest user turns of a task.
        max_turns: most user turns of a task.

    Raises:
        ValueError: a bound is out of range.
    """
    if count < 0 or not 1 <= min_turns <= max_turns:
        raise ValueError(
            f"count must be >= 0 and 1 <= min_turns <= max_turns, got {count}, {min_turns}, {max_turns}"
        )
    builder = _Builder(environment, seed, min_turns, max_turns)
    tasks: list[Task] = []
    drops: Counter[str] = Counter()
    for attempt in range(count * _ATTEMPTS_PER_TASK):
        if len(tasks) == count:
            break
        try:
            tasks.append(builder.build(attempt, len(tasks)))
        except _Rejected as reason:
            drops[str(reason)] += 1
    used = Counter(call.tool for task in tasks for turn in task.turns for call in turn.golden)
    return TaskBuild(
        tasks=tuple(tasks),
        drops=dict(sorted(drops.items())),
        coverage={tool.name: used[tool.name] for tool in environment.tools},
        tool_drops=dict(sorted(builder.tool_drops.items())),
    )


class _Builder:
    def __init__(self, environment: Environment, seed: int, min_turns: int, max_turns: int) -> None:
        self.environment = environment
        self.seed = seed
        self.min_turns = min_turns
        self.max_turns = max_turns
        self.wording = Wording(environment.spec)
        self.graphs = [sanitize(infer_graph(environment.spec, variant=v))[0] for v in range(NUM_VARIANTS)]
        self.ledger = CoverageLedger()
        self.writes = {op.tool: changes_state(op) for op in environment.spec.operations}
        self.first_messages: set[str] = set()
        self.tool_drops: Counter[str] = Counter()

    def build(self, attempt: int, number: int) -> Task:
        graph = self.graphs[attempt % len(self.graphs)]
        stages = sample_stages(
            graph,
            self._derived("stages", attempt),
            batch_size=2,
            min_stages=self.min_turns,
            max_stages=self.max_turns,
            ledger=self.ledger,
        )
        episode_seed = self._derived("episode", attempt) % 2**31
        trace = ground(
            self.environment,
            graph,
            stages,
            episode_seed,
            max_turns=self.max_turns,
            max_calls=MAX_CALLS,
            wording=self.wording,
        )
        if trace is None:
            raise _Rejected("nothing_grounded")
        self.tool_drops.update(f"{tool}: {reason}" for tool, reason in trace.dropped)
        if len(trace.turns) < self.min_turns:
            raise _Rejected("too_few_turns")
        if trace.num_calls < MIN_CALLS:
            raise _Rejected("too_few_calls")
        if not any(self.writes[call.tool] for turn in trace.turns for call in turn.calls) and any(
            self.writes.values()
        ):
            raise _Rejected("changes_nothing")
        try:
            turns = write_turns(
                self.environment, trace, self._derived("words", attempt), wording=self.wording
            )
        except TaskError:
            raise _Rejected("no_words") from None
        if turns[0].user in self.first_messages:
            raise _Rejected("repeated_first_message")
        task = self._task(graph, trace, turns, attempt, number)
        self._verify(task)
        self.first_messages.add(turns[0].user)
        return task

    def _task(
        self,
        graph: ToolDependencyGraph,
        trace: GroundedTrace,
        turns: list[TaskTurn],
        attempt: int,
        number: int,
    ) -> Task:
        task = Task(
            id=f"{self.environment.name}/{self.seed}/{number:04d}",
            environment=self.environment.name,
            seed=trace.seed,
            turns=tuple(turns),
            final_state_hash=trace.final_state_hash,
            graph_id=graph.graph_id,
            provenance={"builder": "grammar@1", "seed": self.seed, "attempt": attempt},
        )
        bindings = [b for turn in turns for call in turn.golden for b in call.bindings.values()]
        difficulty = {
            "turns": float(task.num_turns),
            "calls": float(task.num_calls),
            "depth": float(dependency_depth(task)),
            "ref_arguments": float(sum(b.source == "ref" for b in bindings)),
            "prev_arguments": float(sum(b.source == "prev" for b in bindings)),
            "user_arguments": float(sum(b.source == "user" for b in bindings)),
        }
        return dataclasses.replace(task, difficulty=difficulty)

    def _verify(self, task: Task) -> None:
        """Check a task on its own terms.

        Raises:
            _Rejected: with what is wrong.
        """
        results = golden_results(self.environment, task)
        if binding_faults(task, results):
            raise _Rejected("wrong_binding")
        if unforced_calls(task, results, self.writes):
            raise _Rejected("unforced_call")
        if any(agent_rewards(task, "no_call")):
            raise _Rejected("solved_without_calls")
        if all(agent_rewards(task, "user_values")):
            raise _Rejected("solved_by_user_values")
        if not replay(self.environment, task).ok:
            raise _Rejected("replay_failed")

    def _derived(self, *parts: object) -> int:
        return derived_seed(self.environment.name, self.seed, *parts)
