"""Confidence intervals and paired comparisons of per-task scores, by the bootstrap.

Scores of one environment are not independent draws of "any environment". Two resampling schemes
say which question is answered: `stratified` keeps the environments fixed and resamples tasks inside
each (how well does the policy do in *these* environments?); `clustered` resamples environments first
and tasks inside them (how well would it do in *other* environments like these?).
Reference: Davison and Hinkley, Bootstrap Methods and their Application, 1997, sections 3.2 and 3.8.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Literal

import numpy as np

Scheme = Literal["stratified", "clustered"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Estimate:
    """A mean with a percentile interval."""

    mean: float
    low: float
    high: float
    count: int
    """Number of tasks."""

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"

    def to_json(self) -> dict[str, float]:
        return dataclasses.asdict(self)


def bootstrap_mean(
    scores: Sequence[float],
    groups: Sequence[str],
    *,
    scheme: Scheme,
    level: float = 0.95,
    resamples: int = 4000,
    seed: int = 0,
) -> Estimate:
    """Estimate the mean score with a percentile bootstrap interval.

    Args:
        scores: one score per task.
        groups: the environment of each task, as long as `scores`.
        scheme: what is resampled, see the module's text.
        level: coverage of the interval.
        resamples: number of bootstrap replicates.
        seed: seed of the resampling.

    Raises:
        ValueError: no scores, or lengths differ.
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.size == 0 or len(groups) != values.size:
        raise ValueError(
            f"need one group per score and at least one score, got {values.size} and {len(groups)}"
        )
    strata = _strata(values, groups)
    means = _replicates(strata, scheme, resamples, np.random.default_rng(seed))
    tail = 100 * (1 - level) / 2
    low, high = np.percentile(means, [tail, 100 - tail])
    return Estimate(mean=float(values.mean()), low=float(low), high=float(high), count=values.size)


def paired_difference(
    before: Sequence[float],
    after: Sequence[float],
    groups: Sequence[str],
    *,
    scheme: Scheme,
    level: float = 0.95,
    resamples: int = 4000,
    seed: int = 0,
) -> Estimate:
    """Estimate mean(after - before) over the same tasks, resampling the pairs.

    Raises:
        ValueError: the two runs do not cover the same number of tasks.
    """
    if len(before) != len(after):
        raise ValueError(
            f"a paired comparison needs the same tasks on both sides, got {len(before)} and {len(after)}"
        )
    difference = np.asarray(after, dtype=np.float64) - np.asarray(before, dtype=np.float64)
    return bootstrap_mean(
        difference.tolist(), groups, scheme=scheme, level=level, resamples=resamples, seed=seed
    )


def _strata(values: np.ndarray, groups: Sequence[str]) -> list[np.ndarray]:
    members: dict[str, list[float]] = {}
    for group, value in zip(groups, values, strict=True):
        members.setdefault(group, []).append(float(value))
    return [np.asarray(members[group]) for group in sorted(members)]


def _replicates(
    strata: list[np.ndarray], scheme: Scheme, resamples: int, rng: np.random.Generator
) -> np.ndarray:
    """Return the resampled means, one per replicate."""
    sums = np.empty((len(strata), resamples))
    sizes = np.array([len(stratum) for stratum in strata], dtype=np.float64)
    if scheme == "stratified":
        for row, stratum in enumerate(strata):
            sums[row] = rng.choice(stratum, size=(resamples, len(stratum))).sum(axis=1)
        return sums.sum(axis=0) / sizes.sum()
    picked = rng.integers(len(strata), size=(resamples, len(strata)))
    totals = np.zeros(resamples)
    counts = np.zeros(resamples)
    for column in range(len(strata)):
        for row, stratum in enumerate(strata):
            chosen = np.flatnonzero(picked[:, column] == row)
            if chosen.size:
                totals[chosen] += rng.choice(stratum, size=(chosen.size, len(stratum))).sum(axis=1)
                counts[chosen] += len(stratum)
    return totals / counts
