"""The words of one environment: nouns of entities, how rows relate, verbs of tools, attributes of fields.

All of it is read off the specification and the tools' own descriptions, once per environment.
"""

from __future__ import annotations

import re
from collections import Counter

from toolverse_jax.environment.spec import Adjust, Entity, EnvSpec, FieldSpec, Operation, Transition
from toolverse_jax.gust.attribute_rules import make_attribute
from toolverse_jax.gust.attributes import PERSON_WORDS, Attribute, head_noun
from toolverse_jax.gust.phrases import plural, singular
from toolverse_jax.gust.skeletons import DEFAULT_VERBS, Phrase, Skeleton, parse_description, spoken_verb

_READ_VERBS = ("list", "search")
_LOCATIVES = frozenset({"at", "in", "inside", "on", "under"})


class Wording:
    """Words and phrases of one environment.

    Args:
        spec: the specification.
    """

    def __init__(self, spec: EnvSpec) -> None:
        self.spec = spec
        self.operations: dict[str, Operation] = {op.tool: op for op in spec.operations}
        self.entities: dict[str, Entity] = {entity.name: entity for entity in spec.entities}
        self.skeletons: dict[str, Skeleton] = {
            tool.name: parse_description(tool.description) for tool in spec.tools
        }
        self.schemas = {tool.name: tool.input_schema.get("properties", {}) for tool in spec.tools}
        self.required = {tool.name: tuple(tool.input_schema.get("required", ())) for tool in spec.tools}
        self.verbs = {tool: self._verb(op) for tool, op in self.operations.items()}
        self._nouns = {name: self._find_nouns(name) for name in self.entities}
        self._relations = self._find_relations()
        self._attributes: dict[tuple[str, str], Attribute] = {}

    def _verb(self, operation: Operation) -> str:
        verb = spoken_verb(self.skeletons[operation.tool], operation.tool, operation.verb)
        if verb == DEFAULT_VERBS.get(operation.verb):
            # A lifecycle names its verbs itself.
            moved = next((step.verb for step in operation.steps if isinstance(step, Transition)), verb)
            return moved.replace("_", " ")
        return verb

    # --- nouns --------------------------------------------------------------------------------

    def noun(self, entity: str) -> str:
        """Short noun: `plan`."""
        return self._nouns[entity][0]

    def full_noun(self, entity: str) -> str:
        """Noun as the descriptions introduce it: `watering plan`."""
        return self._nouns[entity][1]

    def plural(self, entity: str) -> str:
        return plural(self.noun(entity))

    def is_person(self, entity: str) -> bool:
        return self.noun(entity).rpartition(" ")[2] in PERSON_WORDS

    def entity_of_noun(self, phrase: Phrase) -> str | None:
        """Return the entity that a phrase of a description names."""
        noun = singular(phrase.noun).lower()
        for name, (short, full) in self._nouns.items():
            if noun in (short, full) or noun.rpartition(" ")[2] == short:
                return name
        return None

    def _find_nouns(self, name: str) -> tuple[str, str]:
        base = head_noun(name)
        last = base.rpartition(" ")[2]
        seen: Counter[str] = Counter()
        for skeleton in self.skeletons.values():
            for phrase in (skeleton.object, *skeleton.phrases):
                if phrase is not None and singular(phrase.noun).lower().endswith(last):
                    seen[singular(phrase.noun).lower()] += 1
        said_alone = base in seen or any(
            re.search(rf"\b{re.escape(base)}\b", str(schema.get("description", "")))
            for schemas in self.schemas.values()
            for schema in schemas.values()
            if isinstance(schema, dict)
        )
        longer = [
            noun for noun, count in seen.items() if noun != base and len(noun.split()) <= 3 and count > 1
        ]
        full = max(longer, key=lambda noun: (seen[noun], len(noun)), default=base)
        if seen[base] > seen[full]:
            full = base
        return (base if said_alone or full == base else full), full

    # --- relations ----------------------------------------------------------------------------

    def relation(self, child: str, parent: str) -> str:
        """Words between a row and the row it belongs to: `booked at` in `the stays booked at a berth`."""
        return self._relations.get((child, parent), "of")

    def parent_fields(self, entity: str) -> dict[str, str]:
        """Reference fields of an entity: field -> entity pointed to."""
        return {f.name: f.ref for f in self.entities[entity].fields if f.type == "ref" and f.ref}

    def _find_relations(self) -> dict[tuple[str, str], str]:
        found: dict[tuple[str, str], str] = {}
        for tool, operation in self.operations.items():
            skeleton = self.skeletons[tool]
            if operation.entity is None or operation.verb not in _READ_VERBS or skeleton.object is None:
                continue
            for phrase in skeleton.phrases:
                parent = self.entity_of_noun(phrase)
                if parent and parent != operation.entity:
                    found.setdefault((operation.entity, parent), phrase.link)
        for tool, operation in self.operations.items():
            # "create a bed in a greenhouse" says more than "the beds of a greenhouse"
            if operation.verb != "create" or operation.entity is None:
                continue
            for phrase in self.skeletons[tool].phrases:
                parent = self.entity_of_noun(phrase)
                pair = (operation.entity, parent or "")
                if parent and phrase.preposition in _LOCATIVES and found.get(pair, "of") == "of":
                    found[pair] = phrase.link
        return found

    # --- fields -------------------------------------------------------------------------------

    def attribute(self, entity: str, field: str) -> Attribute:
        """Return how to speak of a field of an entity.

        Raises:
            KeyError: there is no such entity or field.
        """
        key = (entity, field)
        if key not in self._attributes:
            spec = self.entities[entity]
            text, link = self._describe(spec, spec.field(field))
            self._attributes[key] = make_attribute(
                spec.field(field), text, self.noun(entity), label=spec.label_field == field, link=link
            )
        return self._attributes[key]

    def argument_field(self, tool: str, parameter: str) -> tuple[str, str] | None:
        """Return the entity and field that an argument stands for."""
        operation = self.operations[tool]
        binding = operation.args.get(parameter)
        if binding is None:
            return None
        entity = binding.entity or operation.entity
        field = binding.field
        if binding.role == "amount" and field is None:
            field = next((step.field for step in operation.steps if isinstance(step, Adjust)), None)
        if entity is None or field is None or entity not in self.entities:
            return None
        if all(candidate.name != field for candidate in self.entities[entity].fields):
            return None
        return entity, field

    def description(self, tool: str, parameter: str) -> str:
        """Return the description of a parameter, empty if it has none."""
        schema = self.schemas[tool].get(parameter, {})
        return str(schema.get("description", "")) if isinstance(schema, dict) else ""

    def _describe(self, entity: Entity, field: FieldSpec) -> tuple[str, str]:
        """Return the description of a field and the preposition a description puts before it."""
        text, link = field.description, ""
        for tool, operation in self.operations.items():
            for parameter, binding in operation.args.items():
                if binding.role != "field" or binding.field != field.name:
                    continue
                if (binding.entity or operation.entity) != entity.name:
                    continue
                described = self.description(tool, parameter)
                if operation.verb == "create":
                    text = described or text
                    link = link or self._link(tool, parameter, described)
                else:
                    text = text or described
        return text, link

    def _link(self, tool: str, parameter: str, text: str) -> str:
        heads = _value_nouns(parameter, text)
        for phrase in self.skeletons[tool].phrases:
            if phrase.head in heads and self.entity_of_noun(phrase) is None:
                return "for" if phrase.preposition == "of" else phrase.preposition
        return ""

    def matches_argument(self, phrase: Phrase, tool: str, parameter: str) -> bool:
        """Return whether a phrase of the tool's description stands for an argument's value."""
        return phrase.head in _value_nouns(parameter, self.description(tool, parameter))


def _value_nouns(parameter: str, text: str) -> set[str]:
    """Return the nouns a description may use for an argument: its name, and what its text is about."""
    nouns = {singular(head_noun(parameter).rpartition(" ")[2])}
    for pattern in (
        r"name of (?:the |an? )?(\w+)",
        r"^(?:the |an? )?(\w+) that\b",
        r"number of (\w+)",
        r"^(?:new )?(day|date)\b",
        r"^(\w+) to\b",
    ):
        match = re.search(pattern, text.lower())
        if match:
            nouns.add(singular(match.group(1)))
    return nouns
