"""Draws values for generated rows from the generators of a specification."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime, timedelta

from toolverse_jax.environment import lexicon
from toolverse_jax.environment.spec import (
    Choices,
    Compose,
    DateRange,
    FieldSpec,
    Generator,
    NumberRange,
)
from toolverse_jax.types import JSON

UNIQUE_ATTEMPTS = 32


def _person(rng: random.Random) -> str:
    return f"{rng.choice(lexicon.GIVEN_NAMES)} {rng.choice(lexicon.FAMILY_NAMES)}"


def _email(rng: random.Random) -> str:
    return email_of(_person(rng), rng)


def email_of(person: str, rng: random.Random) -> str:
    """Return an address that belongs to a person's name."""
    local = ".".join(word for word in "".join(c if c.isalnum() else " " for c in person.lower()).split())
    return f"{local or 'someone'}@{rng.choice(lexicon.MAIL_DOMAINS)}"


def _phone(rng: random.Random) -> str:
    return f"+99 {rng.randrange(10, 100)} 555 {rng.randrange(10_000):04d}"


def _address(rng: random.Random) -> str:
    return f"{rng.randrange(1, 200)} {_street(rng)}, {rng.choice(lexicon.CITIES)}"


def _street(rng: random.Random) -> str:
    return f"{rng.choice(lexicon.STREETS)} {rng.choice(lexicon.STREET_TYPES)}"


def _company(rng: random.Random) -> str:
    return f"{rng.choice(lexicon.COMPANY_HEADS)} {rng.choice(lexicon.COMPANY_TAILS)}"


def _title(rng: random.Random) -> str:
    return f"{rng.choice(lexicon.ADJECTIVES)} {rng.choice(lexicon.NOUNS)}".capitalize()


def _sentence(rng: random.Random) -> str:
    verb, adjective = rng.choice(lexicon.VERBS), rng.choice(lexicon.ADJECTIVES)
    return f"{verb} the {adjective} {rng.choice(lexicon.NOUNS)}".capitalize() + "."


def _paragraph(rng: random.Random) -> str:
    return " ".join(_sentence(rng) for _ in range(rng.randrange(2, 4)))


def _url(rng: random.Random) -> str:
    return f"https://{rng.choice(lexicon.NOUNS)}.{rng.choice(lexicon.SITE_TAILS)}/{rng.choice(lexicon.TAGS)}"


def _code(rng: random.Random) -> str:
    letters = "ABCDEFGHJKLMNPQRSTVWXYZ"
    return "".join(rng.choice(letters) for _ in range(2)) + f"-{rng.randrange(100, 1000)}"


def _time(rng: random.Random) -> str:
    return f"{rng.randrange(7, 21):02d}:{rng.choice((0, 15, 30, 45)):02d}"


def _path(rng: random.Random) -> str:
    return f"/{rng.choice(lexicon.TAGS)}/{rng.choice(lexicon.NOUNS)}.txt"


def _choice(values: tuple[str, ...]) -> Callable[[random.Random], JSON]:
    return lambda rng: rng.choice(values)


VALUE_KINDS: dict[str, Callable[[random.Random], JSON]] = {
    "address": _address,
    "amount": lambda rng: rng.randrange(100, 50_000) / 100,
    "boolean": lambda rng: rng.random() < 0.5,
    "city": _choice(lexicon.CITIES),
    "code": _code,
    "color": _choice(lexicon.COLOURS),
    "colour": _choice(lexicon.COLOURS),
    "company": _company,
    "country": _choice(lexicon.COUNTRIES),
    "currency": _choice(lexicon.CURRENCIES),
    "email": _email,
    "first_name": _choice(lexicon.GIVEN_NAMES),
    "integer": lambda rng: rng.randrange(1, 101),
    "job": _choice(lexicon.JOB_TITLES),
    "language": _choice(lexicon.LANGUAGES),
    "last_name": _choice(lexicon.FAMILY_NAMES),
    "latitude": lambda rng: round(rng.uniform(-60, 70), 4),
    "longitude": lambda rng: round(rng.uniform(-180, 180), 4),
    "name": _title,
    "paragraph": _paragraph,
    "path": _path,
    "percent": lambda rng: rng.randrange(0, 101),
    "person": _person,
    "phone": _phone,
    "rating": lambda rng: rng.randrange(2, 11) / 2,
    "sentence": _sentence,
    "street": _street,
    "tag": _choice(lexicon.TAGS),
    "text": _sentence,
    "time": _time,
    "title": _title,
    "url": _url,
    "username": lambda rng: f"{rng.choice(lexicon.GIVEN_NAMES).lower()}{rng.randrange(10, 100)}",
    "word": _choice(lexicon.NOUNS),
}
"""Names that a `value` generator may use."""


def generate_value(
    generator: Generator, rng: random.Random, epoch: datetime, field: FieldSpec, person: str | None = None
) -> JSON:
    """Draw one value.

    Args:
        generator: how the value is drawn.
        rng: source of randomness, owned by this field of this row.
        epoch: start of the environment's logical clock; dates are relative to it.
        field: the field the value is for.
        person: name of the person of the same row, if there is one, so that an e-mail fits it.
    """
    if isinstance(generator, Choices):
        return rng.choice(generator.values)
    if isinstance(generator, Compose):
        return generator.separator.join(rng.choice(part) for part in generator.parts if part)
    if isinstance(generator, NumberRange):
        return _number(generator, rng, field)
    if isinstance(generator, DateRange):
        day = epoch + timedelta(days=rng.randint(generator.low_days, generator.high_days))
        if field.type == "datetime":
            quarter = rng.randrange(8 * 4, 18 * 4)
            return day.replace(hour=quarter // 4, minute=15 * (quarter % 4), second=0).isoformat()
        return day.date().isoformat()
    if generator.value == "email" and person:
        return email_of(person, rng)
    return VALUE_KINDS[generator.value](rng)


def _number(generator: NumberRange, rng: random.Random, field: FieldSpec) -> JSON:
    count = int((generator.high - generator.low) / generator.step + 1e-9)
    number = round(generator.low + generator.step * rng.randint(0, count), 6)
    if field.type == "string":
        return f"{number:g}"
    return int(number) if field.type == "integer" or float(number).is_integer() else number


def fallback_value(field: FieldSpec, rng: random.Random, epoch: datetime) -> JSON:
    """Draw a plausible value for a field that has neither generator nor default and is not nullable."""
    if field.type in ("date", "datetime"):
        return generate_value(DateRange(low_days=-20, high_days=20), rng, epoch, field)
    plain: dict[str, Callable[[], JSON]] = {
        "string": lambda: _title(rng),
        "integer": lambda: rng.randint(1, 20),
        "number": lambda: rng.randint(1, 20),
        "boolean": lambda: rng.random() < 0.5,
        "array": list,
        "object": dict,
    }
    draw = plain.get(field.type)
    return draw() if draw else None


def distinct_variant(value: JSON, attempt: int) -> JSON:
    """Return a variation of a value for a unique field whose generator keeps repeating itself."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float):
        return value + attempt
    if isinstance(value, str) and "@" in value:
        local, _, domain = value.partition("@")
        return f"{local}{attempt + 1}@{domain}"
    return f"{value} {attempt + 1}" if isinstance(value, str) else value
