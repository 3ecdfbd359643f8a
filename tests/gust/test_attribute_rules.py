from __future__ import annotations

import pytest

from toolverse_jax.environment.spec import FieldSpec
from toolverse_jax.gust.attribute_rules import make_attribute
from toolverse_jax.gust.attributes import Attribute, head_noun


def _make(
    name: str, text: str, noun: str = "thing", *, kind: str = "string", label: bool = False, **more
) -> Attribute:
    return make_attribute(FieldSpec(name=name, type=kind, **more), text, noun, label=label)  # type: ignore[arg-type]


def test_nouns_of_fields_have_no_technical_parts() -> None:
    assert head_noun("due_date") == "due date"
    assert head_noun("depth_cm", True) == "depth"
    assert head_noun("ownerId") == "owner"


@pytest.mark.parametrize(
    ("attribute", "after"),
    [
        (_make("nights", "number of nights", kind="integer"), "for {n}"),
        (_make("beds", "number of beds", kind="integer"), "with {n}"),
        (_make("depth_cm", "depth in centimetres", kind="integer"), "with a depth of {n}"),
        (_make("area_m2", "area in square metres", kind="integer"), "with an area of {n}"),
        (
            _make("value", "insured value in thousands", kind="integer"),
            "with an insured value of {v} thousand",
        ),
        (_make("length_m", "longest boat in metres", kind="integer"), "for boats up to {n}"),
        (_make("date", "day of the session", "session", kind="date"), "on {v}"),
        (_make("arrival", "day of arrival", "stay", kind="date"), "with arrival on {v}"),
        (_make("due_date", "day it should be ready", kind="date"), "to be ready on {v}"),
        (_make("due_date", "day the loan is due", kind="date"), "due on {v}"),
        (_make("venue", "where it takes place"), "in {v}"),
        (_make("director", "who directs it"), "directed by {v}"),
        (_make("recipient", "who picks it up"), "for {v}"),
        (_make("side", "side of the harbour", kind="enum", enum=("north", "south")), "on the {v} side"),
        (_make("valley", "valley of the hut", kind="enum", enum=("upper",)), "in the {v} valley"),
        (_make("access", "how to get there", kind="enum", enum=("road",)), "reached by {v}"),
        (_make("to", ""), "to {v}"),
    ],
)
def test_a_description_says_how_the_value_follows_its_noun(attribute: Attribute, after: str) -> None:
    assert attribute.after[0] == after


def test_adjectives_stand_before_the_noun() -> None:
    assert _make("size", "size of the locker", kind="enum", enum=("small",)).before == "{v}"
    assert _make("colour", "colour of the frame", kind="enum", enum=("red",)).before == "{v}"


def test_names_titles_and_persons_are_told_apart() -> None:
    assert _make("name", "name of the pier", "pier", label=True).naming == "name"
    assert _make("title", "title of the show", "show", label=True).naming == "title"
    assert _make("name", "full name", "customer", label=True).person
    assert _make("guest", "name of the guest", "reservation", label=True).person
    assert not _make("boat", "name of the boat", "stay", label=True).person


@pytest.mark.parametrize("kind", ["string", "integer", "number", "boolean", "date", "datetime", "enum"])
def test_every_kind_of_field_can_be_said_asked_told_and_changed(kind: str) -> None:
    attribute = _make("odd_thing", "", kind=kind, enum=("a", "b") if kind == "enum" else None)
    assert attribute.says and attribute.asks and attribute.tells and attribute.changes and attribute.answer
    assert not any(
        "_" in form for form in (*attribute.says, *attribute.asks, *attribute.tells, attribute.head)
    )
