"""Which slot a prompt gets, and what it reuses."""

from __future__ import annotations

import numpy as np

from toolverse_jax.policy.slots import SlotTable, shared_prefix


def _prompt(*parts):
    return np.concatenate([np.full(count, token, np.int32) for token, count in parts])


def _cache(placement, prompt):
    placement.slot.cached = prompt[:-1]
    placement.slot.busy = False


def test_the_shared_prefix_is_counted():
    assert shared_prefix(np.array([1, 2, 3]), np.array([1, 2, 4, 5])) == 2
    assert shared_prefix(np.array([1, 2]), np.array([1, 2, 4])) == 2
    assert shared_prefix(np.array([], int), np.array([1])) == 0


def test_a_sequence_keeps_its_slot_and_its_cache():
    table = SlotTable(3)
    prompt = _prompt((1, 50))
    first = table.place("a", prompt, [])
    _cache(first, prompt)
    longer = np.concatenate([prompt, _prompt((2, 9))])
    again = table.place("a", longer, [])
    assert again.slot is first.slot and again.shared == 49 and again.donor is None


def test_a_changed_history_reuses_only_what_is_equal():
    table = SlotTable(3)
    prompt = _prompt((1, 50))
    _cache(table.place("a", prompt, []), prompt)
    assert table.place("a", _prompt((1, 20), (3, 60)), []).shared == 20


def test_a_sibling_copies_the_common_prefix_from_another_slot():
    table = SlotTable(3)
    prompt = _prompt((1, 50), (2, 5))
    _cache(table.place("a", prompt, []), prompt)
    placement = table.place("b", _prompt((1, 50), (3, 5)), [])
    assert placement.donor is not None and placement.donor.sequence_id == "a"
    assert placement.shared == 50 and placement.slot.sequence_id == "b"


def test_a_sibling_waits_for_one_that_is_about_to_cache_the_prefix():
    table = SlotTable(3)
    prompt = _prompt((1, 50), (2, 5))
    assert table.place("b", _prompt((1, 50), (3, 5)), [prompt[:-1]]) is None
    assert table.place("b", _prompt((1, 10), (3, 5)), [prompt[:-1]]) is not None  # too little to wait for


def test_a_free_slot_with_the_prefix_is_taken_without_a_copy():
    table = SlotTable(3)
    prompt = _prompt((1, 50))
    first = table.place("a", prompt, [])
    _cache(first, prompt)
    table.release("a")
    placement = table.place("b", _prompt((1, 50), (3, 5)), [])
    assert placement.slot is first.slot and placement.shared == 49 and placement.donor is None


def test_the_oldest_idle_sequence_gives_way_only_when_asked_and_busy_ones_never():
    table = SlotTable(2)
    for name, token in (("a", 1), ("b", 2)):
        prompt = _prompt((token, 40))
        _cache(table.place(name, prompt, []), prompt)
    assert table.place("a", _prompt((1, 45)), []) is not None  # a is busy now
    assert table.place("c", _prompt((5, 45)), []) is None
    placement = table.place("c", _prompt((5, 45)), [], evict=True)
    assert placement is not None and placement.slot.sequence_id == "c"
    assert [slot.sequence_id for slot in table.slots] == ["a", "c"]
    assert table.place("d", _prompt((6, 45)), [], evict=True) is None


def test_a_slot_that_is_taken_over_no_longer_counts_as_a_prefix():
    table = SlotTable(3)
    old, kept = _prompt((1, 60)), _prompt((2, 60))
    for name, prompt in (("old", old), ("kept", kept)):
        _cache(table.place(name, prompt, []), prompt)
    _cache(table.place("third", _prompt((9, 60)), []), _prompt((9, 60)))
    table.release("old")
    taken = table.place("b", _prompt((2, 60), (3, 5)), [])  # the only free slot, filled from another
    assert taken.donor is not None and taken.slot.number == 0 and taken.slot.cached.size == 0
    after = table.place("c", _prompt((1, 60), (3, 5)), [], evict=True)
    assert after.donor is None and after.shared == 0
