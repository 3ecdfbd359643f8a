from __future__ import annotations

import pytest

from toolverse_jax.reward import MATCH_MODES, arguments_match, call_matches
from toolverse_jax.types import GoldenCall, ToolCall


def test_arguments_match_as_json_values_by_default():
    assert arguments_match({"n": 1, "o": {"a": [1], "b": None}}, {"o": {"b": None, "a": [1.0]}, "n": 1.0})
    assert not arguments_match({"flag": True}, {"flag": 1})
    assert not arguments_match({"n": "1"}, {"n": 1})
    assert not arguments_match({"city": "Paris"}, {"city": "paris"})
    assert not arguments_match({"ids": ["a", "b"]}, {"ids": ["b", "a"]})


def test_a_missing_or_an_additional_argument_does_not_match():
    assert not arguments_match({"a": 1, "b": 2}, {"a": 1})
    assert not arguments_match({"a": 1}, {"a": 1, "b": 2})


@pytest.mark.parametrize(
    ("mode", "golden", "given", "same"),
    [
        ("ci", "Paris  Nord", "paris nord", True),
        ("ci", ["A", {"k": "B"}], ["a", {"k": "b"}], True),
        ("ci", "Paris", "Pariss", False),
        ("ci", True, 1, False),
        ("set", ["a", "b", 1], [1.0, "b", "a", "a"], True),
        ("set", ["a", "b"], ["a"], False),
        ("set", ["a"], ["a", "b"], False),
        ("set", "a", "a", True),
        ("set", "ab", "ba", False),
        ("number", 1200.5, "1,200.50", True),
        ("number", 0.1, "0.10", True),
        ("number", 1, True, False),
        ("number", 3, "three", False),
        ("number", "three", "three", True),
        ("date", "2026-03-05", "2026/3/5", True),
        ("date", "2026-03-05", "2026-03-05T00:00:00", True),
        ("date", "2026-03-05T12:00:00+02:00", "2026-03-05T10:00:00Z", True),
        ("date", "2026-03-05", "2026-03-06", False),
        ("date", "2026-03-05T10:00:00", "2026-03-05T10:00:00Z", False),
        ("date", "soon", "soon", True),
        ("optional", "asc", "asc", True),
        ("optional", "asc", "desc", False),
        ("ignore", "anything", 5, True),
    ],
)
def test_each_match_mode_compares_as_documented(mode, golden, given, same):
    assert arguments_match({"x": golden}, {"x": given}, {"x": mode}) is same


def test_an_ignored_parameter_may_be_absent_on_either_side():
    assert arguments_match({"note": "hi"}, {}, {"note": "ignore"})
    assert arguments_match({}, {"note": "hi"}, {"note": "ignore"})


def test_an_optional_parameter_may_be_left_out_but_not_invented():
    assert arguments_match({"order": "asc"}, {}, {"order": "optional"})
    assert not arguments_match({}, {"order": "asc"}, {"order": "optional"})


def test_an_unknown_mode_is_refused_with_the_allowed_ones():
    with pytest.raises(ValueError, match="'fuzzy'") as caught:
        arguments_match({"x": 1}, {"x": 1}, {"x": "fuzzy"})
    assert all(mode in str(caught.value) for mode in MATCH_MODES)


def test_calls_of_different_tools_never_match():
    golden = GoldenCall(tool="get", arguments={"id": "a"})
    assert call_matches(golden, ToolCall(name="get", arguments={"id": "a"}))
    assert not call_matches(golden, ToolCall(name="delete", arguments={"id": "a"}))
