"""Results of one evaluation: a score per episode, on disk as JSON, and their summary."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toolverse_jax.errors import TaskError
from toolverse_jax.evaluation.statistics import Estimate, Scheme, bootstrap_mean, paired_difference
from toolverse_jax.types import JSON, Trajectory

_VERSION = 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class EpisodeScore:
    """How one episode went."""

    task_id: str
    environment: str
    turn_rewards: tuple[float, ...]
    """One per user turn of the task; turns never reached are 0."""
    status: str
    stats: Mapping[str, float]

    @property
    def trace_score(self) -> float:
        """1.0 where every turn was fulfilled."""
        return float(all(reward >= 1.0 for reward in self.turn_rewards))

    @property
    def turn_accuracy(self) -> float:
        """Share of turns fulfilled."""
        return sum(self.turn_rewards) / len(self.turn_rewards)

    @classmethod
    def of(cls, trajectory: Trajectory) -> EpisodeScore:
        return cls(
            task_id=trajectory.task_id,
            environment=trajectory.environment,
            turn_rewards=tuple(float(reward) for reward in trajectory.turn_rewards),
            status=trajectory.status,
            stats=dict(trajectory.stats),
        )


MEASURES = ("trace_score", "turn_accuracy")
"""Names of the per-episode measures that are summarised."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluationResult:
    """All episodes of one policy on one set of tasks."""

    label: str
    settings: Mapping[str, JSON]
    """What the result depends on: policy, task file and its hash, sampling, seed."""
    episodes: tuple[EpisodeScore, ...]

    def estimate(self, measure: str, scheme: Scheme) -> Estimate:
        """Return the mean of a measure with its 95 % interval."""
        return bootstrap_mean(self.values(measure), self.environments(), scheme=scheme)

    def values(self, measure: str) -> list[float]:
        return [getattr(episode, measure) for episode in self.episodes]

    def environments(self) -> list[str]:
        return [episode.environment for episode in self.episodes]

    def turn_means(self) -> list[float]:
        """Return the share of fulfilled turns by turn index, over the tasks that have this turn."""
        longest = max(len(episode.turn_rewards) for episode in self.episodes)
        means = []
        for turn in range(longest):
            having = [e.turn_rewards[turn] for e in self.episodes if len(e.turn_rewards) > turn]
            means.append(sum(having) / len(having))
        return means

    def summary(self, scheme: Scheme) -> dict[str, Any]:
        """Return the figures of this result as plain values."""
        stats = {
            name: sum(e.stats.get(name, 0.0) for e in self.episodes) / len(self.episodes)
            for name in ("tool_calls", "tool_errors", "parse_errors", "extra_calls")
        }
        failed = sum(episode.status == "failed" for episode in self.episodes)
        return {
            "label": self.label,
            "tasks": len(self.episodes),
            "environments": len(set(self.environments())),
            **{measure: self.estimate(measure, scheme).to_json() for measure in MEASURES},
            "turn_accuracy_by_turn": self.turn_means(),
            "calls_per_episode": stats,
            "failed_episodes": failed,
        }


def compare(before: EvaluationResult, after: EvaluationResult, measure: str, scheme: Scheme) -> Estimate:
    """Return the paired change of a measure from one result to another over the same tasks.

    Raises:
        TaskError: the results are not of the same tasks.
    """
    if [e.task_id for e in before.episodes] != [e.task_id for e in after.episodes]:
        raise TaskError(
            f"results {before.label!r} and {after.label!r} are not of the same tasks; evaluate both on one task file"
        )
    return paired_difference(
        before.values(measure), after.values(measure), before.environments(), scheme=scheme
    )


def write_result(path: Path, result: EvaluationResult) -> None:
    """Write a result as JSON, atomically."""
    tree = {"version": _VERSION, **dataclasses.asdict(result)}
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".partial")
    temporary.write_text(json.dumps(tree, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    os.replace(temporary, path)


def read_result(path: Path) -> EvaluationResult:
    """Read a result written by `write_result`.

    Raises:
        TaskError: the file is missing, cut, or of another version.
    """
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise TaskError(f"evaluation result {path} does not exist; run `toolverse eval` first") from error
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"evaluation result {path} cannot be read ({error}); evaluate again") from error
    except json.JSONDecodeError as error:
        raise TaskError(f"evaluation result {path} is not JSON ({error}); evaluate again") from error
    if not isinstance(tree, dict) or tree.get("version") != _VERSION:
        raise TaskError(f"evaluation result {path} is not of version {_VERSION}; evaluate again")
    try:
        label, settings, rows = tree["label"], dict(tree["settings"]), list(tree["episodes"])
    except (KeyError, TypeError, ValueError) as error:
        raise TaskError(
            f"evaluation result {path} is damaged ({type(error).__name__}: {error}); evaluate again"
        ) from error
    if not rows:
        raise TaskError(f"evaluation result {path} holds no episode; evaluate again on a file with tasks")
    return EvaluationResult(
        label=label,
        settings=settings,
        episodes=tuple(_episode(path, number, row) for number, row in enumerate(rows, start=1)),
    )


def _episode(path: Path, number: int, row: Mapping[str, Any]) -> EpisodeScore:
    try:
        rewards = tuple(float(reward) for reward in row["turn_rewards"])
        score = EpisodeScore(**{**row, "turn_rewards": rewards, "stats": dict(row["stats"])})
    except (KeyError, TypeError, ValueError) as error:
        raise TaskError(
            f"evaluation result {path} is damaged at episode {number} ({type(error).__name__}: {error}); evaluate again"
        ) from error
    if not rewards:
        raise TaskError(
            f"evaluation result {path} is damaged at episode {number} (no turn rewards); evaluate again"
        )
    return score
