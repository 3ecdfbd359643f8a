"""Validates the arguments of a call against the tool's input schema before anything runs.

`ArgumentChecker` compiles the common shape (an object of flat, typed properties) to closures and
leaves every other schema, and every rejection, to `jsonschema`: the fast path only ever accepts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import date, datetime
from functools import lru_cache
from typing import Any

import jsonschema
import referencing
from jsonschema.validators import validator_for
from referencing.exceptions import Unresolvable

from toolverse_jax.environment.failures import CallFailure
from toolverse_jax.environment.flat_schema import compile_flat_schema
from toolverse_jax.errors import EnvironmentSpecError
from toolverse_jax.types import JSON

LONGEST_STRING = 100_000
LARGEST_INTEGER = 2**63
DEEPEST_NESTING = 32
MOST_VALUES = 20_000

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_DATETIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:\d{2})?")
_TIME = re.compile(r"([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?")


def is_date(value: object) -> bool:
    """Tell whether a string is a calendar date `YYYY-MM-DD`; values of other types pass."""
    return not isinstance(value, str) or (len(value) == 10 and _is_date_text(value))


def is_datetime(value: object) -> bool:
    """Tell whether a string is an ISO 8601 date and time; values of other types pass."""
    return not isinstance(value, str) or (len(value) <= 40 and _is_datetime_text(value))


# The same few dates come again and again in a run; the callers bound the length of what is kept.
@lru_cache(maxsize=4096)
def _is_date_text(text: str) -> bool:
    try:
        return bool(_DATE.fullmatch(text)) and text.isascii() and bool(date.fromisoformat(text))
    except ValueError:
        return False


@lru_cache(maxsize=4096)
def _is_datetime_text(text: str) -> bool:
    try:
        return bool(_DATETIME.fullmatch(text)) and text.isascii() and bool(datetime.fromisoformat(text))
    except ValueError:
        return False


def is_time(value: object) -> bool:
    """Tell whether a string is a time of day `HH:MM[:SS]`; values of other types pass."""
    return not isinstance(value, str) or bool(_TIME.fullmatch(value))


FORMATS = {"date": is_date, "date-time": is_datetime, "time": is_time}
"""String formats that are enforced; other formats are notes to the reader."""


def _format_checker() -> jsonschema.FormatChecker:
    checker = jsonschema.FormatChecker(formats=())
    for name, check in FORMATS.items():
        checker.checks(name)(check)
    return checker


class ArgumentChecker:
    """Checks and copies the arguments of one tool."""

    __slots__ = ("_defaults", "_fast", "_has_arrays", "_known", "_validator")

    def __init__(self, schema: Mapping[str, JSON], *, where: str, use_defaults: bool = True) -> None:
        """Compile a schema.

        Args:
            schema: input schema, an object schema. Unknown arguments are refused unless it says
                otherwise through `additionalProperties` or `patternProperties`.
            where: environment and tool, for error messages.
            use_defaults: absent arguments take the default of their schema.

        Raises:
            EnvironmentSpecError: the schema is not valid JSON Schema, or refers outside itself.
        """
        if schema.get("type", "object") != "object":
            raise EnvironmentSpecError(
                f"{where}: the input schema must have type 'object', got {schema['type']!r}"
            )
        _check_references(schema, where)
        closed = dict(schema)
        if "additionalProperties" not in schema and "patternProperties" not in schema:
            closed["additionalProperties"] = False
        validator_class = validator_for(schema, default=jsonschema.Draft202012Validator)
        try:
            validator_class.check_schema(dict(schema))
        except jsonschema.SchemaError as error:
            path = "/".join(str(part) for part in error.absolute_path) or "its root"
            raise EnvironmentSpecError(
                f"{where}: the input schema is not valid JSON Schema at {path}: {error.message[:200]}"
            ) from error
        # An explicit empty registry keeps references from ever being fetched over the network.
        self._validator = validator_class(
            closed, registry=referencing.Registry(), format_checker=_format_checker()
        )
        properties = schema.get("properties", {})
        self._known = tuple(properties)
        self._has_arrays = "array" in str(properties)
        self._fast = compile_flat_schema(closed, LONGEST_STRING, LARGEST_INTEGER, FORMATS)
        self._defaults = self._compile_defaults(properties, where) if use_defaults else {}

    def _compile_defaults(self, properties: Mapping[str, Any], where: str) -> dict[str, JSON]:
        defaults: dict[str, JSON] = {}
        for name, schema in properties.items():
            default = schema.get("default") if isinstance(schema, Mapping) else None
            if default is None:
                continue
            if not self._validator.evolve(schema=schema).is_valid(default):
                raise EnvironmentSpecError(
                    f"{where}: the default {default!r} of argument {name!r} does not satisfy its own schema"
                )
            defaults[name] = default
        return defaults

    @property
    def is_fast(self) -> bool:
        """Whether the schema has the common flat shape."""
        return self._fast is not None

    def fast_accepts(self, arguments: dict[str, JSON]) -> bool:
        """Tell whether the compiled flat check accepts (false where the schema is not flat)."""
        return self._fast is not None and self._fast(arguments)

    def slow_accepts(self, arguments: JSON) -> bool:
        """Tell whether plain JSON and the schema, checked by `jsonschema`, accept."""
        try:
            self._check_slowly(arguments)
        except CallFailure:
            return False
        return True

    def check(self, arguments: object) -> dict[str, JSON]:
        """Return a copy of valid arguments, with defaults.

        Raises:
            CallFailure: `invalid_arguments`, naming the argument.
        """
        if type(arguments) is not dict:
            if not isinstance(arguments, Mapping):
                raise CallFailure("invalid_arguments", "The arguments must be a JSON object.")
            arguments = dict(arguments)
        if self._fast is not None and self._fast(arguments):
            checked = dict(arguments)
            if self._has_arrays:
                checked = {name: list(v) if type(v) is list else v for name, v in checked.items()}
        else:
            checked = self._check_slowly(arguments)
        if self._defaults:
            for name, default in self._defaults.items():
                if name not in checked:
                    checked[name] = default
        return checked

    def _check_slowly(self, arguments: JSON) -> dict[str, JSON]:
        copy = _PlainCopy().copy(arguments, "", 0)
        if not isinstance(copy, dict):
            raise CallFailure("invalid_arguments", "The arguments must be a JSON object.")
        try:
            errors = sorted(self._validator.iter_errors(copy), key=_severity)
        except (RecursionError, Unresolvable):
            raise CallFailure(
                "invalid_arguments", "The arguments cannot be checked against their schema."
            ) from None
        if errors:
            raise self._failure(errors[0])
        return copy

    def _failure(self, error: jsonschema.ValidationError) -> CallFailure:
        path = list(error.absolute_path)
        instance: Any = error.instance
        limit: Any = error.validator_value
        if error.validator == "required":
            missing = next((name for name in limit if name not in instance), "")
            name = _render_path([*path, missing])
            message = f"The argument {name} is missing."
            return CallFailure("invalid_arguments", message, str((path or [missing])[0]))
        if error.validator == "additionalProperties" and not path:
            unknown = next((name for name in instance if name not in self._known), "")
            known = ", ".join(self._known) or "none"
            message = f"There is no argument {_short(unknown)}; the tool takes {known}."
            return CallFailure("invalid_arguments", message, unknown[:64])
        name = _render_path(path) if path else None
        subject = f"The argument {name}" if name else "The arguments object"
        return CallFailure(
            "invalid_arguments", f"{subject} {_complaint(error)}.", str(path[0]) if path else None
        )


def _check_references(schema: JSON, where: str) -> None:
    """Refuse references that lead outside the schema."""
    stack: list[JSON] = [schema]
    while stack:
        node = stack.pop()
        if isinstance(node, Mapping):
            for keyword in ("$ref", "$dynamicRef"):
                target = node.get(keyword)
                if isinstance(target, str) and not target.startswith("#"):
                    raise EnvironmentSpecError(
                        f"{where}: the input schema refers outside itself to {target!r}"
                    )
            stack.extend(node.values())
        elif isinstance(node, list | tuple):
            stack.extend(node)


class _PlainCopy:
    """Copies a value while checking that it is plain, finite, moderately sized JSON."""

    __slots__ = ("_budget",)

    def __init__(self) -> None:
        self._budget = MOST_VALUES

    def copy(self, value: JSON, param: str, depth: int) -> JSON:
        self._budget -= 1
        if self._budget < 0:
            raise CallFailure("invalid_arguments", "The arguments hold too many values.", param or None)
        if value is None or value is True or value is False:
            return value
        if isinstance(value, str):
            return self._string(value, param)
        if isinstance(value, int):
            if abs(value) >= LARGEST_INTEGER:
                raise self._refuse(param, "holds an integer that is too large")
            return int(value)
        if isinstance(value, float):
            if not math.isfinite(value):
                raise self._refuse(param, "holds a number that is not finite")
            return float(value)
        if depth >= DEEPEST_NESTING:
            raise self._refuse(param, "is nested too deeply")
        if isinstance(value, list):
            return [self.copy(each, param, depth + 1) for each in value]
        if isinstance(value, dict):
            return self._object(value, param, depth)
        raise self._refuse(param, "holds a value that is not JSON")

    def _object(self, value: dict[Any, JSON], param: str, depth: int) -> dict[str, JSON]:
        result: dict[str, JSON] = {}
        for name, each in value.items():
            if not isinstance(name, str):
                raise self._refuse(param, "holds a name that is not a string")
            inner = param if depth else name[:64]
            result[self._string(name, inner)] = self.copy(each, inner, depth + 1)
        return result

    def _string(self, value: str, param: str) -> str:
        if len(value) > LONGEST_STRING:
            raise self._refuse(param, "holds a text that is too long")
        if not is_encodable(value):
            raise self._refuse(param, "holds a text that is not valid Unicode")
        return str(value)

    def _refuse(self, param: str, problem: str) -> CallFailure:
        subject = f"The argument {_short(param)}" if param else "The arguments object"
        printable = param if is_encodable(param) else None
        return CallFailure("invalid_arguments", f"{subject} {problem}.", printable or None)


def is_encodable(text: str) -> bool:
    """Tell whether a string holds no lone surrogates."""
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


_ORDER = ("required", "additionalProperties", "type", "enum", "const")


def _severity(error: jsonschema.ValidationError) -> tuple[int, int, str]:
    keyword = str(error.validator)
    rank = _ORDER.index(keyword) if keyword in _ORDER else len(_ORDER)
    return rank, len(error.absolute_path), "/".join(str(part) for part in error.absolute_path)


def _short(text: str) -> str:
    text = text.encode("ascii", "backslashreplace").decode() if not is_encodable(text) else text
    return f"'{text}'" if len(text) <= 64 else f"'{text[:64]}...'"


def _render_path(path: list[Any]) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return _short(text)


def _show(value: JSON) -> str:
    return (
        f"'{value}'"
        if isinstance(value, str)
        else "null"
        if value is None
        else str(value).lower()
        if isinstance(value, bool)
        else str(value)
    )


def _complaint(error: jsonschema.ValidationError) -> str:
    limit: Any = error.validator_value
    match str(error.validator):
        case "type":
            kinds = [limit] if isinstance(limit, str) else list(limit)
            return f"must be of type {' or '.join(kinds)}"
        case "enum":
            return f"must be one of {', '.join(_show(value) for value in limit[:30])}"
        case "const":
            return f"must be {_show(limit)}"
        case "minimum":
            return f"must be at least {limit}"
        case "maximum":
            return f"must be at most {limit}"
        case "exclusiveMinimum":
            return f"must be greater than {limit}"
        case "exclusiveMaximum":
            return f"must be less than {limit}"
        case "minLength":
            return f"must have at least {limit} character(s)"
        case "maxLength":
            return f"must have at most {limit} character(s)"
        case "minItems":
            return f"must have at least {limit} item(s)"
        case "maxItems":
            return f"must have at most {limit} item(s)"
        case "format" if limit == "date":
            return "must be a date of the form YYYY-MM-DD"
        case "format" if limit == "date-time":
            return "must be a date and time of the form YYYY-MM-DDTHH:MM:SS"
        case "format":
            return f"must be a {limit} of the form HH:MM"
        case "additionalProperties":
            return "has a member that its schema does not know"
        case keyword:
            return f"does not fit its schema ({keyword})"
