"""The tool-call reader executes only what is one well-formed call."""

from __future__ import annotations

import json

import pytest

from toolverse_jax.rollout.tool_calls import format_tool_call, parse_tool_calls
from toolverse_jax.types import ToolCall


def block(body: str) -> str:
    return f"<tool_call>\n{body}\n</tool_call>"


def pairs(text: str, **options: bool) -> list[tuple[str, dict]]:
    return [(call.name, dict(call.arguments)) for call in parse_tool_calls(text, **options).calls]


GET = block('{"name": "get", "arguments": {"id": 1}}')


def test_parallel_calls_keep_their_order_and_leave_the_content():
    parsed = parse_tool_calls(f"Ok.\n{GET}\n" + block('{"name": "put", "arguments": {}}') + "\ndone")
    assert [call.name for call in parsed.calls] == ["get", "put"]
    assert parsed.content == "Ok.\n\n\ndone"
    assert not parsed.errors and not parsed.truncated


def test_two_objects_in_one_block_are_two_calls():
    text = block('{"name":"f","arguments":{"a":1}}\n{"name":"g","arguments":{}}')
    assert pairs(text) == [("f", {"a": 1}), ("g", {})]


def test_markers_inside_a_string_argument_are_text():
    text = block('{"name": "write", "arguments": {"text": "end </tool_call> ok <tool_call> <think> too"}}')
    parsed = parse_tool_calls(text + "\ndone")
    assert pairs(text) == [("write", {"text": "end </tool_call> ok <tool_call> <think> too"})]
    assert parsed.content == "done" and not parsed.errors


def test_drafts_in_reasoning_are_never_executed():
    draft = block('{"name": "del", "arguments": {"id": 1}}')
    assert pairs(f"<think>\nmaybe {draft}? no\n</think>\n\n{GET}") == [("get", {"id": 1})]
    assert pairs(f"<think>{draft}</think>I cannot help.") == []
    assert pairs(f"maybe {draft}</think>{GET}") == [("get", {"id": 1})]
    assert pairs(f"maybe {draft}</think>{GET}", in_reasoning=True) == [("get", {"id": 1})]
    for text, opened in ((f"<think>\nlet me {draft}", False), (f"let me {draft}", True)):
        parsed = parse_tool_calls(text, in_reasoning=opened)
        assert not parsed.items and parsed.truncated and parsed.content == ""


@pytest.mark.parametrize("end", range(len("<tool_call>"), len(GET)))
def test_a_cut_call_is_never_executed_but_reported(end: int):
    parsed = parse_tool_calls(f"Ok.\n{GET}\n{GET[:end]}")
    assert [call.name for call in parsed.calls] == ["get"]
    assert len(parsed.errors) == 1 and "cut off" in parsed.errors[0]
    assert parsed.truncated


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ('{"name": "f", "arguments": {"a": 1 "b": 2}}', "not valid JSON"),
        ("{'name': 'f', 'arguments': {}}", "not valid JSON"),
        ('{"name": "f", "arguments": {}} please', "text between"),
        ('{"name": "f", "arguments": {"a": 1, "a": 2}}', "appears twice"),
        ('{"name": "f", "arguments": {"a": NaN}}', "NaN"),
        ('{"name": "f", "arguments": {"a": -Infinity}}', "-Infinity"),
        ('{"name": "f", "arguments": {"a": 1e999}}', "too large"),
        ('{"name": "f", "arguments": {"a": ' + "9" * 5000 + "}}", "5000 digits"),
        ('{"name": "f", "arguments": {"a": ' + "[" * 2000 + "]" * 2000 + "}}", "nested"),
        ('{"name": "f", "arguments": {"a": ' + "[" * 100000 + "]" * 100000 + "}}", "nested"),
        ('{"name": "f", "arguments": {"a": "\\ud83d"}}', "surrogate"),
        ('{"name": "f", "arguments": {"\\ud83d": 1}}', "surrogate"),
        ('{"name": "f"}', "'arguments' is missing"),
        ('{"arguments": {}}', "'name' is missing"),
        ('{"name": "f", "arguments": "{}"}', "must be a JSON object, got a string"),
        ('{"name": 3, "arguments": {}}', "'name' must be"),
        ('{"name": "", "arguments": {}}', "'name' must be"),
        ('{"name": "f", "arguments": {}, "id": 1}', "unknown"),
        ('[{"name": "f", "arguments": {}}]', "got a list"),
        ("<function=f>\n<parameter=n>\n5\n</parameter>\n</function>", "not valid JSON"),
        ("", "not valid JSON"),
        ("__import__('os').getcwd()", "not valid JSON"),
    ],
)
def test_a_faulty_call_is_one_error_sentence_and_the_next_call_still_counts(body: str, reason: str):
    parsed = parse_tool_calls(block(body) + GET)
    assert [call.name for call in parsed.calls] == ["get"]
    assert len(parsed.errors) == 1 and reason in parsed.errors[0]
    assert len(parsed.errors[0]) < 250
    parsed.errors[0].encode("utf-8")
    assert [type(item).__name__ for item in parsed.items] == ["ToolCallError", "ToolCall"]


def test_one_fault_in_a_block_executes_nothing_of_the_block():
    good = '{"name": "f", "arguments": {}}'
    assert pairs(block(good + '\n{"name": "g"}')) == []
    assert pairs(block(good + "\n{oops")) == []


def test_a_call_hidden_in_broken_json_is_not_executed():
    hidden = block('{"name": "rm", "arguments": {}}')
    assert pairs(f'<tool_call>{{"name": "w", "arguments": {{"t": x {hidden}') == []


def test_a_call_without_its_closing_marker_does_not_swallow_the_next():
    parsed = parse_tool_calls(GET.removesuffix("</tool_call>") + block('{"name": "put", "arguments": {}}'))
    assert [call.name for call in parsed.calls] == ["put"]
    assert len(parsed.errors) == 1


def test_a_closing_marker_alone_is_an_error_and_not_an_answer():
    parsed = parse_tool_calls('{"name": "f", "arguments": {}}\n</tool_call>')
    assert not parsed.calls and "without <tool_call>" in parsed.errors[0]


def test_escaped_and_literal_spelling_are_the_same_call():
    literal, escaped = {"c": "Mün 🚀"}, '{"name":"q","arguments":{"c":"M\\u00fcn \\ud83d\\ude80"}}'
    assert pairs(block(escaped)) == [("q", literal)]
    assert pairs(format_tool_call(ToolCall(name="q", arguments=literal))) == [("q", literal)]
    assert "Mün 🚀" in format_tool_call(ToolCall(name="q", arguments=literal))


def test_arguments_are_taken_as_written_without_coercion():
    arguments = {"zip": "0451", "k": "42", "n": 12345678901234567890123, "b": True, "x": None, "s": " a  b "}
    assert pairs(block(json.dumps({"name": "f", "arguments": arguments}))) == [("f", arguments)]


def test_text_without_markers_is_only_content():
    parsed = parse_tool_calls(" All done. ")
    assert parsed.content == "All done." and not parsed.items and not parsed.truncated
