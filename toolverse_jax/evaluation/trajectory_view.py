"""Prepares saved trajectories for reading: which ones, and what stands in which turn.

Text of the policy is taken from the decoded token spans, so that a reader sees exactly what carries
loss; everything else is the text of the message.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from toolverse_jax.errors import ToolverseError
from toolverse_jax.reward import call_matches
from toolverse_jax.types import JSON, GoldenCall, Task, ToolCall

Record = Mapping[str, Any]
"""One line of a trajectory file, as `train.run_folder` writes it."""

_FULL_SHADE = 1.5
"""Size of the advantage that is shown in the darkest shade."""
_MEMBERS = (
    "environment",
    "group_id",
    "messages",
    "spans",
    "status",
    "task_id",
    "turn_advantages",
    "turn_reached",
    "turn_rewards",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class MessageView:
    """One message, or the tool list."""

    kind: str
    """system, user, policy, tool or error."""
    label: str
    text: str
    tokens: int
    """0 where the message shares the tokens of the one before it, or was never read by the policy."""
    loss: bool = False
    sign: str = ""
    """`good` or `bad`: colour of the advantage; empty where it is 0."""
    shade: float = 0.0
    """Opacity of that colour."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class GoldenView:
    """One golden call and whether the policy made it."""

    text: str
    made: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class TurnView:
    """One user turn."""

    number: int
    verdict: str
    """right, wrong or unreached."""
    reward: str
    group_mean: str
    advantage: str
    golden: tuple[GoldenView, ...]
    messages: tuple[MessageView, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrajectoryView:
    """One rollout."""

    title: str
    environment: str
    task_id: str
    facts: str
    prompt: MessageView | None
    """The system block with the tools."""
    turns: tuple[TurnView, ...]


def read_trajectories(path: Path) -> list[Record]:
    """Read a trajectory file of a run.

    Raises:
        ToolverseError: a line is not a trajectory.
    """
    records = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        if not line:
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise ToolverseError(
                f"{path}, line {number} is not JSON ({error}); delete the file to leave it out of the report"
            ) from error
        missing = [name for name in _MEMBERS if not isinstance(record, dict) or name not in record]
        if missing:
            raise ToolverseError(
                f"{path}, line {number} is not a trajectory, it has no {missing[0]!r}; "
                "delete the file to leave it out of the report"
            )
        records.append(record)
    return records


def choose_trajectories(records: Sequence[Record], count: int = 3) -> list[Record]:
    """Return examples: one that is right throughout, one that is half right, one that is mostly wrong.

    Other rollouts follow where a kind is absent. As far as possible, each is of another task.
    """
    kinds = (
        (lambda share: share == 1, lambda record, share: -len(record["turn_rewards"])),
        (lambda share: 0 < share < 1, lambda record, share: abs(share - 0.5)),
        (lambda share: share < 0.5, lambda record, share: share),
        *[(lambda share: True, lambda record, share: share)] * count,
    )
    chosen: list[Record] = []
    for belongs, rank in kinds:
        if len(chosen) == count:
            break
        tasks = {record["task_id"] for record in chosen}
        candidates = [
            (record["task_id"] in tasks, rank(record, _share_right(record)), index)
            for index, record in enumerate(records)
            if belongs(_share_right(record)) and not any(record is other for other in chosen)
        ]
        if candidates:
            chosen.append(records[min(candidates)[2]])
    return chosen


def view_trajectory(record: Record, records: Sequence[Record], task: Task | None) -> TrajectoryView:
    """Prepare one rollout.

    Args:
        record: the rollout.
        records: all rollouts of its step; those of its group give the group's mean reward.
        task: its task, for the golden calls; None leaves them out.
    """
    group = [other for other in records if other["group_id"] == record["group_id"]]
    rewards = record["turn_rewards"]
    if task is not None and task.num_turns != len(rewards):
        task = None  # The task file was built anew since.
    messages = _messages(record)
    turns = tuple(
        _turn(record, group, turn, task, [view for at, view in messages if at == turn + 1])
        for turn in range(len(rewards))
    )
    fulfilled = sum(reward >= 1 for reward in rewards)
    prompts = [view for at, view in messages if at == 0]
    return TrajectoryView(
        title=_title(fulfilled, len(rewards)),
        environment=record["environment"],
        task_id=record["task_id"],
        facts=_facts(record, group),
        prompt=prompts[0] if prompts else None,
        turns=turns,
    )


def _share_right(record: Record) -> float:
    rewards = record["turn_rewards"]
    return sum(reward >= 1 for reward in rewards) / max(len(rewards), 1)


def _title(fulfilled: int, turns: int) -> str:
    if fulfilled == turns > 1:
        return f"All {turns} turns right"
    return f"{fulfilled or 'None'} of {turns} turns right"


def _facts(record: Record, group: Sequence[Record]) -> str:
    place = next(index for index, other in enumerate(group, start=1) if other is record)
    tokens = sum(span["tokens"] for span in record["spans"])
    sampled = sum(span["tokens"] for span in record["spans"] if span["loss"])
    return (
        f"rollout {place} of {len(group)} of its group · "
        f"{record['status'].replace('_', ' ')} · {tokens} tokens, {sampled} with loss"
    )


def _turn(
    record: Record, group: Sequence[Record], turn: int, task: Task | None, messages: Sequence[MessageView]
) -> TurnView:
    reward = record["turn_rewards"][turn]
    reached = record["turn_reached"][turn]
    mean = sum(other["turn_rewards"][turn] for other in group) / len(group)
    calls = [
        ToolCall(name=call["name"], arguments=call["arguments"])
        for message in record["messages"]
        if message["turn"] == turn + 1
        for call in message.get("tool_calls", ())
    ]
    return TurnView(
        number=turn + 1,
        verdict="right" if reward >= 1 else "wrong" if reached else "unreached",
        reward=f"{reward:g}",
        group_mean=f"{mean:.2f}",
        advantage=_signed(record["turn_advantages"][turn]),
        golden=tuple(_golden(task.turns[turn].golden, calls)) if task is not None else (),
        messages=tuple(messages),
    )


def _golden(golden: Sequence[GoldenCall], calls: Sequence[ToolCall]) -> list[GoldenView]:
    return [
        GoldenView(
            text=_call_text(wanted.tool, wanted.arguments),
            made=any(call_matches(wanted, call) for call in calls),
        )
        for wanted in golden
    ]


def _call_text(tool: str, arguments: Mapping[str, JSON]) -> str:
    listed = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items())
    return f"{tool}({listed})"


def _messages(record: Record) -> list[tuple[int, MessageView]]:
    """Return the messages with their turn, 0 for the system block."""
    runs, position = [], 0
    for span in record["spans"]:
        runs.append((position, position + span["tokens"], span))
        position += span["tokens"]
    views: list[tuple[int, MessageView]] = []
    last: tuple[int, int] = (0, 0)
    for message in record["messages"]:
        start, end = message["span"]
        tokens = 0 if (start, end) == last else end - start
        last = (start, end)
        if message["role"] == "assistant":
            sampled = [span for first, stop, span in runs if span["loss"] and start <= first and stop <= end]
            views.append((message["turn"], _policy_message(message, sampled, tokens)))
        else:
            views.append((message["turn"], _context_message(message, tokens, unread=start == end)))
    return views


def _policy_message(message: Record, sampled: Sequence[Record], tokens: int) -> MessageView:
    advantage = sampled[0]["advantage"] if sampled else 0.0
    size = min(abs(advantage) / _FULL_SHADE, 1.0)
    return MessageView(
        kind="policy",
        label="policy" if message.get("finish_reason") != "length" else "policy, cut",
        text="".join(span["text"] for span in sampled),
        tokens=tokens,
        loss=True,
        sign="good" if advantage > 0 else "bad" if advantage < 0 else "",
        shade=round(0.05 + 0.17 * size, 3) if advantage else 0.0,
    )


def _context_message(message: Record, tokens: int, *, unread: bool) -> MessageView:
    kind = message["role"]
    if kind == "tool":
        failed = bool(message.get("is_error"))
        label = ("tool error" if failed else "tool") + (", not read" if unread else "")
        return MessageView(
            kind="error" if failed else "tool", label=label, text=message["content"], tokens=tokens
        )
    return MessageView(kind=kind, label=kind, text=message["content"].strip("\n"), tokens=tokens)


def _signed(value: float) -> str:
    """Return a number with its sign and a true minus; 0 has none."""
    return f"{value:+.2f}".replace("-", "\u2212") if round(value, 2) else "0"
