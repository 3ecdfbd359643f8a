"""When one call counts as another: tool names and arguments, with a match mode per parameter."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation

from toolverse_jax.types import JSON, GoldenCall, ToolCall, json_equal

_SLASHED_DATE = re.compile(r"(\d{4})[/.](\d{1,2})[/.](\d{1,2})")


def call_matches(golden: ToolCall | GoldenCall, call: ToolCall) -> bool:
    """Return whether `call` is the golden call: same tool, and arguments that match mode by mode."""
    if isinstance(golden, GoldenCall):
        return golden.tool == call.name and arguments_match(golden.arguments, call.arguments, golden.match)
    return golden.name == call.name and arguments_match(golden.arguments, call.arguments)


def arguments_match(
    golden: Mapping[str, JSON], given: Mapping[str, JSON], modes: Mapping[str, str] | None = None
) -> bool:
    """Compare the arguments of two calls.

    Args:
        golden: expected arguments by parameter.
        given: arguments of the call that is judged.
        modes: match mode by parameter, one of `MATCH_MODES`; an absent parameter matches exactly.
            A parameter of mode `ignore` may be missing or present on either side, one of mode
            `optional` may be left out of the call.

    Returns:
        Whether every parameter matches and the call carries no other one.

    Raises:
        ValueError: a mode is unknown.
    """
    modes = modes or {}
    for parameter, mode in modes.items():
        if mode not in MATCH_MODES:
            raise ValueError(
                f"match mode of parameter {parameter!r} must be one of {', '.join(MATCH_MODES)}, got {mode!r}"
            )
    for parameter in {**golden, **given}:
        mode = modes.get(parameter, "exact")
        if mode == "ignore":
            continue
        if parameter not in golden:
            return False
        if parameter not in given:
            if mode == "optional":
                continue
            return False
        if not _COMPARE[mode](golden[parameter], given[parameter]):
            return False
    return True


def _equal_ignoring_case(left: JSON, right: JSON) -> bool:
    return json_equal(_fold(left), _fold(right))


def _fold(value: JSON) -> JSON:
    """Casefold strings and collapse their white space, inside lists and objects too."""
    if isinstance(value, str):
        return " ".join(value.casefold().split())
    if isinstance(value, Mapping):
        return {key: _fold(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [_fold(item) for item in value]
    return value


def _equal_as_sets(left: JSON, right: JSON) -> bool:
    """Compare two lists without regard to order and repetition."""
    if not isinstance(left, list | tuple) or not isinstance(right, list | tuple):
        return json_equal(left, right)
    return _contains_all(left, right) and _contains_all(right, left)


def _contains_all(pool: Sequence[JSON], items: Sequence[JSON]) -> bool:
    return all(any(json_equal(item, other) for other in pool) for item in items)


def _equal_numbers(left: JSON, right: JSON) -> bool:
    """Compare numbers that may be written as text: `"1,200.50"` equals 1200.5."""
    a, b = _number(left), _number(right)
    if a is None or b is None:
        return json_equal(left, right)
    return a == b


def _number(value: JSON) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    # str() of a float is its shortest exact text, so 0.1 and "0.1" are the same Decimal.
    text = str(value).strip().replace(",", "") if isinstance(value, str) else str(value)
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _equal_dates(left: JSON, right: JSON) -> bool:
    """Compare dates or times in ISO form; midnight without a zone equals the bare date."""
    a, b = _moment(left), _moment(right)
    if a is None or b is None:
        return json_equal(left, right)
    return a == b


def _moment(value: JSON) -> datetime.datetime | None:
    if not isinstance(value, str):
        return None
    text = value.strip()
    slashed = _SLASHED_DATE.fullmatch(text)
    if slashed:
        text = "{}-{:0>2}-{:0>2}".format(*slashed.groups())
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.astimezone(datetime.UTC) if moment.tzinfo else moment


_COMPARE: dict[str, Callable[[JSON, JSON], bool]] = {
    "exact": json_equal,
    "optional": json_equal,
    "ci": _equal_ignoring_case,
    "set": _equal_as_sets,
    "number": _equal_numbers,
    "date": _equal_dates,
}

MATCH_MODES: tuple[str, ...] = ("ci", "date", "exact", "ignore", "number", "optional", "set")
"""Match modes a golden call may name for a parameter."""
