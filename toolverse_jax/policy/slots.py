"""Host-side bookkeeping of the sampler: which sequence holds which slot, and what each slot has cached."""

from __future__ import annotations

import dataclasses

import numpy as np

_WORTH_COPYING = 32
"""Shared tokens above which a slot is copied from another one instead of prefilled."""


@dataclasses.dataclass
class Slot:
    """One row of the cache."""

    number: int
    cached: np.ndarray
    """int32 ids of the tokens whose keys and values are cached, in order."""
    sequence_id: str | None = None
    """The sequence that owns the slot; the content of a free slot may still serve as a prefix."""
    busy: bool = False
    """True from submission to the result."""
    last_used: int = 0


@dataclasses.dataclass(frozen=True)
class Placement:
    """Where a prompt goes."""

    slot: Slot
    shared: int
    """Leading prompt tokens already in the slot, or in the donor."""
    donor: Slot | None = None
    """Slot to copy from."""


def shared_prefix(left: np.ndarray, right: np.ndarray) -> int:
    """Return the number of leading elements that are equal."""
    size = min(left.size, right.size)
    different = np.flatnonzero(left[:size] != right[:size])
    return int(different[0]) if different.size else size


class SlotTable:
    """Assigns sequences to slots and reuses what slots have cached."""

    def __init__(self, slots: int):
        self.slots = [Slot(number=number, cached=np.zeros(0, np.int32)) for number in range(slots)]
        self._by_sequence: dict[str, Slot] = {}
        self._clock = 0

    def touch(self, slot: Slot) -> None:
        """Mark a slot as the most recently used."""
        self._clock += 1
        slot.last_used = self._clock

    def release(self, sequence_id: str) -> None:
        """Free the slot of a sequence, if it has one; its content stays as a possible prefix."""
        slot = self._by_sequence.pop(sequence_id, None)
        if slot is not None:
            slot.sequence_id, slot.busy = None, False

    def forget(self) -> None:
        """Drop everything cached; sequences keep their slots."""
        for slot in self.slots:
            slot.cached = np.zeros(0, np.int32)

    def truncate(self, length: int) -> None:
        """Drop what is cached beyond `length` tokens."""
        for slot in self.slots:
            slot.cached = slot.cached[:length]

    def place(
        self, sequence_id: str, prompt: np.ndarray, waiting: list[np.ndarray], *, evict: bool = False
    ) -> Placement | None:
        """Choose the slot of a prompt and what to reuse; None where it should wait for the next round.

        The slot forgets what the prompt does not share. Where a donor is named, the caller copies it, in
        the order of placement, before anything is written.

        It waits where every slot is taken (with `evict`, where every slot is busy), or where a prompt of this round (`waiting`) is about to
        cache a longer prefix than any slot has now, as happens when siblings start together.
        """
        usable = prompt[:-1]  # the last token is fed to the decoder, so it never needs to be cached
        own = self._by_sequence.get(sequence_id)
        own_shared = 0 if own is None else shared_prefix(own.cached, usable)
        if own is not None and own_shared and own_shared >= own.cached.size:
            self.touch(own)
            own.busy = True
            return Placement(slot=own, shared=own_shared)
        shared = {slot.number: shared_prefix(slot.cached, usable) for slot in self.slots}
        donor = max(self.slots, key=lambda slot: (shared[slot.number], -slot.number))
        best = max(own_shared, shared[donor.number])
        if any(shared_prefix(other, usable) >= best + _WORTH_COPYING for other in waiting):
            return None
        slot = own or self._free_slot(donor, evict)
        if slot is None:
            return None
        if own is None:
            if slot.sequence_id is not None:
                del self._by_sequence[slot.sequence_id]
            slot.sequence_id = sequence_id
            self._by_sequence[sequence_id] = slot
        self.touch(slot)
        slot.busy = True
        # At once, so that no later prompt of this round counts on what the slot is about to lose.
        slot.cached = slot.cached[: shared[slot.number]]
        if shared[donor.number] >= shared[slot.number] + _WORTH_COPYING:
            return Placement(slot=slot, shared=shared[donor.number], donor=donor)
        return Placement(slot=slot, shared=shared[slot.number])

    def _free_slot(self, donor: Slot, evict: bool) -> Slot | None:
        """Return a free slot: the donor if it is free, else the one not used for longest.

        Eviction is a last resort, since idle sequences usually come back with a longer prompt.
        """
        choice = [slot for slot in self.slots if slot.sequence_id is None]
        if donor in choice and donor.cached.size:
            return donor
        if not choice and evict:
            choice = [slot for slot in self.slots if not slot.busy]
        return min(choice, key=lambda slot: (slot.last_used, slot.number), default=None)
