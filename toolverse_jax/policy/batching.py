"""Chooses batch shapes for the sampler, from a small set so that few programs are compiled."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

PREFILL_LENGTHS = (16, 32, 48, 64, 128, 256)
"""New tokens per row of one prefill; longer prompts go in pieces of the last size."""
_PREFILL_ROWS = (1, 4, 16)
_PREFILL_TOKENS = 1024
"""Bound on rows times length of one prefill, which bounds its activations."""


@dataclasses.dataclass(frozen=True)
class PrefillBatch:
    """One call of the prefill program: which pieces, padded to `rows` by `length`."""

    members: tuple[int, ...]
    rows: int
    length: int


def plan_prefill(sizes: Sequence[int]) -> list[PrefillBatch]:
    """Group pieces of new tokens (each 1 to 256 long) into batches, long ones first.

    A batch with spare rows takes shorter pieces too, since its padding costs nothing more.
    """
    order = sorted(range(len(sizes)), key=lambda index: (-sizes[index], index))
    batches: list[PrefillBatch] = []
    while order:
        length = bucket_of(sizes[order[0]], PREFILL_LENGTHS)
        shorter = max((bucket for bucket in PREFILL_LENGTHS if bucket < length), default=0)
        same = sum(1 for index in order if sizes[index] > shorter)
        allowed = [rows for rows in _PREFILL_ROWS if rows * length <= _PREFILL_TOKENS]
        # The largest batch that the pieces of this length fill by two thirds.
        rows = max(rows for rows in allowed if rows == 1 or same * 3 >= rows * 2 or (rows <= 4 and same > 1))
        batches.append(PrefillBatch(members=tuple(order[:rows]), rows=rows, length=length))
        order = order[rows:]
    return batches


def batch_buckets(slots: int) -> tuple[int, ...]:
    """Return the sizes of decode batches: 1, 4, 16, 64, ... below the slots, half of them, and all."""
    sizes = {slots, max(1, slots // 2)}
    size = 1
    while size < slots // 2:
        sizes.add(size)
        size *= 4
    return tuple(sorted(sizes))


def bucket_of(count: int, buckets: Sequence[int]) -> int:
    """Return the smallest bucket that holds `count`."""
    return next(bucket for bucket in buckets if bucket >= count)
