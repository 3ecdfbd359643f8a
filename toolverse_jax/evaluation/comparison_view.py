"""Prepares the comparison of one evaluation set before and after training."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from toolverse_jax.evaluation.charts import Interval, Series, interval_chart, line_chart
from toolverse_jax.evaluation.results import MEASURES, EvaluationResult, compare
from toolverse_jax.evaluation.statistics import Estimate, Scheme

if TYPE_CHECKING:
    from markupsafe import Markup


@dataclasses.dataclass(frozen=True, kw_only=True)
class CellView:
    """A mean and its interval as text."""

    mean: str
    interval: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class MeasureView:
    """One row of the comparison."""

    name: str
    before: CellView | None
    after: CellView | None
    change: CellView | None
    direction: str
    """`good` or `bad` where the interval of the change excludes 0, else empty."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ComparisonView:
    """One evaluation set."""

    title: str
    tasks: int
    environments: int
    rows: tuple[MeasureView, ...]
    intervals: Markup
    by_turn: Markup


def compare_sets(
    title: str, before: EvaluationResult | None, after: EvaluationResult | None, scheme: Scheme
) -> ComparisonView:
    """Prepare a set; one of the two results may be absent.

    Raises:
        TaskError: the results are of different tasks.
    """
    from markupsafe import Markup

    present = [("before", before), ("after", after)]
    results = [(name, result) for name, result in present if result is not None]
    rows = tuple(_measure(measure, before, after, scheme) for measure in MEASURES)
    intervals = []
    for measure in MEASURES:
        for name, result in results:
            estimate = result.estimate(measure, scheme)
            intervals.append(
                Interval(
                    group=_words(measure),
                    name=name,
                    mean=estimate.mean,
                    low=estimate.low,
                    high=estimate.high,
                )
            )
    lines = []
    for name, result in results:
        means = result.turn_means()
        lines.append(Series(name=name, x=list(range(1, len(means) + 1)), y=means))
    by_turn = line_chart(lines, title=f"{title}: accuracy by user turn", x_label="user turn", smooth=1)
    one = results[-1][1]
    return ComparisonView(
        title=title,
        tasks=len(one.episodes),
        environments=len(set(one.environments())),
        rows=rows,
        intervals=Markup(interval_chart(intervals, title=f"{title}: means with 95 % intervals")),
        by_turn=Markup(by_turn),
    )


def _measure(
    measure: str, before: EvaluationResult | None, after: EvaluationResult | None, scheme: Scheme
) -> MeasureView:
    change = compare(before, after, measure, scheme) if before is not None and after is not None else None
    direction = ""
    if change is not None:
        direction = "good" if change.low > 0 else "bad" if change.high < 0 else ""
    return MeasureView(
        name=_words(measure),
        before=_cell(before.estimate(measure, scheme)) if before is not None else None,
        after=_cell(after.estimate(measure, scheme)) if after is not None else None,
        change=_cell(change, signed=True) if change is not None else None,
        direction=direction,
    )


def _cell(estimate: Estimate, *, signed: bool = False) -> CellView:
    sign = "+" if signed else ""

    def figure(value: float) -> str:
        return f"{value:{sign}.3f}".replace("-", "\u2212")

    return CellView(mean=figure(estimate.mean), interval=f"{figure(estimate.low)} to {figure(estimate.high)}")


def _words(measure: str) -> str:
    return measure.replace("_", " ").capitalize()
