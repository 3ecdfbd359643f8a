"""Checks of user messages: nothing technical leaks, and every said value can be read back."""

from __future__ import annotations

import re
from collections.abc import Iterable

from toolverse_jax.gust.phrases import count_words, label_words, number_words, read_dates
from toolverse_jax.gust.trace import GroundedTurn
from toolverse_jax.gust.wording import Wording
from toolverse_jax.types import JSON

MAX_WORDS = 32
MIN_WORDS = 3

_SNAKE_CASE = re.compile(r"[A-Za-z0-9]_[A-Za-z0-9]")
_CAMEL_CASE = re.compile(r"\b[a-z]+[A-Z]\w*")
_ODD = (
    re.compile(r"\{|\}"),
    re.compile(r"  |\s[,.;?!]"),
    re.compile(r"\b(the|a|an|of|to|for|at|in|on|and) \1\b", re.IGNORECASE),
    re.compile(r"\ba [aeio]", re.IGNORECASE),
    re.compile(r"[,;.?!]{2,}"),
    re.compile(r"\b(a|an|the) [,.?!]"),
)


def find_leaks(text: str, identifiers: Iterable[JSON], wording: Wording) -> list[str]:
    """Return identifiers, tool names and parameter names that a message must not hold."""
    leaks = [str(i) for i in identifiers if re.search(rf"(?<!\w){re.escape(str(i))}(?!\w)", text)]
    leaks += [match.group(0) for match in _SNAKE_CASE.finditer(text)]
    names = {*wording.operations, *(p for schemas in wording.schemas.values() for p in schemas)}
    technical = {name for name in names if _CAMEL_CASE.fullmatch(name) or "-" in name}
    leaks += sorted(name for name in technical if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text))
    return leaks


def said_values(turn: GroundedTurn) -> list[JSON]:
    """Return all values that the user's words must carry in a turn."""
    values: list[JSON] = []
    for call in turn.calls:
        values += call.said.values()
        for reference in call.references.values():
            values += reference.described_values()
        if call.ask is not None and call.ask.row is not None:
            values += call.ask.row.described_values()
    return values


def is_recoverable(text: str, value: JSON, year: int) -> bool:
    """Return whether a value can be read back from a message.

    Args:
        text: the message.
        value: an argument's value or an attribute's.
        year: year of dates that are said without one.
    """
    if isinstance(value, bool) or value is None:
        return True
    if isinstance(value, int | float):
        return re.search(rf"(?<![\w.]){re.escape(number_words(value))}(?![\w.]*\d)", text) is not None
    if not isinstance(value, str):
        return False
    if re.fullmatch(r"\d{4}-\d\d-\d\d(?:T[\d:]+)?", value):
        return value in read_dates(text, year=year)
    return value in text or label_words(value).casefold() in text.casefold()


def oddities(text: str) -> list[str]:
    """Return patterns that no well-formed message has, and lengths out of bounds."""
    # What stands in quotation marks is the user's own text, not our grammar.
    bare = re.sub(r'"[^"]*"', '"x"', text)
    found = [match.group(0) for pattern in _ODD for match in [pattern.search(bare)] if match]
    words = count_words(text)
    if not MIN_WORDS <= words <= MAX_WORDS:
        found.append(f"{words} words")
    return found
