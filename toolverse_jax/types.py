"""Records shared by every part of the system, and the legend of array axes.

The records are frozen and free of JAX, so that environments, tasks and evaluation load without it.

Axis letters in einsums and shape comments: B rows (packed), G group, T tokens, S keys, D model,
F feed-forward, N query heads, K key-value heads, H head dimension, V vocabulary, L layers.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeGuard

import numpy as np

JSON = Any
"""Any JSON value: null, boolean, number, string, list or object."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ToolCall:
    """One call of a tool by a policy, or one call of a golden trace."""

    name: str
    """Tool name as the environment lists it."""
    arguments: Mapping[str, JSON]
    """Arguments by parameter name, as JSON values."""

    def to_json(self) -> dict[str, JSON]:
        """Return `{"name": ..., "arguments": ...}`."""
        return {"name": self.name, "arguments": dict(self.arguments)}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ToolSpec:
    """A tool as a policy sees it: name, description and JSON Schemas."""

    name: str
    description: str
    input_schema: Mapping[str, JSON]
    """JSON Schema of the arguments, an object schema."""
    output_schema: Mapping[str, JSON] | None = None

    def to_openai(self) -> dict[str, JSON]:
        """Return the function-calling form that chat templates take."""
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": dict(self.input_schema),
            },
        }


@dataclasses.dataclass(frozen=True, kw_only=True)
class Toolset:
    """A named set of tools before it becomes an environment; tool schemas are kept verbatim."""

    name: str
    tools: tuple[ToolSpec, ...]
    source: str = ""
    """Where it came from: a file, a server command or `original`."""
    licence: str = ""
    overview: str = ""
    labels: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class ToolResult:
    """What an environment answers to one tool call."""

    value: JSON
    """Structured result; for errors `{"error": {"code", "message", ...}}`."""
    is_error: bool = False

    @property
    def content(self) -> str:
        """The text a policy reads: the value as compact JSON."""
        return json.dumps(self.value, ensure_ascii=False, separators=(", ", ": "))


BindingSource = Literal["user", "ref", "prev", "default", "derived"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Binding:
    """Where one argument of a golden call comes from.

    `user`: said in the user's words; `ref`: looked up in an earlier output through a referring
    expression; `prev`: an earlier output, referred to by anaphora; `default`: silent constant;
    `derived`: computed from earlier outputs.
    """

    source: BindingSource
    turn: int | None = None
    """Zero-based turn of the producing call, for `ref`, `prev` and `derived`."""
    call: int | None = None
    """Zero-based call inside that turn."""
    path: tuple[str | int, ...] = ()
    """Path of the value inside the producing call's structured result."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class GoldenCall:
    """A call of the golden trace, grounded for one episode seed and with symbolic bindings."""

    tool: str
    arguments: Mapping[str, JSON]
    bindings: Mapping[str, Binding] = dataclasses.field(default_factory=dict)
    match: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Match mode by parameter; a parameter that is absent matches exactly."""

    def as_tool_call(self) -> ToolCall:
        return ToolCall(name=self.tool, arguments=self.arguments)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskTurn:
    """One user turn of a task: what the user says and the calls that fulfil it."""

    user: str
    golden: tuple[GoldenCall, ...]
    any_of: tuple[tuple[GoldenCall, ...], ...] = ()
    """Alternative golden sets; covering one of them is as good as covering `golden`."""
    facts: Mapping[str, JSON] = dataclasses.field(default_factory=dict)
    """Facts the scripted user may give when asked."""
    answer: str = ""
    """What a good assistant says once the turn is fulfilled; only supervised training reads it."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task:
    """One GUST item: an episode of several user turns in one environment."""

    id: str
    environment: str
    seed: int
    """Episode seed; the environment derives rows and identifiers from it."""
    turns: tuple[TaskTurn, ...]
    final_state_hash: str
    graph_id: str = ""
    difficulty: Mapping[str, float] = dataclasses.field(default_factory=dict)
    provenance: Mapping[str, JSON] = dataclasses.field(default_factory=dict)

    @property
    def num_turns(self) -> int:
        return len(self.turns)

    @property
    def num_calls(self) -> int:
        return sum(len(turn.golden) for turn in self.turns)


TrajectoryStatus = Literal["completed", "context_exhausted", "step_limit", "failed"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Trajectory:
    """One rollout of one task, as token ids: the only thing a trainer needs from a rollout.

    Invariants, checked by `rollout.check_trajectory`: token ids are only ever appended; every
    loss token was sampled by the engine and has a finite logprob; logprob is NaN exactly where
    the loss mask is false; the attention length is `len(tokens)`, never the sum of the mask.
    """

    task_id: str
    group_id: str
    environment: str
    sample_index: int
    tokens: np.ndarray
    """int32 `[length]`."""
    loss_mask: np.ndarray
    """bool `[length]`, true on tokens sampled by the policy."""
    sampler_logprobs: np.ndarray
    """float32 `[length]`, logprob at the sampling temperature, NaN where the mask is false."""
    turn_ids: np.ndarray
    """int16 `[length]`; 0 for the system prompt, else the 1-based user turn."""
    turn_rewards: np.ndarray
    """float32 `[num_turns]`; 0 for turns that were never reached."""
    turn_reached: np.ndarray
    """bool `[num_turns]`."""
    status: TrajectoryStatus
    stop_reasons: tuple[str, ...] = ()
    """Finish reason of each model call."""
    policy_version: int = 0
    seed: int = 0
    """Seed of the sampler for this rollout."""
    messages: tuple[Mapping[str, JSON], ...] = ()
    """The same episode as text, for people only."""
    stats: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Counts such as `tool_calls`, `tool_errors`, `parse_errors`, `extra_calls`."""
    error: str = ""

    @property
    def trace_score(self) -> float:
        """1.0 where every turn of the task was fulfilled, else 0.0."""
        return float(bool(np.all(self.turn_rewards >= 1.0)))


@dataclasses.dataclass(frozen=True, kw_only=True)
class PackedBatch:
    """Rows of packed trajectories; every array is `[rows, length]`.

    Arrays are aligned with the *predicted* token: position `i` holds the mask, advantage and
    logprobs of predicting `tokens[i]` from the tokens before it in the same segment, so the first
    token of a segment never carries loss.
    """

    tokens: np.ndarray
    """int32, 0 on padding."""
    segment_ids: np.ndarray
    """int32, 1-based inside a row, 0 on padding."""
    positions: np.ndarray
    """int32, position inside the segment."""
    turn_ids: np.ndarray
    """int32, 0 for the system prompt and padding, else the 1-based user turn."""
    loss_mask: np.ndarray
    """bool."""
    advantages: np.ndarray
    """float32, 0 where the mask is false."""
    sampler_logprobs: np.ndarray
    """float32, 0 where the mask is false."""
    old_logprobs: np.ndarray
    """float32, 0 where the mask is false."""

    @property
    def shape(self) -> tuple[int, int]:
        return self.tokens.shape  # type: ignore[return-value]

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays by field name."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}


def json_equal(left: JSON, right: JSON) -> bool:
    """Compare two JSON values: 1 equals 1.0, true is not 1, key order is free."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, int | float) and isinstance(right, int | float):
        return left == right
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(json_equal(v, right[k]) for k, v in left.items())
    if _is_array(left) and _is_array(right):
        return len(left) == len(right) and all(map(json_equal, left, right))
    return type(left) is type(right) and left == right


def _is_array(value: JSON) -> TypeGuard[Sequence[JSON]]:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)
