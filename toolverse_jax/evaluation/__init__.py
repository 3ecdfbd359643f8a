"""Evaluation: results and their statistics, greedy runs on GUST tasks, the HTML report, benchmarks."""

from __future__ import annotations

from toolverse_jax.evaluation.results import (
    EpisodeScore,
    EvaluationResult,
    compare,
    read_result,
    write_result,
)
from toolverse_jax.evaluation.statistics import Estimate, bootstrap_mean, paired_difference

__all__ = [
    "EpisodeScore",
    "Estimate",
    "EvaluationResult",
    "bootstrap_mean",
    "compare",
    "paired_difference",
    "read_result",
    "write_result",
]
