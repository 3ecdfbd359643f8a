from __future__ import annotations

from collections import Counter

import numpy as np

from toolverse_jax.train.update import deal_minibatches, pack_minibatches


def test_every_minibatch_gets_members_of_every_group(rollout):
    groups = [[(rollout(10 * g + i, group_id=str(g)), np.zeros(3)) for i in range(4)] for g in range(3)]
    minibatches = deal_minibatches(groups, 2, np.random.default_rng(0))
    for minibatch in minibatches:
        assert Counter(trajectory.group_id for trajectory, _ in minibatch) == {"0": 2, "1": 2, "2": 2}
    dealt = sorted(t.sample_index for minibatch in minibatches for t, _ in minibatch)
    assert dealt == sorted(t.sample_index for group in groups for t, _ in group)


def test_rollouts_without_loss_tokens_and_empty_minibatches_are_left_out(rollout):
    silent = rollout(1, length=8, loss_mask=np.zeros(8, bool))
    minibatches = deal_minibatches(
        [[(silent, np.ones(3)), (rollout(2), np.ones(3))]], 3, np.random.default_rng(0)
    )
    assert sum(map(len, minibatches)) == 1
    assert [batch.shape for batch in pack_minibatches(minibatches, row_length=64, rows=2)] == [(2, 64)]
