"""Reads and writes tool calls in the Hermes form, `<tool_call>\\n{json}\\n</tool_call>`.

The reader is strict: what is not one well-formed call becomes an error sentence for the model and is
never executed, repaired or dropped in silence. It decodes JSON from the opening marker instead of
searching for the closing one, so markers inside string arguments are plain text.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Mapping
from typing import Any

from toolverse_jax.types import JSON, ToolCall

TOOL_CALL_OPEN, TOOL_CALL_CLOSE = "<tool_call>", "</tool_call>"
THINK_OPEN, THINK_CLOSE = "<think>", "</think>"
MAX_NESTING = 64
"""Deepest list or object accepted in a call; deeper values would break recursive readers."""

_MARKER = re.compile("|".join(map(re.escape, (TOOL_CALL_OPEN, TOOL_CALL_CLOSE, THINK_OPEN, THINK_CLOSE))))
_BLANKS = re.compile(r"[ \t\r\n]*")
_FORM = "one JSON object with 'name' and 'arguments'"
_CUT = f"the tool call was cut off before {TOOL_CALL_CLOSE} and was not executed"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ToolCallError:
    """A tool call that could not be read."""

    message: str
    """One sentence that can be shown to the model."""
    truncated: bool = False
    """The text ended inside the call."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ParsedToolCalls:
    """What one assistant message asks for."""

    items: tuple[ToolCall | ToolCallError, ...] = ()
    """Calls and unreadable calls in the order of the text; each is answered by one tool result."""
    content: str = ""
    """The text outside calls and reasoning."""
    unfinished_reasoning: bool = False
    """The text ended inside `<think>`."""

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(item for item in self.items if isinstance(item, ToolCall))

    @property
    def errors(self) -> tuple[str, ...]:
        return tuple(item.message for item in self.items if isinstance(item, ToolCallError))

    @property
    def truncated(self) -> bool:
        """Whether the text ended inside a call or inside reasoning."""
        cut = any(isinstance(item, ToolCallError) and item.truncated for item in self.items)
        return cut or self.unfinished_reasoning


def parse_tool_calls(text: str, *, in_reasoning: bool = False) -> ParsedToolCalls:
    """Read the tool calls of one assistant message; never raises.

    A block may hold several JSON objects; a block with any fault executes none of them. Text inside
    `<think>...</think>` is ignored, also where the prompt had opened the reasoning already.

    Args:
        text: the sampled text without its stop token.
        in_reasoning: whether the generation prompt left `<think>` open.
    """
    items: list[ToolCall | ToolCallError] = []
    content: list[str] = []
    position, reasoned = 0, in_reasoning
    if in_reasoning:
        end = text.find(THINK_CLOSE)
        if end < 0:
            return ParsedToolCalls(unfinished_reasoning=True)
        position = end + len(THINK_CLOSE)
    while marker := _MARKER.search(text, position):
        content.append(text[position : marker.start()])
        position = marker.end()
        if marker.group() == TOOL_CALL_OPEN:
            found, position = _read_block(text, position)
            items += found
        elif marker.group() == THINK_OPEN:
            end = text.find(THINK_CLOSE, position)
            if end < 0:
                return _parsed(items, content, unfinished_reasoning=True)
            position, reasoned = end + len(THINK_CLOSE), True
        elif marker.group() == THINK_CLOSE:
            if reasoned:
                content.append(THINK_CLOSE)
            else:  # Reasoning without its opening marker: all before it were drafts.
                items.clear()
                content.clear()
                reasoned = True
        else:
            items.append(
                ToolCallError(message=f"found {TOOL_CALL_CLOSE} without {TOOL_CALL_OPEN}; write {_FORM}")
            )
    content.append(text[position:])
    return _parsed(items, content)


def format_tool_call(call: ToolCall) -> str:
    """Return the text of one call as Qwen chat templates write it."""
    return f"{TOOL_CALL_OPEN}\n{tool_call_json(call)}\n{TOOL_CALL_CLOSE}"


def tool_call_json(call: ToolCall) -> str:
    """Return the JSON between the markers of one call."""
    return json.dumps(call.to_json(), ensure_ascii=False)


def _parsed(
    items: list[ToolCall | ToolCallError], content: list[str], *, unfinished_reasoning: bool = False
) -> ParsedToolCalls:
    return ParsedToolCalls(
        items=tuple(items), content="".join(content).strip(), unfinished_reasoning=unfinished_reasoning
    )


def _read_block(text: str, position: int) -> tuple[list[ToolCall | ToolCallError], int]:
    """Read one block from behind its opening marker; return what it holds and where reading goes on."""
    reader = _StrictReader()
    values: list[JSON] = []
    while True:
        blanks = _BLANKS.match(text, position)
        position = blanks.end() if blanks else position
        if values and text.startswith(TOOL_CALL_CLOSE, position):
            return reader.calls(values), position + len(TOOL_CALL_CLOSE)
        if position == len(text) or (values and text.startswith(TOOL_CALL_OPEN, position)):
            # All before it is complete JSON, so the next block is a block and still counts.
            return [ToolCallError(message=_CUT, truncated=True)], position
        try:
            value, position = reader.decoder.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            return _malformed(text, position, error, num_values=len(values))
        values.append(value)


def _malformed(
    text: str, position: int, error: Exception, *, num_values: int
) -> tuple[list[ToolCall | ToolCallError], int]:
    end = text.find(TOOL_CALL_CLOSE, position)
    if end < 0:
        return [ToolCallError(message=_CUT, truncated=True)], len(text)
    if isinstance(error, RecursionError):
        reason = f"it is nested deeper than {MAX_NESTING} levels"
    elif num_values:
        reason = f"there is text between the JSON object and {TOOL_CALL_CLOSE}"
    else:
        reason = error.msg.lower() if isinstance(error, json.JSONDecodeError) else str(error)
        reason = f"{reason} at character {getattr(error, 'pos', position) - position}"
    message = f"the tool call is not valid JSON: {reason}; write {_FORM}"
    # Whatever follows inside the block is part of the broken call, so it is skipped, not executed.
    return [ToolCallError(message=message)], end + len(TOOL_CALL_CLOSE)


class _StrictReader:
    """JSON decoding that notes what plain JSON readers pass over: equal keys and non-finite numbers.

    Faults are noted instead of raised, so the decoder still finds where the value ends.
    """

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.decoder = json.JSONDecoder(
            object_pairs_hook=self._object,
            parse_constant=self._constant,
            parse_float=self._float,
            parse_int=self._int,
        )

    def calls(self, values: list[JSON]) -> list[ToolCall | ToolCallError]:
        """Return the calls of a block, or one error for the whole block."""
        calls: list[ToolCall | ToolCallError] = []
        for value in values:
            fault = self.faults[0] if self.faults else _call_fault(value)
            if fault:
                return [ToolCallError(message=f"the tool call is wrong: {fault}; write {_FORM}")]
            calls.append(ToolCall(name=value["name"], arguments=value["arguments"]))
        return calls

    def _object(self, pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
        result: dict[str, JSON] = {}
        for key, value in pairs:
            if key in result:
                self.faults.append(f"key {_shown(key)} appears twice in one object")
            result[key] = value
        return result

    def _constant(self, name: str) -> None:
        self.faults.append(f"{name} is not a JSON value")

    def _float(self, digits: str) -> float:
        number = float(digits)
        if not math.isfinite(number):
            self.faults.append(f"number {_shown(digits)} is too large")
        return number

    def _int(self, digits: str) -> int:
        try:
            return int(digits)
        except ValueError:  # Python refuses to read thousands of digits.
            self.faults.append(f"a number has {len(digits)} digits")
            return 0


def _call_fault(value: JSON) -> str | None:
    """Say why a JSON value is not a tool call."""
    if not isinstance(value, dict):
        return f"it must be one JSON object, got {_kind(value)}"
    for key in ("name", "arguments"):
        if key not in value:
            return f"member {key!r} is missing"
    if not isinstance(value["name"], str) or not value["name"]:
        return f"'name' must be the name of a tool, got {_kind(value['name'])}"
    if not isinstance(value["arguments"], dict):
        return f"'arguments' must be a JSON object, got {_kind(value['arguments'])}"
    unknown = [key for key in value if key not in ("name", "arguments")]
    if unknown:
        return f"member {_shown(unknown[0])} is unknown; arguments of the tool belong inside 'arguments'"
    return _value_fault(value)


def _value_fault(value: JSON) -> str | None:
    """Find what later readers could not take: deep nesting, and text that UTF-8 cannot hold."""
    level: list[Any] = [value]
    for _ in range(MAX_NESTING):
        below: list[Any] = []
        for item in level:
            if isinstance(item, str) and any("\ud800" <= character <= "\udfff" for character in item):
                return "a string holds half of a surrogate pair"
            if isinstance(item, dict):
                below += [*item, *item.values()]
            elif isinstance(item, list):
                below += item
        if not below:
            return None
        level = below
    return f"it is nested deeper than {MAX_NESTING} levels"


def _kind(value: JSON) -> str:
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list):
        return "a list"
    return {str: "a string", bool: "true or false", type(None): "null"}.get(type(value), "a number")


def _shown(text: str) -> str:
    """Return a short quotation that is safe to encode."""
    safe = text.encode("utf-8", errors="replace").decode("utf-8")
    return repr(safe if len(safe) <= 40 else safe[:40] + "...")
