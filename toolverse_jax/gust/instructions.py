"""Writes the user's messages of a grounded trace, without a language model.

Per goal an intent (verb class, entity, values, references) is put into a clause (`requests`, `asking`),
clauses of a turn are joined, and the register decides how the user asks. A message is written several
ways until one passes the checks: no identifiers or technical names, every value readable, sane length.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from toolverse_jax.environment.engine import Environment
from toolverse_jax.errors import TaskError
from toolverse_jax.gust.answers import answer_turn
from toolverse_jax.gust.asking import question
from toolverse_jax.gust.clauses import Clause
from toolverse_jax.gust.mentions import Speaker
from toolverse_jax.gust.phrases import capitalise, close_sentence, count_words, pick
from toolverse_jax.gust.randomness import seeded_random
from toolverse_jax.gust.requests import request
from toolverse_jax.gust.text_checks import find_leaks, is_recoverable, oddities, said_values
from toolverse_jax.gust.trace import GroundedCall, GroundedTrace, GroundedTurn
from toolverse_jax.gust.wording import Wording
from toolverse_jax.types import JSON, GoldenCall, TaskTurn

REGISTERS = ("plain", "polite", "brisk", "chatty")
_ATTEMPTS = 10
_GOOD_WORDS = 25
_MAX_ALTERNATIVES = 4

_WRAPPERS: dict[str, tuple[str, ...]] = {
    "plain": ("{do}", "{do}", "please {do}", "I'd like to {do}", "can you {do}?", "{do}, please"),
    "polite": (
        "please {do}",
        "could you {do}?",
        "could you please {do}?",
        "would you {do}, please?",
        "{do}, please",
    ),
    "brisk": ("{do}", "{do}", "{do}", "please {do}"),
    "chatty": ("let's {do}", "I want to {do}", "can you {do} for me?", "we should {do}", "go ahead and {do}"),
}
_FIRST_OPENERS: dict[str, tuple[str, ...]] = {
    "plain": ("", "", "", "Hi. "),
    "polite": ("", "", "Hello. ", "Good morning. "),
    "brisk": ("",),
    "chatty": ("", "Hi there. ", "Hey. ", "Hello again. "),
}
_NEXT_OPENERS: dict[str, tuple[str, ...]] = {
    "plain": ("", "", "", "next, ", "Thanks. "),
    "polite": ("", "", "Thank you. ", "Thanks. "),
    "brisk": ("", "", "", "now "),
    "chatty": ("", "Great. ", "okay, ", "Thanks. ", "one more thing: ", "right, "),
}


def write_turns(
    environment: Environment, trace: GroundedTrace, seed: int, *, wording: Wording | None = None
) -> list[TaskTurn]:
    """Write the turns of a task.

    Args:
        environment: the environment of the trace.
        trace: the grounded trace.
        seed: seed of all choices of words.
        wording: words of the environment, to save building them again.

    Raises:
        TaskError: a turn cannot be said within the checks.
    """
    wording = wording or Wording(environment.spec)
    rng = seeded_random("write", environment.name, trace.graph_id, trace.seed, seed)
    register = pick(rng, REGISTERS)
    month_first = rng.random() < 0.25
    turns = []
    opener = ""
    for number, turn in enumerate(trace.turns):
        text, faults = "", ["no attempt"]
        for attempt in range(_ATTEMPTS):
            speaker = Speaker(wording, rng, register=register, month_first=month_first, year=turn.year)
            text, said_first = _message(speaker, turn, number, opener)
            faults = message_faults(wording, turn, text, trace.identifiers)
            # Short messages read better: long ones are kept only where no shorter one comes up.
            if not faults and (count_words(text) <= _GOOD_WORDS or attempt >= _ATTEMPTS // 2):
                opener = said_first
                break
        else:
            raise TaskError(
                f"turn {number + 1} of a task in {environment.name} cannot be put into words ({'; '.join(faults)}); draw another task"
            )
        turns.append(
            TaskTurn(
                user=text,
                golden=tuple(call.golden() for call in turn.calls),
                any_of=_any_of(turn.calls),
                facts=_facts(wording, turn),
                answer=answer_turn(wording, turn),
            )
        )
    return turns


def message_faults(wording: Wording, turn: GroundedTurn, text: str, identifiers: Sequence[JSON]) -> list[str]:
    """Return what is wrong with a message for a turn; empty if nothing."""
    faults = [f"{leak!r} leaks" for leak in find_leaks(text, identifiers, wording)]
    faults += [f"{odd!r} reads oddly" for odd in oddities(text)]
    year = turn.year if turn.year is not None else _said_year(turn)
    faults += [
        f"{value!r} is not said" for value in said_values(turn) if not is_recoverable(text, value, year)
    ]
    return faults


def _said_year(turn: GroundedTurn) -> int:
    """Return the year the message itself says first, which its later dates are of."""
    years = [value[:4] for value in said_values(turn) if isinstance(value, str) and value[4:5] == "-"]
    return int(years[0]) if years and years[0].isdigit() else 0


# --- messages ---------------------------------------------------------------------------------


def _message(speaker: Speaker, turn: GroundedTurn, number: int, last_opener: str) -> tuple[str, str]:
    """Return the message of a turn and how it opens, which the next one must not repeat."""
    clauses = [question(speaker, call) if call.ask else request(speaker, call) for call in turn.goals]
    first, *rest = _sentences(speaker.rng, speaker.register, clauses)
    opener = pick(speaker.rng, (_NEXT_OPENERS if number else _FIRST_OPENERS)[speaker.register])
    length = count_words(" ".join([first, *rest]))
    if opener == last_opener or length > _GOOD_WORDS - 4 or (opener == "now " and clauses[0].kind != "do"):
        opener = ""
    # A greeting is a sentence of its own, other openers run into the first one.
    lead = [opener.strip()] if opener.endswith(". ") else []
    first = first if lead else opener + first
    return " ".join(map(capitalise, [*lead, first, *rest])), opener


def _sentences(rng: random.Random, register: str, clauses: Sequence[Clause]) -> list[str]:
    """Say the clauses of one turn, one sentence each or joined; first letters are left as they are."""
    if len(clauses) == 2 and all(c.kind == "do" and not c.extra and "," not in c.text for c in clauses):
        if count_words(clauses[0].text) + count_words(clauses[1].text) <= 22 and rng.random() < 0.6:
            glue = pick(rng, (" and ", " and ", ", then ", " and then "))
            return [_ask_for(rng, register, clauses[0].text + glue + clauses[1].text)]
    said = []
    for position, clause in enumerate(clauses):
        # One "could you" is polite, two in a message are not.
        manner = register if position == 0 else "brisk"
        if clause.kind == "do":
            text = _ask_for(rng, manner, clause.text)
        else:
            text = close_sentence(clause.text, "?" if clause.kind == "ask" else ".")
        if position:
            text = (
                pick(rng, ("", "also, ", "and ", "then ") if clause.kind == "do" else ("", "also, ", "and "))
                + text
            )
        said.append(text)
        said += [close_sentence(extra) for extra in clause.extra]
    return said


def _ask_for(rng: random.Random, register: str, text: str) -> str:
    """Ask for an imperative in the manner of a register."""
    wrapper = pick(rng, _WRAPPERS[register])
    unfit = ("let's", "we should", "I want", "I'd like", "go ahead")
    first = text.partition(" ")[0]
    if first in ("tell", "show", "look", "list", "note") and (
        wrapper.startswith(unfit) or "for me" in wrapper
    ):
        wrapper = pick(rng, ("can you {do}?", "please {do}"))
    if " for " in text and "for me" in wrapper:
        wrapper = "can you {do}?"
    return close_sentence(wrapper.replace("{do}", text), "?" if wrapper.endswith("?") else ".")


# --- records ----------------------------------------------------------------------------------


def _any_of(calls: Sequence[GroundedCall]) -> tuple[tuple[GoldenCall, ...], ...]:
    """Return the golden sets that are as good: each look-up replaced by its alternatives."""
    sets: list[tuple[GoldenCall, ...]] = [()]
    for call in calls:
        options = (call.golden(), *call.alternatives)
        sets = [(*chosen, option) for chosen in sets for option in options]
    return tuple(sets[1 : 1 + _MAX_ALTERNATIVES])


def _facts(wording: Wording, turn: GroundedTurn) -> dict[str, JSON]:
    facts: dict[str, JSON] = {}
    for call in turn.goals:
        for parameter, value in call.said.items():
            place = wording.argument_field(call.tool, parameter)
            if place is not None:
                facts.setdefault(wording.attribute(*place).head, value)
    return facts
