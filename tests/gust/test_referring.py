from __future__ import annotations

from toolverse_jax.gust.referring import distinguishing_attributes

ROWS = [
    {"id": "a", "boat": "Silver Wren", "nights": 2, "status": "open"},
    {"id": "b", "boat": "Silver Wren", "nights": 3, "status": "open"},
    {"id": "c", "boat": "Night Otter", "nights": 3, "status": "open"},
    {"id": "d", "boat": "night otter", "nights": 5, "status": None},
]
FIELDS = ["boat", "nights", "status"]


def test_one_attribute_is_enough_where_it_is_unique() -> None:
    assert distinguishing_attributes(ROWS, ROWS[0], FIELDS) == (("nights", 2),)
    assert distinguishing_attributes(ROWS[:1] + ROWS[2:3], ROWS[0], FIELDS) == (("boat", "Silver Wren"),)


def test_two_attributes_are_used_where_one_is_not_enough() -> None:
    assert distinguishing_attributes(ROWS, ROWS[1], FIELDS) == (("boat", "Silver Wren"), ("nights", 3))


def test_names_that_differ_in_case_only_do_not_single_out() -> None:
    assert distinguishing_attributes(ROWS, ROWS[2], ["boat"]) is None


def test_rows_that_look_the_same_cannot_be_referred_to() -> None:
    twins = [ROWS[0], {**ROWS[0], "id": "e"}]
    assert distinguishing_attributes(twins, twins[0], FIELDS) is None


def test_absent_values_are_never_used() -> None:
    assert distinguishing_attributes(ROWS, ROWS[3], ["status", "nights"]) == (("nights", 5),)
