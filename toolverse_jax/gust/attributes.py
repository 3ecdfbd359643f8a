"""The record of how a person speaks of one field of an entity."""

from __future__ import annotations

import dataclasses
import re

from toolverse_jax.environment.spec import FieldSpec
from toolverse_jax.gust.phrases import plural, singular

PERSON_WORDS = frozenset(
    "applicant assignee attendee author buyer client contact customer donor driver employee guest guardian hiker "
    "host instructor lender member organiser owner parent patient payee payer person player recipient reporter "
    "resident sender speaker student subscriber teacher tenant user visitor volunteer".split()
)
NAMING_WORDS = frozenset(
    "name title label text subject caption heading summary content body nickname".split()
)
_PARTS_OF_DAY = {"noon": "at noon", "midnight": "at midnight", "night": "at night", "dawn": "at dawn"}
_UNIT_SUFFIX = re.compile(r"_(?:cm|mm|m2|m3|m|km|kg|g|l|ml|min|s|h|eur|usd|pct)$")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Attribute:
    """The ways to speak of one field."""

    field: FieldSpec
    head: str
    """Noun for the field: `due date`, `number of nights`."""
    naming: str = ""
    """`name`, `title` or `plain` (quoted before the noun) where the field names its row; else empty."""
    person: bool = False
    unit: str = ""
    """Plural noun that is counted: `nights`, `square metres`."""
    before: str = ""
    """Adjective before the noun, `{v}` in it."""
    after: tuple[str, ...] = ()
    """Phrases after the noun."""
    says: tuple[str, ...] = ()
    """Sentences about the row, its pronoun being `it`."""
    asks: tuple[str, ...] = ()
    """Questions about the row `{ref}`."""
    tells: tuple[str, ...] = ()
    """What to tell of the row: `how many nights {ref} is for`."""
    changes: tuple[str, ...] = ()
    """Requests to give the row `{ref}` another value."""
    changes_it: tuple[str, ...] = ()
    """Short requests of the same for a row that was just spoken of."""
    answer: str = ""
    """Sentence that answers a question, with the value verbatim."""
    filters: tuple[str, ...] = ()
    """Predicates of a plural subject: `are in the {v} valley`."""

    @property
    def is_date(self) -> bool:
        return self.field.type in ("date", "datetime")

    @property
    def is_number(self) -> bool:
        return self.field.type in ("integer", "number")


def head_noun(name: str, unit_suffix: bool = False) -> str:
    """Return the noun of a field name: `due_date` gives `due date`, `depth_cm` gives `depth`."""
    if unit_suffix:
        name = _UNIT_SUFFIX.sub("", name)
    name = re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()
    return re.sub(r"_(?:id|ref)$", "", name).replace("_", " ").strip()


def question_told(question: str) -> str:
    """Turn a question about `{ref}` with `is` into an indirect one: `what size {ref} is`."""
    if question.startswith("what is "):
        return question.removeprefix("what is ")
    return question.replace(" is {ref}", " {ref} is")


def part_of_day(value: str) -> str:
    """Return `in the morning`, `at noon`."""
    return _PARTS_OF_DAY.get(value, f"in the {value}")


def unit_noun(attribute: Attribute, number: float) -> str:
    """Return the counted noun in the number that fits."""
    return singular(attribute.unit) if number == 1 else plural(singular(attribute.unit))
