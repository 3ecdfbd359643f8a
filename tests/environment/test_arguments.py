from __future__ import annotations

import math

import pytest

from toolverse_jax.environment.arguments import ArgumentChecker, is_date, is_datetime, is_time
from toolverse_jax.environment.failures import CallFailure
from toolverse_jax.errors import EnvironmentSpecError

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2, "maxLength": 8},
        "count": {"type": "integer", "minimum": 1, "maximum": 9, "default": 2},
        "price": {"type": "number", "exclusiveMinimum": 0},
        "open": {"type": "boolean"},
        "kind": {"type": "string", "enum": ["a", "b"]},
        "level": {"type": ["integer", "null"], "enum": [1, 2, None]},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3},
        "day": {"type": "string", "format": "date"},
        "at": {"type": "string", "format": "date-time"},
        "mail": {"type": "string", "format": "email"},
    },
    "required": ["name"],
}
VALUES = [
    *(None, True, False, 0, 1, 2, 9, 10, -1, 1.0, 1.5, 0.0, math.nan, math.inf, -math.inf, 2**63, 10**400),
    *(
        "",
        "a",
        "b",
        "ab",
        "abcdefgh",
        "abcdefghi",
        "\ud800x",
        "äö",
        "1",
        "2031-02-29",
        "2031-02-28",
        "2031-2-3",
    ),
    *("2031-02-28T10:00:00", "2031-02-28T25:00:00", "２０３１-02-28", "ab\x00", "x@y"),
    *(
        [],
        ["a"],
        ["a", 1],
        ["a", "b", "c", "d"],
        [["a"]],
        ["\ud800"],
        {},
        {"a": 1},
        (),
        ("a",),
        b"ab",
        object(),
    ),
]


@pytest.fixture(scope="module")
def checker() -> ArgumentChecker:
    return ArgumentChecker(SCHEMA, where="here")


def test_the_fast_path_serves_the_common_schema_and_agrees_with_jsonschema(checker: ArgumentChecker) -> None:
    assert checker.is_fast
    accepted = 0
    for name in [*SCHEMA["properties"], "unknown"]:
        for value in VALUES:
            for arguments in ({"name": "abc", name: value}, {name: value}):
                fast, slow = checker.fast_accepts(arguments), checker.slow_accepts(arguments)
                assert not (fast and not slow), f"the fast path alone accepts {arguments!r}"
                accepted += fast
                if slow and not fast:
                    value_text = repr(value)
                    # The fast path leaves text beyond ASCII and integral floats to jsonschema.
                    assert not value_text.isascii() or isinstance(value, float), arguments
    assert accepted > 20


@pytest.mark.parametrize(
    "property_schema",
    [
        {"type": "string", "pattern": "^a"},
        {"type": "object", "properties": {}},
        {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
        {"$ref": "#/$defs/x"},
        {},
        {"const": 3},
    ],
)
def test_other_schemas_are_left_to_jsonschema(property_schema) -> None:
    schema = {"type": "object", "properties": {"p": property_schema}, "$defs": {"x": {"type": "string"}}}
    checker = ArgumentChecker(schema, where="here")
    assert not checker.is_fast
    assert checker.check({}) == {}


@pytest.mark.parametrize(
    ("arguments", "param", "message"),
    [
        ({}, "name", "The argument 'name' is missing."),
        ({"name": "abc", "x": 1}, "x", "There is no argument 'x'; the tool takes name, count, "),
        ({"name": 5}, "name", "The argument 'name' must be of type string."),
        ({"name": "a"}, "name", "The argument 'name' must have at least 2 character(s)."),
        ({"name": "abc", "count": True}, "count", "The argument 'count' must be of type integer."),
        ({"name": "abc", "count": "3"}, "count", "The argument 'count' must be of type integer."),
        ({"name": "abc", "count": 10}, "count", "The argument 'count' must be at most 9."),
        ({"name": "abc", "kind": "c"}, "kind", "The argument 'kind' must be one of 'a', 'b'."),
        ({"name": "abc", "tags": ["a", 1]}, "tags", "The argument 'tags[1]' must be of type string."),
        ({"name": "abc", "tags": []}, "tags", "The argument 'tags' must have at least 1 item(s)."),
        (
            {"name": "abc", "day": "2031-02-30"},
            "day",
            "The argument 'day' must be a date of the form YYYY-MM-DD.",
        ),
        (
            {"name": "abc", "price": math.nan},
            "price",
            "The argument 'price' holds a number that is not finite.",
        ),
        (
            {"name": "abc", "count": 10**400},
            "count",
            "The argument 'count' holds an integer that is too large.",
        ),
        ({"name": "x" * 200_000}, "name", "The argument 'name' holds a text that is too long."),
        ({"name": "\ud800\ud800"}, "name", "The argument 'name' holds a text that is not valid Unicode."),
        ({"name": "abc", "note": object()}, "note", "The argument 'note' holds a value that is not JSON."),
        ({1: 2}, None, "The arguments object holds a name that is not a string."),
        (None, None, "The arguments must be a JSON object."),
        ([1], None, "The arguments must be a JSON object."),
        ("name", None, "The arguments must be a JSON object."),
    ],
)
def test_a_wrong_argument_is_named_in_one_sentence(
    checker: ArgumentChecker, arguments, param, message
) -> None:
    with pytest.raises(CallFailure) as failure:
        checker.check(arguments)
    assert (failure.value.code, failure.value.param) == ("invalid_arguments", param)
    assert failure.value.message.startswith(message)


def test_deep_nesting_and_floods_are_refused() -> None:
    checker = ArgumentChecker({"type": "object", "properties": {"x": {}}}, where="here")
    deep: list = []
    for _ in range(10_000):
        deep = [deep]
    for value in (deep, [0] * 50_000):
        with pytest.raises(CallFailure) as failure:
            checker.check({"x": value})
        assert failure.value.param == "x"


def test_defaults_fill_absent_arguments_only(checker: ArgumentChecker) -> None:
    assert checker.check({"name": "abc"}) == {"name": "abc", "count": 2}
    assert checker.check({"name": "abc", "count": 3})["count"] == 3
    assert ArgumentChecker(SCHEMA, where="here", use_defaults=False).check({"name": "abc"}) == {"name": "abc"}


def test_checked_arguments_share_nothing_with_the_caller(checker: ArgumentChecker) -> None:
    tags = ["a"]
    checked = checker.check({"name": "abc", "tags": tags})
    tags.append("b")
    assert checked["tags"] == ["a"]


def test_unknown_arguments_pass_where_the_schema_says_so() -> None:
    schema = {"type": "object", "properties": {}, "additionalProperties": True}
    assert ArgumentChecker(schema, where="here").check({"x": 1}) == {"x": 1}


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"type": "array"}, "must have type 'object'"),
        ({"type": "object", "properties": {"x": {"type": "strin"}}}, "not valid JSON Schema"),
        ({"type": "object", "properties": {"x": {"$ref": "https://x.example/y"}}}, "refers outside itself"),
        (
            {"type": "object", "properties": {"x": {"type": "integer", "default": "a"}}},
            "does not satisfy its own schema",
        ),
    ],
)
def test_a_broken_schema_is_refused_when_loaded(schema, problem: str) -> None:
    with pytest.raises(EnvironmentSpecError, match=f"here: .*{problem}"):
        ArgumentChecker(schema, where="here")


def test_formats_are_strict() -> None:
    assert is_date("2032-02-29") and not is_date("2031-02-29") and not is_date("20310228")
    assert is_datetime("2031-02-28T10:00") and is_datetime("2031-02-28T10:00:00Z")
    assert not is_datetime("2031-02-28 10:00") and not is_datetime("2031-02-28T24:30:00")
    assert is_time("23:59") and not is_time("24:00")
