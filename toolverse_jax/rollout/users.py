"""Who speaks to the policy: the user side of an episode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from toolverse_jax.types import JSON, Task


class User(Protocol):
    """Says the next user message of an episode."""

    async def message(self, turn: int, messages: Sequence[Mapping[str, JSON]]) -> str | None:
        """Return the message of a zero-based user turn, None where the user has no more to say.

        Args:
            turn: turns already over.
            messages: the episode so far, as in `Trajectory.messages`.
        """
        ...


class ScriptedUser:
    """Says the messages of the task whatever the policy answers."""

    def __init__(self, task: Task) -> None:
        self._turns = task.turns

    async def message(self, turn: int, messages: Sequence[Mapping[str, JSON]]) -> str | None:
        del messages
        return self._turns[turn].user if turn < len(self._turns) else None
