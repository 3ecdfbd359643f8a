from __future__ import annotations

import random
from datetime import date, datetime

import pytest

from toolverse_jax.environment.spec import Choices, Compose, DateRange, FieldSpec, NumberRange, ValueKind
from toolverse_jax.environment.values import VALUE_KINDS, email_of, fallback_value, generate_value

EPOCH = datetime(2031, 3, 3, 9)


def draw(generator, kind: str = "string", seed: int = 0, person: str | None = None):
    return generate_value(generator, random.Random(seed), EPOCH, FieldSpec(name="x", type=kind), person)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", sorted(VALUE_KINDS))
def test_every_kind_of_value_is_repeatable_and_plain(kind: str) -> None:
    values = [draw(ValueKind(value=kind), seed=n) for n in range(20)]
    assert values == [draw(ValueKind(value=kind), seed=n) for n in range(20)]
    assert all(isinstance(value, str | int | float) for value in values)
    assert len(set(values)) > 1


def test_numbers_stay_on_their_grid_and_integral_ones_are_integers() -> None:
    values = {draw(NumberRange(low=0.5, high=2, step=0.5), "number", n) for n in range(60)}
    assert values == {0.5, 1, 1.5, 2}
    assert all(type(value) is int for value in values if value == int(value))


def test_dates_are_relative_to_the_epoch() -> None:
    days = {draw(DateRange(low_days=-1, high_days=1), "date", n) for n in range(40)}
    assert days == {"2031-03-02", "2031-03-03", "2031-03-04"}
    moment = datetime.fromisoformat(draw(DateRange(low_days=2, high_days=2), "datetime"))
    assert moment.date() == date(2031, 3, 5)


def test_choices_and_compositions_draw_from_their_lists() -> None:
    assert {draw(Choices(values=("a", "b")), seed=n) for n in range(20)} == {"a", "b"}
    words = {draw(Compose(parts=(("a", "b"), ("c",)), separator="-"), seed=n) for n in range(20)}
    assert words == {"a-c", "b-c"}


def test_an_email_fits_the_person_of_its_row() -> None:
    assert draw(ValueKind(value="email"), person="Ada O'Dell").startswith("ada.o.dell@")
    assert email_of("", random.Random(0)).startswith("someone@")


@pytest.mark.parametrize(
    "kind", ["string", "integer", "number", "boolean", "date", "datetime", "array", "object"]
)
def test_a_field_without_a_generator_gets_a_value_of_its_type(kind: str) -> None:
    field = FieldSpec(name="x", type=kind)  # type: ignore[arg-type]
    assert fallback_value(field, random.Random(0), EPOCH) is not None
