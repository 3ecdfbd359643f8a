"""Compiles flat object schemas to a fast accept test.

The test may reject what the schema accepts (the caller then asks `jsonschema`), but it must never
accept what the schema, or the rules on plain JSON, reject.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from toolverse_jax.types import JSON, json_equal

Accept = Callable[[Any], bool]

_NOTES = {"description", "title", "examples", "default", "deprecated", "$comment", "readOnly", "writeOnly"}
_ROOT = _NOTES | {"type", "properties", "required", "additionalProperties", "$schema", "$defs", "definitions"}
_COMMON = _NOTES | {"type", "enum"}
_KEYWORDS = {
    "string": _COMMON | {"minLength", "maxLength", "format"},
    "integer": _COMMON | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "format"},
    "number": _COMMON | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "format"},
    "boolean": _COMMON,
    "array": _NOTES | {"type", "items", "minItems", "maxItems"},
}


class _NotFlat(Exception):
    """The schema needs the general validator."""


def compile_flat_schema(
    schema: Mapping[str, JSON], longest_string: int, largest_integer: int, formats: Mapping[str, Accept]
) -> Callable[[dict[str, JSON]], bool] | None:
    """Return an accept test for an object of flat typed properties, None for any other schema."""
    try:
        return _compile_object(schema, _Limits(longest_string, largest_integer, formats))
    except _NotFlat:
        return None


class _Limits:
    def __init__(self, longest_string: int, largest_integer: int, formats: Mapping[str, Accept]) -> None:
        self.longest_string = longest_string
        self.largest_integer = largest_integer
        self.formats = formats


def _compile_object(schema: Mapping[str, JSON], limits: _Limits) -> Callable[[dict[str, JSON]], bool]:
    if set(schema) - _ROOT or schema.get("additionalProperties") is not False:
        raise _NotFlat
    checks = {name: _compile_property(each, limits) for name, each in schema.get("properties", {}).items()}
    required = tuple(schema.get("required", ()))
    find = checks.get

    def accept(arguments: dict[str, JSON]) -> bool:
        for name in required:
            if name not in arguments:
                return False
        for name, value in arguments.items():
            check = find(name)
            if check is None or not check(value):
                return False
        return True

    return accept


def _compile_property(schema: JSON, limits: _Limits) -> Accept:
    if not isinstance(schema, Mapping):
        raise _NotFlat
    nullable, schema = _strip_null(schema)
    kind = schema.get("type")
    if not isinstance(kind, str) or kind not in _KEYWORDS or set(schema) - _KEYWORDS[kind]:
        raise _NotFlat
    if nullable and "enum" in schema:
        if None not in schema["enum"]:
            raise _NotFlat
        schema = {**schema, "enum": [value for value in schema["enum"] if value is not None]}
    check = _compile_array(schema, limits) if kind == "array" else _compile_scalar(kind, schema, limits)
    return (lambda value: value is None or check(value)) if nullable else check


def _strip_null(schema: Mapping[str, JSON]) -> tuple[bool, Mapping[str, JSON]]:
    """Split `anyOf: [X, null]` and `type: [X, "null"]` into nullable and X."""
    options = schema.get("anyOf")
    if options is not None and not set(schema) - (_NOTES | {"anyOf"}):
        others = [each for each in options if each != {"type": "null"}]
        if len(options) == 2 and len(others) == 1 and isinstance(others[0], Mapping):
            return True, others[0]
        raise _NotFlat
    kinds = schema.get("type")
    if isinstance(kinds, list):
        others = [each for each in kinds if each != "null"]
        if len(others) != 1:
            raise _NotFlat
        return "null" in kinds, {**schema, "type": others[0]}
    return False, schema


def _compile_array(schema: Mapping[str, JSON], limits: _Limits) -> Accept:
    items = schema.get("items")
    if not isinstance(items, Mapping) or items.get("type") == "array":
        raise _NotFlat
    check = _compile_property(items, limits)
    low, high = schema.get("minItems", 0), min(schema.get("maxItems", 1000), 1000)
    return lambda value: type(value) is list and low <= len(value) <= high and all(map(check, value))


def _compile_scalar(kind: str, schema: Mapping[str, JSON], limits: _Limits) -> Accept:
    base = _string_check(schema, limits) if kind == "string" else _bool_check
    if kind in ("integer", "number"):
        base = _number_check(kind, schema, limits)
    if "enum" not in schema:
        return base
    values = tuple(schema["enum"])
    if kind == "string" and all(isinstance(value, str) for value in values):
        members = frozenset(values)
        return lambda value: type(value) is str and value in members and base(value)
    return lambda value: base(value) and any(json_equal(value, each) for each in values)


def _bool_check(value: JSON) -> bool:
    return value is True or value is False


def _string_check(schema: Mapping[str, JSON], limits: _Limits) -> Accept:
    low, high = (
        schema.get("minLength", 0),
        min(schema.get("maxLength", limits.longest_string), limits.longest_string),
    )
    form = limits.formats.get(schema.get("format", ""))

    # Text beyond ASCII may hold lone surrogates; the general path looks.
    def accept(value: JSON) -> bool:
        return type(value) is str and low <= len(value) <= high and value.isascii()

    if form is None:
        return accept
    return lambda value: accept(value) and form(value)


def _number_check(kind: str, schema: Mapping[str, JSON], limits: _Limits) -> Accept:
    largest = limits.largest_integer
    low = schema.get("minimum", -math.inf)
    high = schema.get("maximum", math.inf)
    above = schema.get("exclusiveMinimum", -math.inf)
    below = schema.get("exclusiveMaximum", math.inf)
    if not all(
        isinstance(bound, int | float) and not isinstance(bound, bool) for bound in (low, high, above, below)
    ):
        raise _NotFlat
    floats = kind == "number"

    def accept(value: JSON) -> bool:
        if type(value) is int:
            if not -largest < value < largest:
                return False
        elif not floats or type(value) is not float:
            return False
        # Strict bounds at infinity refuse NaN and the infinities as well.
        return low <= value <= high and above < value < below

    return accept
