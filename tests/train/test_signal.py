from __future__ import annotations

import numpy as np
import pytest

from toolverse_jax.config import AdvantageConfig
from toolverse_jax.rl import tara_advantages
from toolverse_jax.train import group_advantages, signal_metrics
from toolverse_jax.train.signal import has_signal, reward_metrics


@pytest.fixture
def group(rollout):
    def build(rewards):
        return [rollout(i, turns=len(row), rewards=row) for i, row in enumerate(rewards)]

    return build


def test_tara_of_ragged_groups_is_that_of_each_group(group):
    tables = [[[1, 0, 1], [0, 1, 1]], [[1, 0, 0, 1, 1], [1, 0, 0, 0, 0]], [[1, 0], [0, 0]]]
    found = group_advantages([group(table) for table in tables], AdvantageConfig(gamma=0.9, lambda_=0.3))
    for table, advantages in zip(tables, found, strict=True):
        expected = tara_advantages(np.array(table, np.float32), gamma=0.9, lambda_=0.3)
        np.testing.assert_allclose(advantages, expected, atol=1e-6)


def test_grpo_gives_every_turn_the_advantage_of_the_trajectory(group):
    groups = [group([[1, 1], [1, 0], [0, 0]])]
    (mean,) = group_advantages(groups, AdvantageConfig(estimator="grpo"))
    np.testing.assert_allclose(mean, np.array([[1, 1], [0, 0], [-1, -1]]) * 1.224745, atol=1e-4)
    (trace,) = group_advantages(groups, AdvantageConfig(estimator="grpo", grpo_return="trace_score"))
    np.testing.assert_allclose(trace[:, 0], [1.414214, -0.707107, -0.707107], atol=1e-4)


def test_a_group_is_dropped_only_where_every_turn_is_constant(group):
    tables = [
        [[1, 1], [1, 1]],  # no signal at all
        [[1, 0], [0, 1]],  # turns differ; neither trace score nor mean does
        [[1, 0], [0, 0]],  # the mean differs, the trace score does not
        [[1, 1], [0, 0]],  # all differ
    ]
    groups = [group(table) for table in tables]
    advantages = group_advantages(groups, AdvantageConfig())
    assert [has_signal(a) for a in advantages] == [False, True, True, True]
    assert signal_metrics(groups, advantages) == {
        "signal/groups": 4,
        "signal/kept": 3,
        "signal/constant_turns": 3 / 8,
        "signal/grpo_drops_by_trace_score": 2,
        "signal/grpo_drops_by_mean_turn_reward": 1,
    }
    by_trace = group_advantages(groups, AdvantageConfig(estimator="grpo", grpo_return="trace_score"))
    assert sum(map(has_signal, by_trace)) == 1


def test_rewards_are_reported_by_turn(group):
    metrics = reward_metrics([group([[1, 1], [1, 0]]), group([[1, 1, 1], [0, 0, 0]])])
    assert metrics == {
        "reward/turn_1": 0.75,
        "reward/turn_2": 0.5,
        "reward/turn_3": 0.5,
        "reward/mean_turn": 0.6,
        "reward/trace_score": 0.5,
    }


def test_no_groups_give_no_advantages():
    assert group_advantages([], AdvantageConfig()) == []
    assert signal_metrics([], [])["signal/kept"] == 0
    assert np.isnan(reward_metrics([])["reward/mean_turn"])
