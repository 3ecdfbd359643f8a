"""How a person speaks of one field: as an adjective, a phrase after the noun, a sentence, a question, a change.

Everything is read off the field's name, type and description (`day it should be ready`, `what grows in
it`); the tables below are general English, not words of any environment. Templates use `{v}` for the
value, `{n}` for a quantity, `{ref}` for the row, `{head}` for the field's noun.
"""

from __future__ import annotations

import dataclasses
import re

from toolverse_jax.environment.spec import FieldSpec, ValueKind
from toolverse_jax.gust.attributes import NAMING_WORDS, PERSON_WORDS, Attribute, head_noun, question_told
from toolverse_jax.gust.measures import number_attribute
from toolverse_jax.gust.phrases import participle, singular

_QUOTED_NAMES = frozenset("title text subject caption heading summary content body".split())
_BEFORE_NOUN = frozenset(
    "size colour color climate terrain period era style material kind category type genre status state".split()
)
_PLACES_IN = frozenset(
    "valley district region zone city town country department building hall folder section quarter".split()
)
_PLACES_ON = frozenset("side floor level bank shore deck platform channel".split())
_ROLES = {"to": "recipient", "from": "sender", "by": "author", "for": "recipient", "with": "partner"}
"""Nouns of fields that are named by a preposition."""


def make_attribute(field: FieldSpec, text: str, noun: str, *, label: bool, link: str = "") -> Attribute:
    """Work out the ways to speak of a field.

    Args:
        field: the field.
        text: what its parameter or field is described as.
        noun: noun of its entity.
        label: whether the field names its row.
        link: preposition before the field's value after the noun, from a description such as `Book a
            stay for a boat`.
    """
    text = re.sub(r"^(?:the|a|an|its|new) ", "", text.strip().rstrip(".").lower())
    head = head_noun(field.name, field.type in ("integer", "number"))
    if len(text.split()) <= 3 and re.fullmatch(
        rf"(?:\w+ )?{re.escape(head)}(?: (?:number|address|code|name|text))?", text
    ):
        head = text
    if field.type in ("date", "datetime"):
        made = _date(field, head, text, noun)
    elif field.type in ("integer", "number"):
        made = number_attribute(field, head, text)
    elif field.type == "boolean":
        made = _boolean(field, head)
    elif field.type == "enum" or field.enum:
        made = _enumerated(field, head, text)
    else:
        made = _string(field, head, text, noun, label, link)
    of = "for" if made.head.startswith("number of") else "of"
    generic_changes = (
        f"change the {{head}} {of} {{ref}} to {{v}}",
        f"set the {{head}} {of} {{ref}} to {{v}}",
    )
    return dataclasses.replace(
        made,
        says=made.says or ("the {head} is {v}",),
        asks=made.asks or (f"what is the {{head}} {of} {{ref}}",),
        tells=made.tells or (f"the {{head}} {of} {{ref}}",),
        answer=made.answer or "the {head} is {v}",
        changes=(*made.changes, *generic_changes),
    )


def _date(field: FieldSpec, head: str, text: str, noun: str) -> Attribute:
    done = re.fullmatch(r"(\w+ed) (?:at|on)", head)
    if done:
        past = done.group(1)
        return Attribute(
            field=field,
            head=head,
            after=(f"{past} on {{v}}",),
            says=(f"it was {past} on {{v}}",),
            asks=(f"when was {{ref}} {past}",),
            tells=(f"when {{ref}} was {past}",),
            answer=f"it was {past} {{v}}",
        )
    due = re.match(r"(?:day|date) (?:it|the \w+|an? \w+) (should|has to|must|needs to) be (.+)$", text)
    if due:
        verb, state = due.groups()
        return Attribute(
            field=field,
            head=head,
            after=(f"to be {state} on {{v}}", f"to be {state} by {{v}}"),
            says=(f"it {verb} be {state} on {{v}}", f"it {verb} be {state} by {{v}}"),
            asks=(
                f"when {'does' if verb == 'has to' else 'should'} {{ref}} {'have to ' if verb == 'has to' else ''}be {state}",
            ),
            tells=(f"when {{ref}} {verb} be {state}", "the {head} of {ref}"),
            changes=(f"{{ref}} {verb} be {state} on {{v}} instead", "move the {head} of {ref} to {v}"),
        )
    if "due" in head or re.search(r"\bdue\b", text) or head == "deadline":
        return Attribute(
            field=field,
            head=head,
            after=("due on {v}", "due {v}"),
            says=("it is due on {v}",),
            asks=("when is {ref} due", "what is the {head} of {ref}"),
            tells=("when {ref} is due", "the {head} of {ref}"),
            changes_it=("make it due on {v}",),
            changes=("move the {head} of {ref} to {v}", "{ref} should be due on {v} instead"),
        )
    event = re.match(r"(?:day|date) of (?:the )?(.+)$", text)
    name = event.group(1) if event else ""
    if name in (noun, noun.rpartition(" ")[2], "") and head in ("date", "day", "when", noun):
        return Attribute(
            field=field,
            head=head,
            after=("on {v}",),
            says=("it is on {v}",),
            asks=("when is {ref}", "on which day is {ref}"),
            tells=("when {ref} is", "the {head} of {ref}"),
            changes_it=("move it to {v}", "make it {v} instead"),
            changes=("move {ref} to {v}", "{ref} should be on {v} instead"),
        )
    name = name or head
    return Attribute(
        field=field,
        head=head,
        after=(f"with the {name} on {{v}}",) if " " in name else (f"with {name} on {{v}}",),
        says=(f"the {name} is on {{v}}",),
        asks=(f"when is the {name} of {{ref}}", f"what day is the {name} of {{ref}}"),
        tells=(f"when the {name} of {{ref}} is",),
        answer=f"the {name} is {{v}}",
        changes=(f"move the {name} of {{ref}} to {{v}}",),
    )


def _boolean(field: FieldSpec, head: str) -> Attribute:
    word = re.sub(r"^(?:is|has|be) ", "", head)
    return Attribute(
        field=field,
        head=word,
        says=(f"it should {{not}}be {word}",),
        asks=(f"is {{ref}} {word}",),
        changes=(f"{{ref}} should {{not}}be {word}",),
    )


def _enumerated(field: FieldSpec, head: str, text: str) -> Attribute:
    last = head.rpartition(" ")[2]
    if head in ("time of day", "part of day"):
        return Attribute(
            field=field,
            head=head,
            before="{v}",
            after=("{at}",),
            asks=("at what time of day is {ref}",),
            filters=("are {at}",),
        )
    stands = re.match(r"\w+ it (?:\w+) (in|on|at|under)$", text)
    if stands:
        return _placed(field, head, stands.group(1))
    if re.match(r"how to (?:get|go|travel|come) there", text):
        return Attribute(
            field=field,
            head=head,
            after=("reached by {v}",),
            says=("you get there by {v}", "it is reached by {v}"),
            asks=("how do you get to {ref}",),
            tells=("how to get to {ref}",),
            answer="by {v}",
            filters=("are reached by {v}",),
        )
    purpose = re.match(r"(\w+) to (\w+) it$", text)
    if purpose and last in ("season", "month", "quarter", "year"):
        verb = purpose.group(2)
        return Attribute(
            field=field,
            head=head,
            after=(f"to {verb} in {{v}}",),
            says=(f"we {verb} it in {{v}}",),
            asks=(f"in which {head} do we {verb} {{ref}}", f"when do we {verb} {{ref}}"),
            tells=(f"in which {head} we {verb} {{ref}}",),
            filters=("are for {v}",),
        )
    for places, link in ((_PLACES_IN, "in"), (_PLACES_ON, "on")):
        if last in places:
            return _placed(field, head, link)
    kind = re.match(r"kind of (\w+)", text)
    if last in _BEFORE_NOUN:
        question = (
            f"what {head} is {{ref}}"
            if last in ("size", "colour", "color")
            else "what is the {head} of {ref}"
        )
        if kind and head == "kind":
            question = f"what kind of {kind.group(1)} is {{ref}}"
        return Attribute(
            field=field,
            head=head,
            before="{v}",
            asks=(question, "what is the {head} of {ref}"),
            tells=(question_told(question),),
        )
    if last == "priority":
        return Attribute(field=field, head=head, before="{v}-priority", after=("with {v} priority",))
    return Attribute(field=field, head=head, after=(f"with the {head} {{v}}",))


def _placed(field: FieldSpec, head: str, link: str) -> Attribute:
    return Attribute(
        field=field,
        head=head,
        after=(f"{link} the {{v}} {head}",),
        says=(f"it is {link} the {{v}} {head}",),
        asks=(f"which {head} is {{ref}} {link}", f"{link} which {head} is {{ref}}"),
        tells=(f"which {head} {{ref}} is {link}",),
        filters=(f"are {link} the {{v}} {head}",),
    )


def _string(field: FieldSpec, head: str, text: str, noun: str, label: bool, link: str) -> Attribute:
    last = head.rpartition(" ")[2]
    subject = re.match(r"(?:full |short )?name of (?:the |an? )?(\w+)", text)
    owner = subject.group(1) if subject else ""
    is_person = (
        last in PERSON_WORDS
        or text.startswith("who ")
        or (isinstance(field.generator, ValueKind) and field.generator.value == "person")
        or (last == "name" and noun in PERSON_WORDS)
    )
    if last in NAMING_WORDS and (label or owner in ("", noun)):
        style = "title" if last in _QUOTED_NAMES else "label" if last == "label" else "name"
        return Attribute(field=field, head=head, naming=style, person=is_person and last == "name")
    if head in _ROLES:
        return Attribute(
            field=field, head=_ROLES[head], naming="phrase" if label else "", after=(f"{head} {{v}}",)
        )
    if re.match(r"(?:where|place)\b", text):
        return Attribute(
            field=field,
            head=head,
            naming="phrase" if label else "",
            after=("in {v}",),
            says=("it is in {v}",),
            asks=("where is {ref}", "in which {head} is {ref}"),
            tells=("where {ref} is",),
            filters=("are in {v}",),
        )
    lives = re.match(r"\w+ where (?:they|it|he|she) (\w+)$", text)
    if lives:
        verb = lives.group(1)
        return Attribute(field=field, head=head, after=("in {v}",), says=(f"they {verb} in {{v}}",))
    agent = re.match(r"who (\w+s) it$", text)
    if agent:
        verb = agent.group(1)
        stem = singular(verb)
        return Attribute(
            field=field,
            head=head,
            person=True,
            naming="phrase" if label else "",
            after=(f"{participle(stem)} by {{v}}",),
            says=(f"{{v}} {verb} it",),
            asks=(f"who {verb} {{ref}}",),
            tells=(f"who {verb} {{ref}}",),
            changes=(f"{{v}} should {stem} {{ref}}",),
            answer=f"{{v}} {verb} it",
        )
    if re.match(r"what (?:\w+|is \w+) (?:in|on|inside) (?:it|there)", text):
        return Attribute(
            field=field, head=head, naming="phrase" if label else "", after=("with {v}", "for {v}")
        )
    if is_person or link or (owner and owner != noun) or re.match(r"\w+ that \w+s it$", text):
        return Attribute(
            field=field,
            head=head,
            person=is_person,
            naming="phrase" if label else "",
            after=(f"{link or 'for'} {{v}}",),
            says=(f"it is {link or 'for'} {{v}}",),
            asks=(f"who is the {head} of {{ref}}" if is_person else "what is the {head} of {ref}",),
            changes=(f"{{ref}} should be {link or 'for'} {{v}} instead",) if text.startswith("who ") else (),
        )
    about = re.match(r"what (?:the \w+|it) is about", text)
    if label:
        return Attribute(
            field=field,
            head=head,
            naming="plain",
            before="{v}",
            asks=("what is {ref} about",) if about else (),
        )
    said = f"with the {head} {{v}}"
    return Attribute(field=field, head=head, after=("about {v}",) if about else (said,))
