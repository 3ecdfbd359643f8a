"""The short message a good assistant ends a turn with; only supervised training reads it."""

from __future__ import annotations

from toolverse_jax.gust.attributes import unit_noun
from toolverse_jax.gust.phrases import capitalise, join_words
from toolverse_jax.gust.trace import GroundedCall, GroundedTurn
from toolverse_jax.gust.wording import Wording

DONE = {"create": "Done, it is added.", "update": "Done, it is changed."}
DONE_OTHERWISE = "Done."


def answer_turn(wording: Wording, turn: GroundedTurn) -> str:
    """Return the answer of a turn: what was asked, else that it is done."""
    asked = [call for call in turn.goals if call.ask is not None]
    if asked:
        return " ".join(_answer(wording, call) for call in asked)
    return DONE.get(wording.operations[turn.goals[-1].tool].verb, DONE_OTHERWISE)


def _answer(wording: Wording, call: GroundedCall) -> str:
    ask = call.ask
    assert ask is not None
    counts = any(e[0] == "count" for e in wording.operations[call.tool].output.extra.values() if e)
    if ask.kind == "count" or (ask.kind == "total" and counts):
        (number,) = ask.answer
        return f"There {'is' if number == 1 else 'are'} {number or 'none'}."
    if ask.kind == "labels":
        return f"{join_words(str(value) for value in ask.answer)}."
    if ask.kind == "total":
        return f"The total is {ask.answer[0]}."
    attribute = wording.attribute(ask.entity, ask.field)
    value = ask.answer[0]
    said = attribute.answer.replace("{head}", attribute.head).replace("{v}", str(value))
    if isinstance(value, int | float):
        said = said.replace("{n}", f"{value} {unit_noun(attribute, value)}")
    return f"{capitalise(said)}."
