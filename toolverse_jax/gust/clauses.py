"""What a request or a question is before it becomes part of a message."""

from __future__ import annotations

import dataclasses

from toolverse_jax.gust.attributes import Attribute
from toolverse_jax.gust.mentions import Speaker
from toolverse_jax.gust.trace import GroundedCall
from toolverse_jax.types import JSON


@dataclasses.dataclass(frozen=True)
class Clause:
    """One request or question before it becomes part of a message."""

    text: str
    kind: str
    """`do` (a bare imperative), `say` (a full sentence) or `ask` (a direct question)."""
    extra: tuple[str, ...] = ()
    """Full sentences that follow."""


def said_attributes(speaker: Speaker, call: GroundedCall) -> list[tuple[str, Attribute, JSON]]:
    """Return parameter, attribute and value of all that the user says outright for a call."""
    found = []
    for parameter, value in call.said.items():
        place = speaker.wording.argument_field(call.tool, parameter)
        if place is not None:
            found.append((parameter, speaker.wording.attribute(*place), value))
    return found
