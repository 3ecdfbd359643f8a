"""Reads the metrics of a run and draws its curves."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolverse_jax.errors import ToolverseError
from toolverse_jax.evaluation.charts import Series, line_chart

if TYPE_CHECKING:
    from markupsafe import Markup

Metrics = Sequence[Mapping[str, Any]]
"""One mapping per step, with `step` and `area/name` keys; a value that is not finite is None."""

_TURN = re.compile(r"reward/turn_(\d+)")

_CHARTS: tuple[tuple[str, str, dict[str, str]], ...] = (
    (
        "Reward",
        "Mean reward of a user turn, and share of rollouts with every turn right",
        {"reward/mean_turn": "turn reward", "reward/trace_score": "trace score"},
    ),
    ("Reward by turn", "Mean reward of the first, second, … user turn", {}),
    (
        "Tool calls",
        "Per rollout; a tool error is a call that the environment refused",
        {
            "rollout/tool_calls": "tool calls",
            "rollout/tool_errors": "tool errors",
            "rollout/parse_errors": "unreadable calls",
        },
    ),
    ("Response length", "Tokens that the policy sampled in a rollout", {"rollout/sampled_tokens": "tokens"}),
    ("Entropy", "Mean entropy of the policy at loss tokens, in nats", {"policy/entropy": "entropy"}),
    (
        "Sampler mismatch",
        "Divergence of the trainer's logprobs from the sampler's, in nats",
        {"policy/mismatch_kl": "KL"},
    ),
    (
        "Validation",
        "Rewards on the validation tasks",
        {"validation/mean_turn": "turn reward", "validation/trace_score": "trace score"},
    ),
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Chart:
    """A drawing with its heading."""

    title: str
    note: str
    svg: Markup


def read_metrics(path: Path) -> Metrics:
    """Read `metrics.jsonl`; a missing file is no steps, and a cut-off last line is left out.

    Raises:
        ToolverseError: a whole line is not a JSON object with a step.
    """
    if not path.is_file():
        return []
    steps = []
    lines = path.read_text(encoding="utf-8").split("\n")
    for number, line in enumerate(lines[:-1], start=1):
        try:
            metrics = json.loads(line)
            metrics["step"] += 0
        except (ValueError, TypeError, KeyError) as error:
            raise ToolverseError(
                f"{path}, line {number} is not the metrics of a step ({type(error).__name__}: {error}); restore the file"
            ) from error
        steps.append(metrics)
    return steps


def smoothing(metrics: Metrics) -> int:
    """Return the number of steps that the lines of the curves are averaged over."""
    return max(5, len(metrics) // 20)


def training_charts(metrics: Metrics) -> list[Chart]:
    """Draw the curves that the metrics hold."""
    from markupsafe import Markup

    charts = []
    for title, note, names in _CHARTS:
        series = [_series(metrics, name, label) for name, label in (names or _turns(metrics)).items()]
        series = [line for line in series if line.x]
        if series:
            smooth = 1 if title == "Validation" else smoothing(metrics)
            svg = line_chart(
                series, title=f"{title}: {note}", x_label="training step", smooth=smooth, first_colour=2
            )
            charts.append(Chart(title=title, note=note, svg=Markup(svg)))
    return charts


def _turns(metrics: Metrics) -> dict[str, str]:
    numbers = {int(match.group(1)) for step in metrics for name in step if (match := _TURN.fullmatch(name))}
    return {f"reward/turn_{number}": f"turn {number}" for number in sorted(numbers)}


def _series(metrics: Metrics, name: str, label: str) -> Series:
    points = [(step["step"], step[name]) for step in metrics if isinstance(step.get(name), int | float)]
    return Series(name=label, x=[x for x, _ in points], y=[y for _, y in points])
