"""The reward of one user turn: its calls must cover the golden calls one to one.

Call order inside the turn is free and further calls are allowed, as in the paper; a repeated golden
call needs a repeated call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from toolverse_jax.reward.matching import call_matches
from toolverse_jax.types import GoldenCall, TaskTurn, ToolCall

ExtraCalls = Literal["allow", "no_mutation"]


def covers(golden: Sequence[ToolCall | GoldenCall], calls: Sequence[ToolCall]) -> bool:
    """Return whether each golden call can be matched to a call of its own.

    A maximum bipartite matching, so the answer does not depend on the order of either side. No
    golden calls are covered by anything; `turn_reward` has a stricter rule for that case.
    """
    return len(_maximum_matching(golden, calls)) == len(golden)


def turn_reward(
    turn: TaskTurn,
    calls: Sequence[ToolCall],
    *,
    changed: Sequence[bool] | bool | None = None,
    extra_calls: ExtraCalls = "allow",
) -> float:
    """Judge the calls a policy made in one user turn.

    r = 1 iff the calls cover `turn.golden` or one of the `turn.any_of` sets. A set without calls is
    fulfilled iff no call changed the state, so that it is not a free point.

    Args:
        turn: the turn of the task.
        calls: the policy's calls in this turn.
        changed: whether each call changed the state, or one flag for the whole turn.
        extra_calls: `no_mutation` gives 0 where a call beyond the golden ones changed the state;
            the paper allows it.

    Returns:
        1.0 or 0.0.

    Raises:
        ValueError: `changed` is needed and absent, or has another length than `calls`.
    """
    if isinstance(changed, Sequence) and len(changed) != len(calls):
        raise ValueError(f"changed must have one flag per call ({len(calls)}), got {len(changed)}")
    return float(any(_fulfils(golden, calls, changed, extra_calls) for golden in _golden_sets(turn)))


def count_extra_calls(turn: TaskTurn, calls: Sequence[ToolCall]) -> int:
    """Count the calls that no golden call accounts for, against the set that explains most of them."""
    return len(calls) - max(len(_maximum_matching(golden, calls)) for golden in _golden_sets(turn))


def _golden_sets(turn: TaskTurn) -> Iterator[tuple[GoldenCall, ...]]:
    yield turn.golden
    yield from turn.any_of


def _fulfils(
    golden: Sequence[GoldenCall],
    calls: Sequence[ToolCall],
    changed: Sequence[bool] | bool | None,
    extra_calls: ExtraCalls,
) -> bool:
    if not golden:
        if changed is None and calls:
            raise ValueError(
                "a turn without golden calls needs `changed` to be judged; pass one flag per call"
            )
        return not (any(changed) if isinstance(changed, Sequence) else bool(changed))
    if not covers(golden, calls):
        return False
    if extra_calls == "allow":
        return True
    if not isinstance(changed, Sequence):
        raise ValueError('extra_calls="no_mutation" needs `changed` as one flag per call')
    # A matching that covers the golden calls and one that covers the mutating calls exist apart
    # iff one matching covers both (Mendelsohn and Dulmage 1958).
    mutating = [call for call, flag in zip(calls, changed, strict=True) if flag]
    return len(_maximum_matching(golden, mutating)) == len(mutating)


def _maximum_matching(golden: Sequence[ToolCall | GoldenCall], calls: Sequence[ToolCall]) -> dict[int, int]:
    """Return a largest one-to-one matching, call index -> golden index (augmenting paths)."""
    candidates = [
        [index for index, call in enumerate(calls) if call_matches(wanted, call)] for wanted in golden
    ]
    owner: dict[int, int] = {}

    def assign(wanted: int, seen: set[int]) -> bool:
        for index in candidates[wanted]:
            if index in seen:
                continue
            seen.add(index)
            if index not in owner or assign(owner[index], seen):
                owner[index] = wanted
                return True
        return False

    for wanted in range(len(golden)):
        assign(wanted, set())
    return owner
