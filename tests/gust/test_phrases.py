from __future__ import annotations

import pytest

from toolverse_jax.gust.phrases import (
    capitalise,
    close_sentence,
    date_words,
    indefinite,
    is_plural,
    join_words,
    participle,
    plural,
    quantity,
    read_dates,
    singular,
)


@pytest.mark.parametrize(
    ("noun", "phrase"),
    [
        ("berth", "a berth"),
        ("order", "an order"),
        ("hour", "an hour"),
        ("user", "a user"),
        ("unit", "a unit"),
        ("urgent task", "an urgent task"),
        ("European tour", "a European tour"),
        ('"acid strip" test', 'an "acid strip" test'),
        ("8 day stay", "an 8 day stay"),
    ],
)
def test_the_article_follows_the_sound_of_the_noun(noun: str, phrase: str) -> None:
    assert indefinite(noun) == phrase


@pytest.mark.parametrize(
    ("one", "many"),
    [
        ("berth", "berths"),
        ("box", "boxes"),
        ("variety", "varieties"),
        ("day", "days"),
        ("rye loaf", "rye loaves"),
        ("watering plan", "watering plans"),
        ("branch", "branches"),
        ("person", "people"),
        ("series", "series"),
    ],
)
def test_plural_and_singular_are_inverse(one: str, many: str) -> None:
    assert plural(one) == many
    assert singular(many) == one
    assert singular(one) == one


def test_plurals_are_told_from_singulars_that_end_in_s() -> None:
    assert is_plural("nights") and is_plural("square metres") and is_plural("people")
    assert not is_plural("status") and not is_plural("address") and not is_plural("night")


@pytest.mark.parametrize(
    ("verb", "done"),
    [
        ("cancel", "cancelled"),
        ("close", "closed"),
        ("lend", "lent"),
        ("deny", "denied"),
        ("approve", "approved"),
        ("put back", "put back"),
        ("deliver", "delivered"),
    ],
)
def test_participles_are_formed(verb: str, done: str) -> None:
    assert participle(verb) == done


def test_words_are_joined_without_an_oxford_comma() -> None:
    assert [join_words(items) for items in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]


@pytest.mark.parametrize("month_first", [False, True])
@pytest.mark.parametrize("year", [False, True])
@pytest.mark.parametrize("value", ["2031-03-12", "2031-12-01", "2031-05-20T14:30:00"])
def test_a_said_date_can_be_read_back(value: str, year: bool, month_first: bool) -> None:
    words = date_words(value, year=year, month_first=month_first)
    assert read_dates(f"Move it to {words}, please.", year=2031) == [value]
    assert ("2031" in words) == year


def test_a_date_of_another_year_is_not_read_as_this_one() -> None:
    assert read_dates(date_words("2032-03-12", year=False), year=2031) != ["2032-03-12"]


def test_one_thing_is_counted_in_the_singular() -> None:
    assert quantity(1, "nights") == "1 night"
    assert quantity(4, "nights") == "4 nights"


def test_sentences_end_with_one_mark_and_begin_with_a_capital() -> None:
    assert capitalise(close_sentence("add  a pier .")) == "Add a pier."
    assert capitalise('"Alba" is over') == '"Alba" is over'
    assert capitalise("2 beds") == "2 beds"
