"""Records of a grounded golden trace: what is called, why, and what a user would say of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Literal

from toolverse_jax.types import JSON, Binding, GoldenCall

Mention = Literal["described", "it", "that", "new"]
"""How a row is referred to: by its attributes, by a pronoun, by `that <noun>`, or as the one just made."""

AskKind = Literal["labels", "count", "value", "find", "total"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reference:
    """A row as the user refers to it at one point of the conversation."""

    entity: str
    id: JSON
    mention: Mention = "described"
    attributes: tuple[tuple[str, JSON], ...] = ()
    """Fields and values that single the row out; empty for anaphora."""
    parent: Reference | None = None
    """The row it belongs to, where that has to be said."""
    verb: str = ""
    """For `new`: the verb by which the row was made."""

    def described_values(self) -> tuple[JSON, ...]:
        """Return the values the user says to refer to the row and to what it belongs to."""
        inherited = self.parent.described_values() if self.parent else ()
        return tuple(value for _, value in self.attributes) + inherited


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ask:
    """What the user wants to know from a read."""

    kind: AskKind
    entity: str
    field: str = ""
    """The field asked for, for `value`."""
    row: Reference | None = None
    """The row asked about, where it is not an argument of the call."""
    answer: tuple[JSON, ...] = ()
    """Values of the answer, copied from the output."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class GroundedCall:
    """One golden call with all that its text needs."""

    tool: str
    arguments: Mapping[str, JSON]
    bindings: Mapping[str, Binding]
    match: Mapping[str, str] = dataclasses.field(default_factory=dict)
    result: JSON = None
    """Structured result of the call."""
    goal: bool = True
    """False for a lookup that serves a later call of the turn."""
    references: Mapping[str, Reference] = dataclasses.field(default_factory=dict)
    """By parameter, for arguments that identify rows."""
    said: Mapping[str, JSON] = dataclasses.field(default_factory=dict)
    """By parameter, values the user says outright."""
    ask: Ask | None = None
    alternatives: tuple[GoldenCall, ...] = ()
    """Other calls that serve as well."""

    def golden(self) -> GoldenCall:
        """Return the call without what only its text needs."""
        return GoldenCall(
            tool=self.tool,
            arguments=dict(self.arguments),
            bindings=dict(self.bindings),
            match=dict(self.match),
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class GroundedTurn:
    """The golden calls of one user turn, in an order that works."""

    calls: tuple[GroundedCall, ...]
    year: int | None = None
    """Year that dates are of when the user leaves it out; None: the user says it."""

    @property
    def goals(self) -> tuple[GroundedCall, ...]:
        return tuple(call for call in self.calls if call.goal)


@dataclasses.dataclass(frozen=True, kw_only=True)
class GroundedTrace:
    """A golden trace, executed call by call from the episode's first state."""

    environment: str
    graph_id: str
    seed: int
    turns: tuple[GroundedTurn, ...]
    final_state_hash: str
    identifiers: tuple[JSON, ...] = ()
    """Identifiers of all rows of the episode; none of them may be in a user's words."""
    dropped: tuple[tuple[str, str], ...] = ()
    """Tools of the stages that could not be grounded, with the reason."""

    @property
    def num_calls(self) -> int:
        return sum(len(turn.calls) for turn in self.turns)
