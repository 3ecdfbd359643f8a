"""Which alternatives of a golden call keep the rest of its task sound."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from toolverse_jax.gust.trace import GroundedTurn


def prune_alternatives(turns: Sequence[GroundedTurn]) -> tuple[GroundedTurn, ...]:
    """Keep an alternative only where no later look-up could become needless by it.

    Listing all rows instead of searching one shows rows that a later golden call would look up.
    """
    pruned = []
    for number, turn in enumerate(turns):
        later = {call.tool for other in turns[number + 1 :] for call in other.calls}
        tools = [call.tool for call in turn.calls]
        calls = tuple(
            dataclasses.replace(
                call,
                alternatives=tuple(
                    other
                    for other in call.alternatives
                    if not later & {call.tool, other.tool} and tools.count(call.tool) == 1
                ),
            )
            for call in turn.calls
        )
        pruned.append(dataclasses.replace(turn, calls=calls))
    return tuple(pruned)
