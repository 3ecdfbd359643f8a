"""Executes the tool calls of one assistant message and answers the unreadable ones."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from toolverse_jax.rollout.episode_record import EpisodeRecord
from toolverse_jax.rollout.limits import EpisodeLimits
from toolverse_jax.rollout.tool_calls import ParsedToolCalls, ToolCallError
from toolverse_jax.types import ToolCall, ToolResult

if TYPE_CHECKING:
    from toolverse_jax.environment import Session


@dataclasses.dataclass(frozen=True, kw_only=True)
class Execution:
    """What came of one message's calls."""

    results: tuple[tuple[str, ToolResult], ...] = ()
    """Tool name (empty for a call that could not be read) and result, in the order of the text."""
    calls: tuple[ToolCall, ...] = ()
    """The calls that were executed."""
    changed: tuple[bool, ...] = ()
    """Whether each of them changed the state."""


def execute(
    parsed: ParsedToolCalls, session: Session, limits: EpisodeLimits, record: EpisodeRecord
) -> Execution:
    """Execute calls in order; every item gets one result, those beyond the limit share one error."""
    results: list[tuple[str, ToolResult]] = []
    calls: list[ToolCall] = []
    changed: list[bool] = []
    limit = limits.max_calls_per_step
    for item in parsed.items[:limit]:
        if isinstance(item, ToolCallError):
            record.count("parse_errors")
            results.append(("", _error("invalid_call", item.message)))
            continue
        before = len(session.journal)
        result = session.call(item.name, dict(item.arguments))
        calls.append(item)
        changed.append(any(entry.changed for entry in session.journal[before:]))
        results.append((item.name, result))
        record.count("tool_calls")
        record.count("tool_errors", result.is_error)
        record.count("unknown_tools", _error_code(result) == "unknown_tool")
    skipped = len(parsed.items) - limit
    if skipped > 0:
        record.count("skipped_calls", skipped)
        message = f"{skipped} further calls were not executed: one message may hold {limit} calls"
        results.append(("", _error("limit_exceeded", message)))
    return Execution(results=tuple(results), calls=tuple(calls), changed=tuple(changed))


def tool_output(result: ToolResult, limits: EpisodeLimits, record: EpisodeRecord) -> str:
    """Return the text the policy reads; a long one is cut and says so with its full size."""
    content, limit = result.content, limits.max_tool_output_characters
    if len(content) <= limit:
        return content
    record.count("cut_outputs")
    return f"{content[:limit]}... [cut: {limit} of {len(content)} characters shown]"


def _error(code: str, message: str) -> ToolResult:
    return ToolResult(value={"error": {"code": code, "message": message}}, is_error=True)


def _error_code(result: ToolResult) -> str | None:
    error = result.value.get("error") if result.is_error and isinstance(result.value, dict) else None
    return error.get("code") if isinstance(error, dict) else None
