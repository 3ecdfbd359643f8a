"""Lifecycles from transition verbs: the states of a thing and which verb leads from where to where."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from toolverse_jax.synthesis.lexicon import FIRST_STATES, TRANSITIONS, TransitionVerb, split_name

STATUS_NAMES = ("status", "state")
_SETTLED = frozenset({"booked", "scheduled"})
_FORGIVING = frozenset({"completed", "finished", "resolved", "done", "delivered", "returned"})


@dataclasses.dataclass(frozen=True)
class LifecycleDraft:
    """States and transitions of one entity."""

    states: tuple[str, ...]
    initial: str
    transitions: dict[str, tuple[tuple[str, ...], str]]
    """Verb -> (states it starts from, state it ends in)."""

    @property
    def final(self) -> tuple[str, ...]:
        """States that a verb ends in and no verb leaves."""
        ends = {
            target
            for verb, (_, target) in self.transitions.items()
            if TRANSITIONS[verb].kind == "end" or (TRANSITIONS[verb].kind == "decide" and _negative(verb))
        }
        left = {
            state
            for verb, (sources, _) in self.transitions.items()
            if TRANSITIONS[verb].kind == "back"
            for state in sources
        }
        return tuple(state for state in self.states if state in ends - left)

    @property
    def closed(self) -> tuple[str, ...]:
        """Final states in which a thing takes nothing new, such as `cancelled`; `completed` is none."""
        return tuple(state for state in self.final if _key(state) not in _FORGIVING)


def draft_lifecycle(
    verbs: Sequence[str],
    states: Sequence[str] = (),
    *,
    create_verbs: Sequence[str] = (),
    default: str | None = None,
) -> LifecycleDraft:
    """Return the lifecycle that a thing's transition verbs tell of.

    Args:
        verbs: Transition verbs of the tools, keys of `TRANSITIONS`.
        states: States that the tools' schemas enumerate; empty where they name none.
        create_verbs: Verbs that bring such things about: what is booked starts as `booked`.
        default: State of a new row, where a schema says so.
    """
    verbs = list(dict.fromkeys(verbs))
    known = list(states)
    targets = {verb: _target(TRANSITIONS[verb], known) for verb in verbs if TRANSITIONS[verb].kind != "back"}
    initial = default if default in known else _initial(verbs, known, set(targets.values()), create_verbs)
    for state in (initial, *targets.values()):
        if state not in known:
            known.append(state)
    finals = [
        targets[verb]
        for verb in targets
        if TRANSITIONS[verb].kind == "end" or (TRANSITIONS[verb].kind == "decide" and _negative(verb))
    ]
    transitions: dict[str, tuple[tuple[str, ...], str]] = {}
    for verb in verbs:
        sources, target = _transition(verb, known, initial, targets, finals)
        transitions[verb] = (tuple(state for state in known if state in sources and state != target), target)
    return LifecycleDraft(states=tuple(known), initial=initial, transitions=transitions)


def _transition(
    verb: str, states: list[str], initial: str, targets: dict[str, str], finals: list[str]
) -> tuple[set[str], str]:
    rule = TRANSITIONS[verb]
    working = {targets[v] for v in targets if TRANSITIONS[v].kind == "start"}
    paused = {targets[v] for v in targets if TRANSITIONS[v].kind == "pause"}
    if rule.kind == "back":
        undone = {targets[v] for v in rule.undoes if v in targets} or set(finals) or paused
        resumes = verb in ("resume", "unpause") and working
        return undone, next(iter(sorted(working))) if resumes else initial
    target = targets[verb]
    if verb == "archive":
        return set(states) - {target}, target
    if rule.kind == "end":
        return set(states) - set(finals), target
    if rule.kind == "decide":
        return {initial} | (set(states) - set(targets.values())), target
    if rule.kind == "start":
        return {initial} | (paused if not any(v in targets for v in ("resume",)) else set()), target
    return (working or {initial}) | ({initial} if rule.initial == initial else set()), target


def _target(rule: TransitionVerb, states: list[str]) -> str:
    by_key = {_key(state): state for state in states}
    return next(
        (by_key[_key(name)] for name in (rule.target, *rule.aliases) if _key(name) in by_key), rule.target
    )


def _initial(verbs: list[str], states: list[str], targets: set[str], create_verbs: Sequence[str]) -> str:
    if states:
        free = [state for state in states if state not in targets]
        return free[0] if free else states[0]
    decided = any(TRANSITIONS[verb].kind == "decide" for verb in verbs)
    for verb in create_verbs:
        # What still has to be decided on is not booked yet.
        if verb in FIRST_STATES and not (decided and FIRST_STATES[verb] in _SETTLED):
            return FIRST_STATES[verb]
    by_kind = {
        kind: [v for v in verbs if TRANSITIONS[v].kind == kind]
        for kind in ("start", "pause", "decide", "end", "back")
    }
    if by_kind["start"] and by_kind["start"][0] in ("start", "publish"):
        return TRANSITIONS[by_kind["start"][0]].initial
    order = [*by_kind["pause"], *by_kind["decide"], *by_kind["end"], *by_kind["start"], *by_kind["back"]]
    return TRANSITIONS[order[0]].initial


def _negative(verb: str) -> bool:
    return verb in ("reject", "decline", "deny")


def _key(state: str) -> str:
    return "_".join(split_name(state))
