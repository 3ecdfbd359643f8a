"""How a person speaks of numbers: counted things, measures with a unit, limits, bare quantities.

Read off the name and description of a field, such as `number of nights` or `depth in centimetres`.
"""

from __future__ import annotations

import re

from toolverse_jax.environment.spec import FieldSpec
from toolverse_jax.gust.attributes import Attribute
from toolverse_jax.gust.phrases import is_plural, plural

_DURATIONS = frozenset("seconds minutes hours days nights weeks months years".split())
_SHORT = frozenset("seconds minutes hours".split())
_UNITS = (
    r"(?:square |cubic )?(?:metres|meters|centimetres|centimeters|millimetres|kilometres|miles|feet|inches)|grams|"
    r"kilograms|tonnes|pounds|litres|liters|millilitres|seconds|minutes|hours|days|weeks|months|years|degrees|"
    r"percent|euros|dollars|cents|thousands|millions|points|pieces"
)
_ADJECTIVES_OF = {
    "length": "long",
    "depth": "deep",
    "weight": "heavy",
    "height": "tall",
    "width": "wide",
    "area": "large",
    "duration": "long",
}


def number_attribute(field: FieldSpec, head: str, text: str) -> Attribute:
    """Work out the ways to speak of a numeric field, given its noun and its description in lower case."""
    counted = re.match(r"(?:number|count|amount) of (\w+)", text)
    measured = re.match(rf"(.+?) in ({_UNITS})\b", text)
    plural_first = re.match(r"(\w+s)((?: (?:on|in|at|per|inside) (?:the )?\w+)?)", text)
    if counted and is_plural(counted.group(1)):
        return _counted(field, f"number of {counted.group(1)}", counted.group(1), "")
    if measured:
        name, unit = measured.groups()
        most = re.match(r"(?:longest|heaviest|largest|biggest|highest|widest|maximum) (\w+)$", name)
        if most:
            return _limit(field, name, most.group(1), unit)
        return _measured(field, head if len(name.split()) > 2 else name, unit)
    if plural_first and (plural_first.group(1) == head or plural_first.group(2)):
        return _counted(field, head, plural_first.group(1), plural_first.group(2))
    if head in ("quantity", "amount", "count"):
        return Attribute(
            field=field,
            head=head,
            says=("we need {v} of them", "the {head} is {v}"),
            changes=("the {head} of {ref} should be {v}",),
            changes_it=("make it {v}", "make that {v}", "we need {v} of them"),
        )
    if is_plural(head):
        return _counted(field, f"number of {head}", head, "")
    return Attribute(
        field=field,
        head=head,
        after=(f"with {'an' if head[:1] in 'aeiou' else 'a'} {head} of {{v}}",),
        changes=("the {head} of {ref} should be {v}",),
    )


def _limit(field: FieldSpec, name: str, thing: str, unit: str) -> Attribute:
    """`longest boat in metres`: a limit on what a row takes."""
    things = plural(thing)
    return Attribute(
        field=field,
        head=name,
        unit=unit,
        after=(f"for {things} up to {{n}}", f"for {things} of up to {{n}}"),
        says=(f"it takes {things} up to {{n}}",),
        asks=(f"what is the {name} for {{ref}}",),
        tells=(f"the {name} for {{ref}}",),
    )


def _counted(field: FieldSpec, head: str, unit: str, rest: str) -> Attribute:
    if unit in _DURATIONS and not rest:
        return Attribute(
            field=field,
            head=head,
            unit=unit,
            after=("for {n}",),
            says=("it is for {n}",),
            asks=(f"how many {unit} is {{ref}} for",) if unit not in _SHORT else ("how long is {ref}",),
            tells=(f"how many {unit} {{ref}} is for",) if unit not in _SHORT else ("how long {ref} is",),
            answer="it is for {n}",
            changes=("change {ref} to {n}", "{ref} should be {n} instead", "{ref} should be for {n}"),
            changes_it=("make it {n}", "make that {n}", "change it to {n}"),
        )
    return Attribute(
        field=field,
        head=head,
        unit=unit,
        answer=f"it has {{n}}{rest}",
        after=(f"with {{n}}{rest}",),
        says=(f"it has {{n}}{rest}",),
        asks=(f"how many {unit}{rest} does {{ref}} have",),
        tells=(f"how many {unit}{rest} {{ref}} has",),
        changes=(f"{{ref}} should have {{n}}{rest}", f"change {{ref}} to {{n}}{rest}"),
        changes_it=(f"make it {{n}}{rest}", f"make that {{n}}{rest}"),
    )


def _measured(field: FieldSpec, name: str, unit: str) -> Attribute:
    an = "an" if name[:1] in "aeiou" else "a"
    if unit in _DURATIONS:
        return Attribute(
            field=field,
            head=name,
            unit=unit,
            after=("for {n}",),
            says=("it is for {n}",),
            asks=("how long is {ref}", f"how many {unit} is {{ref}} for"),
            tells=(f"how many {unit} {{ref}} is for", "how long {ref} is"),
            changes=("change {ref} to {n}", "{ref} should be {n} long"),
            changes_it=("make it {n}",),
        )
    spoken = unit if unit not in ("thousands", "millions") else unit[:-1]
    told = (f"how {_ADJECTIVES_OF[name]} {{ref}} is",) if name in _ADJECTIVES_OF else ()
    how = (
        f"how {_ADJECTIVES_OF[name]} is {{ref}}" if name in _ADJECTIVES_OF else "what is the {head} of {ref}"
    )
    value = "{n}" if spoken == unit else f"{{v}} {spoken}"
    return Attribute(
        field=field,
        head=name,
        unit=unit if spoken == unit else "",
        after=(f"with {an} {name} of {value}",),
        says=(f"the {name} is {value}",),
        asks=(how, "what is the {head} of {ref}"),
        tells=(*told, "the {head} of {ref}"),
        changes=(f"change the {name} of {{ref}} to {value}",),
    )
