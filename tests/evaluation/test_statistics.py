import numpy as np
import pytest

from toolverse_jax.evaluation.statistics import bootstrap_mean, paired_difference


def test_the_mean_is_exact_and_inside_its_interval():
    estimate = bootstrap_mean([0, 1, 1, 0, 1], list("aabbb"), scheme="stratified")
    assert estimate.mean == pytest.approx(0.6)
    assert estimate.low <= 0.6 <= estimate.high
    assert estimate.count == 5


def test_equal_scores_have_an_interval_of_zero_width():
    estimate = bootstrap_mean([0.5] * 8, list("aaaabbbb"), scheme="clustered")
    assert (estimate.low, estimate.high) == (0.5, 0.5)


def test_the_interval_of_one_stratum_agrees_with_the_normal_approximation():
    # n = 400 Bernoulli(0.3): half width 1.96 * sqrt(0.3 * 0.7 / 400) = 0.0449
    scores = [1.0] * 120 + [0.0] * 280
    estimate = bootstrap_mean(scores, ["a"] * 400, scheme="stratified")
    assert estimate.high - estimate.mean == pytest.approx(0.0449, abs=0.005)
    assert estimate.mean - estimate.low == pytest.approx(0.0449, abs=0.005)


def test_clustering_widens_the_interval_when_environments_differ():
    scores = [1.0] * 50 + [0.0] * 50
    groups = ["easy"] * 50 + ["hard"] * 50
    fixed = bootstrap_mean(scores, groups, scheme="stratified")
    drawn = bootstrap_mean(scores, groups, scheme="clustered")
    assert fixed.high - fixed.low == 0
    assert (drawn.low, drawn.high) == (0.0, 1.0)


def test_pairing_removes_the_variance_that_both_runs_share():
    rng = np.random.default_rng(0)
    before = rng.random(200)
    estimate = paired_difference(before.tolist(), (before + 0.1).tolist(), ["a"] * 200, scheme="stratified")
    assert estimate.mean == pytest.approx(0.1)
    assert estimate.high - estimate.low < 1e-9


def test_the_same_seed_gives_the_same_interval():
    args = ([0.0, 1.0, 1.0, 0.0], list("abab"))
    assert bootstrap_mean(*args, scheme="clustered") == bootstrap_mean(*args, scheme="clustered")


def test_runs_over_different_tasks_cannot_be_paired():
    with pytest.raises(ValueError, match="same tasks on both sides, got 2 and 3"):
        paired_difference([0, 1], [0, 1, 1], list("aab"), scheme="stratified")
