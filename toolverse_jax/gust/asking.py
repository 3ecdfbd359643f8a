"""Clauses that ask for something to be read: which rows, how many, one field of one row, a total."""

from __future__ import annotations

from toolverse_jax.gust.attributes import Attribute
from toolverse_jax.gust.clauses import Clause
from toolverse_jax.gust.mentions import Speaker, with_reference
from toolverse_jax.gust.phrases import pick
from toolverse_jax.gust.trace import Ask, GroundedCall, Reference
from toolverse_jax.types import JSON


def question(speaker: Speaker, call: GroundedCall) -> Clause:
    """Put a read into words."""
    ask = call.ask
    assert ask is not None, "a read without a question"
    if ask.kind == "labels":
        return _which(speaker, call, ask)
    if ask.kind == "count":
        return _how_many(speaker, call, ask)
    if ask.kind == "total":
        return _total(speaker, call, ask)
    return _value(speaker, call, ask)


def _value(speaker: Speaker, call: GroundedCall, ask: Ask) -> Clause:
    attribute = speaker.wording.attribute(ask.entity, ask.field)
    assert ask.row is not None, "a question about no row"
    ref = speaker.row(ask.row)
    forms: list[tuple[str, str]] = [(form, "ask") for form in attribute.asks]
    for told in attribute.tells:
        forms += [(f"tell me {told}", "do"), (f"I need to know {told}", "say")]
    if ask.kind == "find" and ref != "it":
        forms.append(("look up {ref} and tell me the {head}", "do"))
    text, kind = pick(speaker.rng, forms)
    return Clause(with_reference(text.replace("{head}", attribute.head), ref), kind)


def _scope(speaker: Speaker, call: GroundedCall) -> tuple[str, list[str], list[str], Reference | None]:
    """Return plural noun with adjectives, predicates, phrases after the noun, and the row looked under."""
    wording = speaker.wording
    entity = wording.operations[call.tool].entity or ""
    befores: list[str] = []
    predicates: list[str] = []
    afters: list[str] = []
    for parameter, value in call.said.items():
        place = wording.argument_field(call.tool, parameter)
        if place is None:
            continue
        attribute = wording.attribute(*place)
        _filter(speaker, attribute, value, befores, predicates, afters)
    noun = " ".join([*befores, wording.plural(entity)])
    return noun, predicates, afters, next(iter(call.references.values()), None)


def _filter(
    speaker: Speaker,
    attribute: Attribute,
    value: JSON,
    befores: list[str],
    predicates: list[str],
    afters: list[str],
) -> None:
    if attribute.before:
        befores.append(speaker.fill(attribute.before, attribute, value))
        return
    template = attribute.after[0] if attribute.after else "with the {head} {v}"
    afters.append(speaker.fill(template, attribute, value))
    predicates.extend(speaker.fill(t, attribute, value) for t in attribute.filters[:1])


def _which(speaker: Speaker, call: GroundedCall, ask: Ask) -> Clause:
    noun, predicates, afters, parent = _scope(speaker, call)
    forms: list[tuple[str, str]] = []
    after = " ".join(afters)
    if parent is None:
        what = f"{noun} {after}".strip()
        forms += [
            (f"list the {what}", "do"),
            (f"show me the {what}", "do"),
            (f"I'd like to see the {what}", "say"),
        ]
        if predicates:
            forms += [(f"which {noun} {predicates[0]}", "ask")] * 2
            forms += [(f"tell me which {noun} {predicates[0]}", "do")]
        else:
            forms += [(f"which {what} are there", "ask"), (f"which {what} do we have", "ask")]
            forms += [(f"tell me which {what} we have", "do")]
        return Clause(*pick(speaker.rng, forms))
    link = speaker.wording.relation(ask.entity, parent.entity)
    ref = speaker.row(parent)
    what = f"{noun} {after} {link} {ref}".replace("  ", " ")
    forms += [(f"list the {what}", "do"), (f"show me the {what}", "do"), (f"what are the {what}", "ask")]
    if link in ("of", "for"):
        forms += [(f"which {noun} {after} does {ref} have".replace("  ", " "), "ask")] * 2
        forms += [(f"tell me which {noun} {after} {ref} has".replace("  ", " "), "do")]
    else:
        forms += [(f"which {noun} {after} are {link} {ref}".replace("  ", " "), "ask")] * 2
        forms += [(f"tell me which {noun} {after} are {link} {ref}".replace("  ", " "), "do")]
    return Clause(*pick(speaker.rng, forms))


def _how_many(speaker: Speaker, call: GroundedCall, ask: Ask) -> Clause:
    noun, predicates, afters, parent = _scope(speaker, call)
    after = " ".join(afters)
    if parent is None:
        forms = [
            (f"how many {noun} {after} are there", "ask"),
            (f"how many {noun} {after} do we have", "ask"),
        ]
        if predicates:
            forms = [(f"how many {noun} {predicates[0]}", "ask")]
        forms.append((f"tell me how many {noun} {predicates[0] if predicates else f'{after} we have'}", "do"))
    else:
        link = speaker.wording.relation(ask.entity, parent.entity)
        ref = speaker.row(parent)
        if link in ("of", "for"):
            forms = [
                (f"how many {noun} {after} does {ref} have", "ask"),
                (f"tell me how many {noun} {after} {ref} has", "do"),
                (f"I need to know how many {noun} {after} {ref} has", "say"),
            ]
        else:
            forms = [
                (f"how many {noun} {after} are {link} {ref}", "ask"),
                (f"how many {noun} {after} are there {link.rpartition(' ')[2]} {ref}", "ask"),
                (f"tell me how many {noun} {after} are {link} {ref}", "do"),
            ]
    text, kind = pick(speaker.rng, forms)
    return Clause(" ".join(text.split()), kind)


def _total(speaker: Speaker, call: GroundedCall, ask: Ask) -> Clause:
    """Ask for an aggregate: a count, or the total of a numeric field."""
    operation = speaker.wording.operations[call.tool]
    summed = next(
        (
            e[2]
            for e in operation.output.extra.values()
            if isinstance(e, list | tuple) and e and e[0] == "sum"
        ),
        None,
    )
    if summed is None:
        return _how_many(speaker, call, ask)
    attribute = speaker.wording.attribute(ask.entity, str(summed))
    noun, _, afters, parent = _scope(speaker, call)
    under = f" {speaker.under(ask.entity, parent)}" if parent is not None else ""
    what = " ".join([noun, *afters]) + under
    forms = [(f"what is the total {attribute.head} of the {what}", "ask")]
    forms += [(f"tell me the total {attribute.head} of the {what}", "do")]
    return Clause(*pick(speaker.rng, forms))
