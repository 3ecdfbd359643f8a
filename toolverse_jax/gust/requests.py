"""Clauses that ask for a change; new rows are put into words here, changes of rows there are in `changing`."""

from __future__ import annotations

import dataclasses

from toolverse_jax.gust.attributes import Attribute
from toolverse_jax.gust.changing import act_on_row, adjust_row, update_row
from toolverse_jax.gust.clauses import Clause, said_attributes
from toolverse_jax.gust.mentions import Speaker
from toolverse_jax.gust.phrases import pick
from toolverse_jax.gust.trace import GroundedCall, Reference
from toolverse_jax.types import JSON

_WANTED_VERBS = frozenset("add create book open plan reserve schedule start order".split())
_REPORTED_VERBS = frozenset("register record log enter".split())
_CLOSE_LINKS = ("with ", "for ", "reached ", "to ")
_PLACE_LINKS = frozenset({"at", "in"})


def request(speaker: Speaker, call: GroundedCall) -> Clause:
    """Put a change into words."""
    verb = speaker.wording.operations[call.tool].verb
    if verb == "create":
        return _create(speaker, call)
    if verb in ("update", "settings"):
        return update_row(speaker, call)
    if verb == "adjust":
        return adjust_row(speaker, call)
    return act_on_row(speaker, call)


def _create(speaker: Speaker, call: GroundedCall) -> Clause:
    wording = speaker.wording
    operation = wording.operations[call.tool]
    entity = operation.entity or ""
    skeleton = wording.skeletons[call.tool]
    values = said_attributes(speaker, call)
    phrases: list[str] = []
    used: set[str] = set()
    subject = wording.entity_of_noun(skeleton.object) if skeleton.object else None
    wanted = subject in (entity, None) and _wants(speaker, entity, wording.verbs[call.tool])
    for phrase in skeleton.phrases:
        target = wording.entity_of_noun(phrase)
        parameter = next(
            (p for p, r in call.references.items() if r.entity == target and p not in used), None
        )
        if parameter is not None:
            used.add(parameter)
            link = "for" if phrase.link == "of" else phrase.link
            if wanted and phrase.preposition in ("to", "into"):
                # "add a berth to a pier", but "we need a berth on a pier"
                link = wording.relation(entity, call.references[parameter].entity).rpartition(" ")[2]
                link = "for" if link == "of" else link
            phrases.append(_place(speaker, call.references[parameter], link))
            continue
        for name, attribute, value in values:
            if name not in used and wording.matches_argument(phrase, call.tool, name):
                used.add(name)
                link = "for" if phrase.link == "of" else phrase.link
                phrases.append(f"{link} {speaker.fill('{v}', attribute, value)}")
                break
        else:
            if phrase.definite and target is None and speaker.rng.random() < 0.4:
                phrases.append(f"{phrase.link} the {phrase.noun}")
    rest = [(attribute, value) for name, attribute, value in values if name not in used]
    handed = next((p for p, r in call.references.items() if p not in used and r.entity == subject), None)
    if subject != entity and handed is not None:
        return _hand_over(speaker, call, handed, phrases, rest)
    phrases += [speaker.under(entity, reference) for p, reference in call.references.items() if p not in used]
    return _make(speaker, call, phrases, rest, wanted)


def _place(speaker: Speaker, reference: Reference, link: str) -> str:
    preposition = link.rpartition(" ")[2]
    clear = reference.mention in ("that", "new") and speaker.mentions == 0
    if clear and preposition in _PLACE_LINKS and speaker.rng.random() < 0.4:
        speaker.mentions += 1
        return "there"
    return f"{link} {speaker.row(reference)}"


def _wants(speaker: Speaker, entity: str, verb: str) -> bool:
    """Return whether to say what is needed rather than what to do."""
    return verb in _WANTED_VERBS and not speaker.wording.is_person(entity) and speaker.rng.random() < 0.25


def _make(
    speaker: Speaker, call: GroundedCall, phrases: list[str], rest: list[tuple[Attribute, JSON]], wanted: bool
) -> Clause:
    """`book a stay for Silver Wren at Blue 1 for 3 nights`: the new row, its place, its times, other facts."""
    wording = speaker.wording
    close, late, extra = _arrange(speaker, rest)
    verb = wording.verbs[call.tool]
    entity = wording.operations[call.tool].entity or ""
    row = speaker.new_row(entity, close)
    tail = " ".join([*phrases, *late])
    if wanted:
        start = pick(speaker.rng, ("we need", "I need", "I'd like", "we want"))
        return Clause(f"{start} {row} {tail}", "say", extra)
    if (
        verb in _REPORTED_VERBS
        and speaker.rng.random() < 0.25
        and not extra
        and not wording.is_person(entity)
    ):
        return Clause(f"there is {row} {tail}, please {verb} it", "say", extra)
    return Clause(f"{verb} {row} {tail}", "do", extra)


def _arrange(
    speaker: Speaker, rest: list[tuple[Attribute, JSON]]
) -> tuple[list[tuple[Attribute, JSON]], list[str], tuple[str, ...]]:
    """Share values out: close to the noun, at the end of the clause, or in sentences of their own."""
    close: list[tuple[Attribute, JSON]] = []
    late: list[str] = []
    extra: list[str] = []
    for attribute, value in rest:
        if attribute.naming or attribute.before:
            close.append((attribute, value))
            continue
        facts = sum(not (a.naming or a.before) for a, _ in close)
        timed = attribute.is_date or attribute.after[:1] == ("for {n}",)
        if attribute.after and facts + len(late) < 3 and speaker.rng.random() < (0.9 if timed else 0.75):
            template = pick(speaker.rng, attribute.after)
            if timed or facts or not template.startswith(_CLOSE_LINKS):
                late.append(speaker.fill(template, attribute, value))
            else:
                close.append((dataclasses.replace(attribute, after=(template,)), value))
        else:
            extra.append(_sentence_of(speaker, attribute, value))
    return close, late, tuple(extra)


def _sentence_of(speaker: Speaker, attribute: Attribute, value: JSON) -> str:
    says = [s for s in attribute.says if not (value == 1 and s.endswith("of them"))] or list(attribute.says)
    return speaker.fill(pick(speaker.rng, says), attribute, value)


def _hand_over(
    speaker: Speaker,
    call: GroundedCall,
    parameter: str,
    phrases: list[str],
    rest: list[tuple[Attribute, JSON]],
) -> Clause:
    """`lend the clay bowl to Harbour Museum`: the clause is about a row that exists, and makes another."""
    verb = speaker.wording.verbs[call.tool]
    thing = speaker.row(call.references[parameter])
    late: list[str] = []
    extra: list[str] = []
    for attribute, value in rest:
        if attribute.unit and attribute.after and attribute.after[0].startswith("with {n}"):
            thing = f"{speaker.fill('{n}', attribute, value)} of {thing}"
        elif attribute.after and (late or attribute.after[0].startswith("to be") is False):
            template = pick(speaker.rng, attribute.after)
            late.append(
                (", " if template.startswith("due") else "") + speaker.fill(template, attribute, value)
            )
        else:
            extra.append(_sentence_of(speaker, attribute, value))
    text = " ".join([verb, thing, *phrases, *late]).replace(" ,", ",")
    return Clause(text, "do", tuple(extra))
