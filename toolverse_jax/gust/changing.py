"""Clauses that ask for a change of a row there is: other values, amounts, removal, another state."""

from __future__ import annotations

from toolverse_jax.environment.spec import Transition
from toolverse_jax.gust.clauses import Clause, said_attributes
from toolverse_jax.gust.mentions import Speaker, with_reference
from toolverse_jax.gust.phrases import participle, pick
from toolverse_jax.gust.trace import GroundedCall

_SAFE_REASONS = {
    "cancel": ("{ref} is off", "we do not need {ref} any more"),
    "remove": ("we no longer need {ref}", "we do not need {ref} any more"),
    "delete": ("we no longer need {ref}", "{ref} was a mistake"),
    "complete": ("{ref} is done", "{ref} is finished"),
    "mark": ("{ref} is done", "{ref} is finished"),
    "finish": ("{ref} is done",),
    "close": ("{ref} is done",),
    "resolve": ("{ref} is fixed",),
    "approve": ("{ref} is fine", "{ref} looks good"),
    "confirm": ("{ref} is fine", "{ref} is settled"),
    "accept": ("{ref} is fine",),
}


def update_row(speaker: Speaker, call: GroundedCall) -> Clause:
    """Ask for other values of a row or of a setting."""
    values = said_attributes(speaker, call)
    reference = next(iter(call.references.values()), None)
    ref = speaker.row(reference) if reference else ""
    _, attribute, value = values[0]
    if reference is None:
        text = speaker.fill(
            pick(speaker.rng, ("set the {head} to {v}", "change the {head} to {v}")), attribute, value
        )
    else:
        templates = attribute.changes if len(values) == 1 else attribute.changes[-2:]
        if ref == "it" and attribute.changes_it and len(values) == 1 and speaker.rng.random() < 0.7:
            templates = attribute.changes_it
        text = speaker.fill(pick(speaker.rng, templates), attribute, value, ref)
    for _, other, second in values[1:]:
        text += " and " + speaker.fill("the {head} to {v}", other, second)
    statement = not text.startswith(("change ", "set ", "move ", "make "))
    if (
        not statement
        and "instead" not in text
        and len(values) == 1
        and ref == "it"
        and speaker.rng.random() < 0.4
    ):
        text += " instead"
    return Clause(text, "say" if statement else "do")


def adjust_row(speaker: Speaker, call: GroundedCall) -> Clause:
    """Ask for an amount to be added to or taken from a row."""
    wording = speaker.wording
    skeleton = wording.skeletons[call.tool]
    verb = wording.verbs[call.tool]
    reference = next(iter(call.references.values()), None)
    ref = speaker.row(reference) if reference else ""
    (_, attribute, value), *_ = said_attributes(speaker, call)
    number = speaker.fill("{v}", attribute, value)
    thing = skeleton.object.noun if skeleton.object else ""
    phrase = skeleton.phrases[0] if skeleton.phrases else None
    if verb in ("increase", "decrease", "raise", "lower", "reduce", "change", "adjust"):
        head = thing if thing and phrase is not None and phrase.link == "of" else attribute.head
        return Clause(with_reference(f"{verb} the {head} of {{ref}} by {number}", ref), "do")
    if thing and phrase is not None and wording.entity_of_noun(phrase) is not None:
        things = thing if value != 1 else thing[:-1] if thing.endswith("s") else thing
        moved = f"{number} {things}"
        return Clause(f"{verb} {moved} {phrase.link} {ref}", "do")
    unit = f"{number} {attribute.unit}" if attribute.unit else number
    return Clause(f"{verb} {ref} by {unit}", "do")


def _moved(speaker: Speaker, ref: str, verb: str, pronoun: str) -> str:
    """Ask for a change of state whose description is about another thing than the row."""
    done = participle(verb)
    return pick(speaker.rng, (f"mark {ref} as {done}", f"note that {ref} was {done}", f"{verb} {ref}"))


def act_on_row(speaker: Speaker, call: GroundedCall) -> Clause:
    """Ask for a row to be removed or moved to another state."""
    wording = speaker.wording
    operation = wording.operations[call.tool]
    skeleton = wording.skeletons[call.tool]
    verb = wording.verbs[call.tool]
    reference = next((r for r in call.references.values() if r.entity == operation.entity), None)
    if reference is None:
        return Clause(verb, "do")
    ref = speaker.row(reference)
    complement = "".join(
        f" {p.link} {p.noun}"
        for p in skeleton.phrases
        if p.link == "as" and wording.entity_of_noun(p) is None
    )
    pronoun = "them" if wording.is_person(operation.entity or "") else "it"
    subject = wording.entity_of_noun(skeleton.object) if skeleton.object else None
    extras = [speaker.fill(t, a, v) for _, a, v in said_attributes(speaker, call) for t in a.says[:1]]
    moved = next((step.verb for step in operation.steps if isinstance(step, Transition)), None)
    if subject != operation.entity and moved is not None:
        return Clause(_moved(speaker, ref, moved.replace("_", " "), pronoun), "do", tuple(extras))
    roll = speaker.rng.random()
    if roll < 0.35:
        reasons = (f"{{ref}} {skeleton.reason}",) if skeleton.reason else _SAFE_REASONS.get(verb, ())
        if skeleton.reason.startswith("the "):
            reasons, pronoun = (skeleton.reason,), ref
        if reasons:
            reason = pick(speaker.rng, reasons).replace("{ref}", ref)
            joined = pick(speaker.rng, (", so {do}", ", so please {do}", "; {do}"))
            return Clause(
                reason + joined.replace("{do}", f"{verb} {pronoun}{complement}"), "say", tuple(extras)
            )
    if roll < 0.5 and not complement:
        form = pick(speaker.rng, ("{ref} can be {done}", "{ref} should be {done}"))
        return Clause(form.replace("{ref}", ref).replace("{done}", participle(verb)), "say", tuple(extras))
    return Clause(f"{verb} {ref}{complement}", "do", tuple(extras))
