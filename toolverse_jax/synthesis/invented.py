"""Draws invented toolsets from a lexicon: varied material for warm starts and property tests.

A policy that has only met a dozen toolsets learns their tool names by heart. Drawing nouns, verbs,
fields and values anew for each toolset leaves it nothing to memorise but the way tools are used.
The nouns of the held-out environments in `envs/` are not in the lexicon, so those stay unseen.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence

from toolverse_jax.types import JSON, Toolset, ToolSpec

_PLACES = (
    "archive arena camp canteen cinema clinic club depot dock farm field forest gallery garden garage harbor hotel "
    "island kitchen lab library market mill mine office orchard park port ranch school shop stable stage store "
    "street studio terminal tower vault village vineyard ward warehouse yard zone"
).split()
_THINGS = (
    "album animal article asset basket batch bench boiler book bottle box cabinet camera card carton case chapter "
    "chest class course crate desk device engine exhibit file frame gate instrument kit lamp lane lesson machine "
    "meter module panel pallet plant plot printer project pump rack recipe sensor shelf ship slot song statue "
    "table tank tent ticket tractor train tray truck van wagon window"
).split()
_MATTERS = (
    "alert audit badge bid bill check claim comment contract delivery duty entry errand fee grant incident "
    "inspection invoice issue job label letter lease measurement memo message milestone mission offer payment "
    "permit photo quote reading record request review route sale shift step survey task tour transfer trip "
    "vote warning"
).split()
_ADJECTIVES = (
    "amber arctic blue bold bright calm cedar clear coral crimson eastern elder golden grand green hidden ivory "
    "little lower maple misty northern olive oval quiet red round royal rustic silver southern steady stone sunny "
    "tall upper velvet western white wild"
).split()
_WORDS = (
    "anchor beacon bridge brook canyon comet crane crown delta echo ember falcon fern flint grove hawk heron hollow "
    "juniper kestrel lantern ledge lily meadow mirror moss nest oak otter pebble pine prairie quartz raven reef "
    "ridge river robin sparrow spring summit thistle tide timber valley willow wren"
).split()
_FIRST_NAMES = (
    "Ada Alma Arlo Bela Bruno Cleo Dario Edda Elif Enzo Fay Gus Hana Igor Ines Ivo Jana Jonas Kaya Lars Lena Lino "
    "Mara Milo Nora Nils Olga Oskar Pia Rafi Romy Sami Selma Tara Theo Uma Vera Viktor Wanda Yara Zeno"
).split()
_LAST_NAMES = (
    "Abelson Baker Castell Dorn Eriksen Falk Garza Holt Ivarson Jansen Keller Lund Moreau Novak Okafor Petrov Quinn "
    "Rossi Sato Turner Ulrich Vance Weber Young Zeller"
).split()
_ENUMS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("kind", ("basic", "premium", "trial")),
    ("category", ("indoor", "outdoor", "mixed")),
    ("size", ("small", "medium", "large")),
    ("level", ("beginner", "advanced", "expert")),
    ("priority", ("low", "normal", "urgent")),
    ("colour", ("black", "yellow", "purple")),
    ("side", ("left", "right", "front")),
    ("season", ("winter", "summer", "autumn")),
    ("material", ("wood", "metal", "glass")),
    ("section", ("north", "centre", "south")),
)
_NUMBERS = (
    "capacity quantity hours minutes weight_kg height_cm pages seats copies units price amount_due score parts"
).split()
_PEOPLE = "owner author guest member driver teacher visitor reporter assignee client buyer holder".split()
_DATES = "date due_date start_date delivery_date visit_day".split()
_LABELS = ("name", "title", "label")


@dataclasses.dataclass(frozen=True)
class _Noun:
    singular: str
    label: str
    enum: tuple[str, tuple[str, ...]] | None
    number: str | None
    person: str | None
    date: str | None

    @property
    def plural(self) -> str:
        if self.singular.endswith(("s", "x", "ch", "sh")):
            return self.singular + "es"
        if self.singular.endswith("y") and self.singular[-2] not in "aeiou":
            return self.singular[:-1] + "ies"
        return self.singular + "s"

    @property
    def identifier(self) -> str:
        return f"{self.singular}_id"


def invented_toolset(seed: int) -> Toolset:
    """Draw a toolset of two or three nested entities and 6 to 10 tools; the same seed, the same toolset."""
    rng = random.Random(f"invented toolset {seed}")
    root = _noun(rng, rng.choice(_PLACES + _THINGS), rich=False)
    child = _noun(rng, rng.choice([word for word in _THINGS if word != root.singular]), rich=True)
    leaf = _noun(rng, rng.choice(_MATTERS), rich=True)
    tools = [_list_tool(rng, root, None), _create_tool(rng, root, None)]
    tools += [_list_tool(rng, child, root), _create_tool(rng, child, root)]
    tools += [_list_tool(rng, leaf, child), _create_tool(rng, leaf, child)]
    optional = [
        *_changes(rng, leaf),
        *_changes(rng, child)[:1],
        _tool(
            f"get_{child.singular}", f"Show one {child.singular} in detail.", {child.identifier: _id(child)}
        ),
    ]
    rng.shuffle(optional)
    seen = {tool.name for tool in tools}
    for tool in optional[: rng.randint(2, 4)]:
        if tool.name not in seen:
            seen.add(tool.name)
            tools.append(tool)
    rng.shuffle(tools)
    return Toolset(
        name=f"invented_{seed}",
        tools=tuple(tools),
        source="invented",
        licence="Apache-2.0",
        overview=f"{root.plural.capitalize()}, their {child.plural} and the {leaf.plural} of each.",
        labels=("invented",),
    )


def _noun(rng: random.Random, word: str, *, rich: bool) -> _Noun:
    return _Noun(
        singular=word,
        label=rng.choice(_LABELS),
        enum=rng.choice(_ENUMS) if rng.random() < 0.5 else None,
        number=rng.choice(_NUMBERS) if rich and rng.random() < 0.6 else None,
        person=rng.choice(_PEOPLE) if rich and rng.random() < 0.35 else None,
        date=rng.choice(_DATES) if rich and rng.random() < 0.4 else None,
    )


def _tool(
    name: str, description: str, properties: dict[str, JSON], required: Sequence[str] | None = None
) -> ToolSpec:
    schema: dict[str, JSON] = {"type": "object", "properties": properties, "additionalProperties": False}
    needed = list(properties) if required is None else list(required)
    if needed:
        schema["required"] = needed
    return ToolSpec(name=name, description=description, input_schema=schema)


def _list_tool(rng: random.Random, noun: _Noun, parent: _Noun | None) -> ToolSpec:
    verb = rng.choice(
        ("list", "list", "list", "find", "search") if parent is None else ("list", "list", "find")
    )
    properties: dict[str, JSON] = {}
    if parent is not None:
        properties[parent.identifier] = _id(parent)
    required = list(properties)
    if parent is None and noun.enum is not None:
        properties[noun.enum[0]] = _enum(noun)
    where = f" of a {parent.singular}" if parent is not None else ""
    return _tool(
        f"{verb}_{noun.plural}", f"{verb.capitalize()} the {noun.plural}{where}.", properties, required
    )


def _create_tool(rng: random.Random, noun: _Noun, parent: _Noun | None) -> ToolSpec:
    verb = rng.choice(("add", "create", "add", "create", "register"))
    properties: dict[str, JSON] = {}
    if parent is not None:
        properties[parent.identifier] = _id(parent)
    properties[noun.label] = {
        "type": "string",
        "description": f"{noun.label} of the {noun.singular}",
        "examples": _labels(rng),
    }
    if noun.enum is not None:
        properties[noun.enum[0]] = _enum(noun)
    if noun.person is not None:
        properties[noun.person] = {"type": "string", "description": noun.person, "examples": _persons(rng)}
    elif noun.date is not None:
        properties[noun.date] = _date(noun)
    if noun.number is not None:
        properties[noun.number] = _number(noun)
    return _tool(f"{verb}_{noun.singular}", f"{verb.capitalize()} a {noun.singular}.", properties)


def _changes(rng: random.Random, noun: _Noun) -> list[ToolSpec]:
    """Return tools that change a row: a lifecycle verb, an update, a removal."""
    one = {noun.identifier: _id(noun)}
    tools = []
    verb = rng.choice(("close", "complete", "approve", "cancel", "archive"))
    tools.append(_tool(f"{verb}_{noun.singular}", f"{verb.capitalize()} a {noun.singular}.", dict(one)))
    if noun.number is not None:
        tools.append(
            _tool(
                f"update_{noun.singular}",
                f"Change the {noun.number.replace('_', ' ')} of a {noun.singular}.",
                {**one, noun.number: _number(noun)},
            )
        )
    elif noun.date is not None and noun.person is None:
        tools.append(
            _tool(
                f"reschedule_{noun.singular}",
                f"Move a {noun.singular} to another day.",
                {**one, noun.date: _date(noun)},
            )
        )
    if rng.random() < 0.5:
        verb = rng.choice(("delete", "remove"))
        tools.append(_tool(f"{verb}_{noun.singular}", f"{verb.capitalize()} a {noun.singular}.", dict(one)))
    return tools


def _id(noun: _Noun) -> JSON:
    return {"type": "string", "description": f"the {noun.singular}"}


def _enum(noun: _Noun) -> JSON:
    assert noun.enum is not None
    return {
        "type": "string",
        "description": f"{noun.enum[0]} of the {noun.singular}",
        "enum": list(noun.enum[1]),
    }


def _number(noun: _Noun) -> JSON:
    assert noun.number is not None
    words = noun.number.replace("_", " ")
    return {"type": "integer", "description": f"{words} of the {noun.singular}", "minimum": 1, "maximum": 60}


def _date(noun: _Noun) -> JSON:
    assert noun.date is not None
    return {"type": "string", "format": "date", "description": noun.date.replace("_", " ")}


def _labels(rng: random.Random) -> list[str]:
    first, second = rng.sample(_ADJECTIVES, 12), rng.sample(_WORDS, 12)
    return [f"{a.capitalize()} {b.capitalize()}" for a, b in zip(first, second, strict=True)]


def _persons(rng: random.Random) -> list[str]:
    first, last = rng.sample(_FIRST_NAMES, 10), rng.sample(_LAST_NAMES, 10)
    return [f"{a} {b}" for a, b in zip(first, last, strict=True)]
