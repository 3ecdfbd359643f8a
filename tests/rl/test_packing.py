from __future__ import annotations

import numpy as np
import pytest

from toolverse_jax.rl import arrange_rows, microbatches, pack, pack_supervised
from toolverse_jax.types import Trajectory


def rollout(length: int, turns: int = 3, seed: int = 0, **changes) -> Trajectory:
    draw = np.random.default_rng(seed)
    mask = draw.random(length) < 0.4
    fields = {
        "task_id": f"task{seed}",
        "group_id": "g",
        "environment": "e",
        "sample_index": seed,
        "tokens": draw.integers(1, 100, length).astype(np.int32),
        "loss_mask": mask,
        "sampler_logprobs": np.where(mask, -draw.random(length), np.nan).astype(np.float32),
        "turn_ids": np.sort(draw.integers(0, turns + 1, length)).astype(np.int16),
        "turn_rewards": np.zeros(turns, np.float32),
        "turn_reached": np.ones(turns, bool),
        "status": "completed",
    }
    return Trajectory(**{**fields, **changes})


def batch_of(lengths, row_length=64, **options):
    rollouts = [rollout(n, seed=i) for i, n in enumerate(lengths)]
    advantages = [np.random.default_rng(i).normal(size=3).astype(np.float32) for i in range(len(lengths))]
    return rollouts, advantages, pack(rollouts, advantages, row_length=row_length, **options)


def segments(batch):
    """Yield (row, slice) of every packed segment."""
    for row in range(batch.shape[0]):
        for number in range(1, batch.segment_ids[row].max() + 1):
            where = np.flatnonzero(batch.segment_ids[row] == number)
            yield row, slice(where[0], where[-1] + 1)


def test_every_trajectory_is_packed_once_and_whole():
    rollouts, advantages, batch = batch_of([40, 10, 64, 24, 33, 1, 15, 15, 20])
    found = []
    for row, span in segments(batch):
        tokens = batch.tokens[row, span]
        (index,) = [i for i, r in enumerate(rollouts) if np.array_equal(r.tokens, tokens)]
        found.append(index)
        source = rollouts[index]
        mask = source.loss_mask & (np.arange(len(tokens)) > 0)
        np.testing.assert_array_equal(batch.positions[row, span], np.arange(len(tokens)))
        np.testing.assert_array_equal(batch.turn_ids[row, span], source.turn_ids)
        np.testing.assert_array_equal(batch.loss_mask[row, span], mask)
        np.testing.assert_array_equal(
            batch.sampler_logprobs[row, span], np.where(mask, source.sampler_logprobs, 0)
        )
        by_turn = np.concatenate([[0], advantages[index]]).astype(np.float32)
        np.testing.assert_array_equal(
            batch.advantages[row, span], np.where(mask, by_turn[source.turn_ids], 0)
        )
    assert sorted(found) == list(range(len(rollouts)))


def test_padding_holds_zeros():
    _, _, batch = batch_of([40, 10, 50])
    for name, array in batch.arrays().items():
        assert not np.any(array[batch.segment_ids == 0]), name


def test_the_first_token_of_a_segment_never_carries_loss():
    record = rollout(8, loss_mask=np.ones(8, bool), sampler_logprobs=np.zeros(8, np.float32))
    batch = pack([record, record], [np.ones(3)] * 2, row_length=16)
    assert not np.any(batch.loss_mask[batch.positions == 0])
    assert batch.loss_mask.sum() == 14


def test_best_fit_decreasing_fills_rows():
    assert arrange_rows([6, 4, 5, 5, 9, 1], 10) == [[4, 5], [0, 1], [2, 3]]


def test_rows_never_overflow_and_are_few():
    lengths = np.random.default_rng(5).integers(1, 100, 200).tolist()
    rows = arrange_rows(lengths, 128)
    sums = [sum(lengths[d] for d in row) for row in rows]
    assert max(sums) <= 128
    assert len(rows) <= 11 / 9 * -(-sum(lengths) // 128) + 1
    costs = [sum(lengths[d] ** 2 for d in row) for row in rows]
    assert costs == sorted(costs, reverse=True)


def test_the_number_of_rows_is_padded_to_a_multiple():
    _, _, batch = batch_of([60, 60, 60], rows_multiple=4)
    assert batch.shape == (4, 64)
    assert not np.any(batch.segment_ids[3])
    assert pack([], [], row_length=8, rows_multiple=2).shape == (2, 8)


def test_microbatches_are_consecutive_slices():
    _, _, batch = batch_of([60] * 4, rows_multiple=4)
    halves = list(microbatches(batch, 2))
    np.testing.assert_array_equal(np.concatenate([h.tokens for h in halves]), batch.tokens)
    with pytest.raises(ValueError, match="4 rows"):
        list(microbatches(batch, 3))


def test_the_advantages_do_not_depend_on_the_row_multiple():
    lengths = [40, 10, 64, 24, 33]
    _, _, alone = batch_of(lengths)
    _, _, together = batch_of(lengths, rows_multiple=8)
    np.testing.assert_array_equal(alone.advantages, together.advantages[: alone.shape[0]])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokens": np.zeros(0, np.int32)}, "tokens"),
        ({"loss_mask": np.zeros(3, bool)}, "3 loss_mask"),
        ({"sampler_logprobs": np.full(9, np.nan, np.float32), "loss_mask": np.ones(9, bool)}, "finite"),
        ({"turn_ids": np.full(9, 5, np.int16)}, "turn 5"),
    ],
)
def test_a_bad_trajectory_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        pack([rollout(9, **changes)], [np.zeros(3)], row_length=16)


def test_a_trajectory_longer_than_a_row_is_refused():
    with pytest.raises(ValueError, match="17 tokens"):
        pack([rollout(17)], [np.zeros(3)], row_length=16)


def test_supervised_weights_are_one_on_actions_and_small_elsewhere():
    record = rollout(12)
    batch = pack_supervised([record], row_length=16, other_weight=0.25)
    expected = np.where(record.loss_mask, 1.0, 0.25)
    expected[0] = 0
    np.testing.assert_allclose(batch.advantages[0, :12], expected)
    assert batch.loss_mask[0].sum() == 11
    only_actions = pack_supervised([record], row_length=16, other_weight=0.0)
    assert only_actions.loss_mask.sum() == record.loss_mask[1:].sum()
