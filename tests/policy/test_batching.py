"""Batch shapes: everything is covered, and few shapes occur."""

from __future__ import annotations

import random

import pytest

from toolverse_jax.policy.batching import PREFILL_LENGTHS, batch_buckets, bucket_of, plan_prefill


def test_every_piece_is_in_one_batch_that_holds_it():
    rng = random.Random(0)
    shapes = set()
    for _ in range(300):
        sizes = [rng.randint(1, 256) for _ in range(rng.randint(0, 40))]
        batches = plan_prefill(sizes)
        assert sorted(index for batch in batches for index in batch.members) == list(range(len(sizes)))
        for batch in batches:
            assert len(batch.members) <= batch.rows
            assert all(sizes[index] <= batch.length for index in batch.members)
            assert batch.rows * batch.length <= 1024
        shapes |= {(batch.rows, batch.length) for batch in batches}
    assert len(shapes) <= 3 * len(PREFILL_LENGTHS)


def test_full_batches_are_used_where_pieces_suffice():
    assert [(b.rows, b.length, len(b.members)) for b in plan_prefill([40] * 16)] == [(16, 48, 16)]
    assert [(b.rows, len(b.members)) for b in plan_prefill([40])] == [(1, 1)]


def test_spare_rows_take_shorter_pieces():
    assert [(b.rows, b.length, len(b.members)) for b in plan_prefill([60, 60, 60, 5])] == [(4, 64, 4)]


@pytest.mark.parametrize("slots", [1, 2, 3, 8, 64, 100])
def test_buckets_reach_from_one_to_all_slots(slots):
    buckets = batch_buckets(slots)
    assert buckets[0] == 1 and buckets[-1] == slots and list(buckets) == sorted(set(buckets))
    assert all(bucket_of(count, buckets) >= count for count in range(1, slots + 1))
