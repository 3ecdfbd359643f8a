from __future__ import annotations

import itertools

import jax
import numpy as np
import pytest

from toolverse_jax.config import MeshConfig, OptimizerConfig
from toolverse_jax.train import SupervisedTrainer, warm_start

SETTINGS = {
    "optimizer": OptimizerConfig(learning_rate=0.01),
    "row_length": 64,
    "rows": 8,
    "mesh": MeshConfig(data=8, fsdp=1),
}


@pytest.fixture
def trainer(policy):
    return SupervisedTrainer(policy, policy.params, total_updates=40, **SETTINGS)


def test_the_loss_of_repeated_examples_falls(trainer, rollout):
    examples = [rollout(seed) for seed in range(8)]
    history = [trainer.update(examples) for _ in range(25)]
    assert history[-1]["action_loss"] < 0.7 * history[0]["action_loss"]
    assert trainer.num_updates == 25
    assert trainer.traces == {"accumulate": 1, "apply": 1}


def test_batches_fill_the_rows_and_lose_nothing(trainer, rollout):
    examples = [rollout(seed) for seed in range(50)]
    batches = list(trainer.batches(examples))
    assert [t.sample_index for batch in batches for t in batch] == list(range(50))
    for batch in batches:
        assert sum(len(t.tokens) for t in batch) <= 8 * 64
    assert all(sum(len(t.tokens) for t in batch) > 0.7 * 8 * 64 for batch in batches[:-1])


def test_the_first_loss_is_the_mean_over_weights(trainer, rollout, policy):
    example = rollout(3)
    only_actions = trainer.update([example], other_weight=0.0)
    assert only_actions["loss"] == pytest.approx(only_actions["action_loss"], rel=1e-6)
    assert only_actions["tokens"] == len(example.tokens)


def test_a_warm_start_ends_with_its_examples_its_updates_or_its_report(policy, rollout):
    def run(examples, updates, report=None):
        numbers = []

        def note(number, metrics):
            numbers.append(number)
            return report is not None and number >= report

        params = warm_start(policy, policy.params, examples, updates=updates, report=note, **SETTINGS)
        return numbers, params

    endless = (rollout(seed % 8) for seed in itertools.count())
    numbers, params = run(endless, 2)
    assert numbers == [1, 2]
    assert not np.array_equal(params["embed"], policy.params["embed"])
    assert run([rollout(1)], 5)[0] == [1]
    assert run((rollout(seed % 8) for seed in itertools.count()), 5, report=1)[0] == [1]
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(params))
