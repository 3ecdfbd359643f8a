"""First pass of the rules author: what each tool acts on, and which rows its identifiers name."""

from __future__ import annotations

import dataclasses
from typing import Any

from toolverse_jax.environment.spec import ArgBinding, VerbClass
from toolverse_jax.synthesis.entities import (
    Phrase,
    Reading,
    Vocabulary,
    identifier_base,
    weak_identifier_base,
)
from toolverse_jax.synthesis.lexicon import VERBS, plural, singular, split_name

NAME_WORDS = ("name", "title", "label")
"""Fields by which people call a thing, best first."""

NATURAL_KEYS = (*NAME_WORDS, "key", "slug", "path", "subject", "username", "identifier")

_CREDENTIALS = frozenset(
    "api_key apikey token access_token auth_token api_token user_token secret secret_key password passphrase"
    " private_key user_agent connection_string credentials".split()
)
_COSMETIC = frozenset(
    "format output_format response_format verbose fields pretty raw random_string dummy lang locale timeout"
    " full_details detailed response_type include_metadata".split()
)
_LIMITS = frozenset(
    "limit max_results num_results page_size per_page items_per_page size count num results max top_n max_items"
    " hits_per_page number_of_results result_limit show first take page_limit".split()
)
_OFFSETS = frozenset("offset skip start_index start_record".split())
_PAGES = frozenset("page page_number page_no cursor page_token next_page_token after_cursor".split())
_QUERIES = frozenset(
    "query q search keyword keywords text term terms search_term search_query search_text phrase pattern"
    " search_string filter".split()
)
AMOUNTS = frozenset("amount quantity by delta count value units number sum qty hours".split())


@dataclasses.dataclass
class FieldDraft:
    """What the tools say about one field of an entity."""

    name: str
    schema: dict[str, Any]
    """Merged schema of the parameters that stand for it."""
    creators: set[str] = dataclasses.field(default_factory=set)
    """Creating tools that set it."""
    required: bool = True
    """Every creating tool demands it."""
    variant: bool = False
    """Only some of the creating tools know it: a property of some rows, not of all."""
    updated: bool = False
    filtered: bool = False
    ref: str | None = None
    """Name of the entity it points to."""

    @property
    def in_create(self) -> bool:
        return bool(self.creators)


@dataclasses.dataclass
class EntityDraft:
    """What the tools say about one kind of thing."""

    key: Phrase
    fields: dict[str, FieldDraft] = dataclasses.field(default_factory=dict)
    id_names: list[str] = dataclasses.field(default_factory=list)
    """Parameters that name a row by identifier, in order of appearance."""
    id_types: set[str] = dataclasses.field(default_factory=set)
    natural_key: str | None = None
    """Field by which callers name a row, where they do not use an identifier."""
    transitions: list[str] = dataclasses.field(default_factory=list)
    """Transition verbs of its tools."""
    create_verbs: list[str] = dataclasses.field(default_factory=list)

    @property
    def name(self) -> str:
        return "_".join(self.key)

    @property
    def plural(self) -> str:
        return "_".join((*self.key[:-1], plural(self.key[-1])))

    @property
    def id_name(self) -> str:
        exact = [name for name in self.id_names if same_noun(identifier_base(name) or (), self.key)]
        names = exact or [name for name in self.id_names if identifier_base(name) == ()]
        return max(names, key=names.count) if names else f"{self.name}_id"

    def ref_to(self, entity: str) -> FieldDraft | None:
        """Return the first field that points to an entity."""
        return next((field for field in self.fields.values() if field.ref == entity), None)


@dataclasses.dataclass
class ToolDraft:
    """What one tool does, as far as it is understood."""

    reading: Reading
    verb: VerbClass = "other"
    entity: EntityDraft | None = None
    own: str | None = None
    """Parameter that names the row it acts on."""
    own_is_key: bool = False
    """That parameter holds a natural key rather than an identifier."""
    references: dict[str, EntityDraft] = dataclasses.field(default_factory=dict)
    """Parameters that name rows of other entities."""
    scopes: list[str] = dataclasses.field(default_factory=list)
    """Those of `references` that only say where the row is found, like a path."""
    columns: dict[str, str] = dataclasses.field(default_factory=dict)
    """Parameter of `references` -> field of the tool's entity that holds the reference."""
    args: dict[str, ArgBinding] = dataclasses.field(default_factory=dict)
    unknown: list[str] = dataclasses.field(default_factory=list)
    """Optional parameters that would have no effect."""
    pages: list[str] = dataclasses.field(default_factory=list)
    others: list[EntityDraft] = dataclasses.field(default_factory=list)
    """All entities but its own."""
    problem: tuple[str, str] | None = None
    """Why it cannot be simulated: (reason code, clause)."""

    @property
    def name(self) -> str:
        return self.reading.tool.name

    @property
    def properties(self) -> dict[str, dict[str, Any]]:
        return self.reading.tool.properties

    def rest(self) -> list[str]:
        """Return the parameters that have no meaning yet."""
        known = {self.own, *self.references, *self.args}
        return [name for name in self.properties if name not in known]

    def fail(self, reason: str, clause: str) -> None:
        """Record the first reason why the tool cannot be simulated."""
        if self.problem is None:
            self.problem = (reason, clause)


def normal(parameter: str) -> str:
    """Return a parameter name in snake case."""
    return "_".join(split_name(parameter))


def is_quiet(parameter: str) -> bool:
    """Tell whether a parameter is a credential or only changes how an answer looks."""
    name = normal(parameter)
    return name in _CREDENTIALS or name in _COSMETIC or name.endswith(("_token", "_api_key"))


def paging_role(parameter: str) -> str | None:
    """Return `limit`, `offset` or `page` for parameters that cut a list."""
    name = normal(parameter)
    if name in _LIMITS:
        return "limit"
    if name in _OFFSETS:
        return "offset"
    return "page" if name in _PAGES else None


def is_query(parameter: str) -> bool:
    """Tell whether a parameter is free text to search for."""
    return normal(parameter) in _QUERIES


class Drafts:
    """The entities and tools of a set, after their identifiers are understood."""

    def __init__(self, readings: list[Reading]) -> None:
        self.vocabulary = Vocabulary(readings)
        self.entities: dict[str, EntityDraft] = {}
        for key in self.vocabulary.entities:
            draft = EntityDraft(key)
            self.entities[draft.name] = draft
        self._aliases: dict[str, EntityDraft] = {}
        for reading in readings:
            # Twice: `get_chat(chat_jid)` tells what `list_messages(chat_jid)` refers to.
            self._find_alias(reading)
        self.tools = [self._draft(reading) for reading in readings]
        self._find_scopes()

    def entity(self, key: Phrase | None) -> EntityDraft | None:
        return None if key is None else self.entities.get("_".join(key))

    # --- one tool -----------------------------------------------------------------------------

    def _draft(self, reading: Reading) -> ToolDraft:
        draft = ToolDraft(reading)
        if reading.action == "unsupported":
            draft.fail(
                reading.reason, f"'{reading.verb or reading.head[-1]}' is nothing that rows can answer"
            )
            return draft
        draft.entity = self.entity(self.vocabulary.of_head(reading.head))
        if draft.entity is None and reading.action != "aggregate":
            draft.fail("unknown_meaning", "its name has no noun")
            return draft
        self._name_rows(draft)
        self._decide_verb(draft)
        if draft.problem is None:
            self._name_by_key(draft)
        return draft

    def _find_alias(self, reading: Reading) -> None:
        """Learn identifiers that have a name of their own: `nct_id` in `get_trial(nct_id)`."""
        entity = self.entity(self.vocabulary.of_head(reading.head))
        required = reading.tool.required
        if entity is None or reading.plural or reading.action not in _NEED_ROW:
            return
        bases = [identifier_base(name) for name in reading.tool.properties]
        if any(
            base is not None and (base == () or self.vocabulary.of_base(base) == entity.key) for base in bases
        ):
            return
        foreign = [
            name
            for name in required
            if _is_foreign_identifier(name) and self.vocabulary.of_base(identifier_base(name) or ()) is None
        ]
        if len(foreign) == 1:
            self._aliases.setdefault(foreign[0], entity)

    def _name_rows(self, draft: ToolDraft) -> None:
        """Find the parameters that hold identifiers, and the one that names the row acted on."""
        entity = draft.entity
        required = draft.reading.tool.required
        for name, schema in draft.properties.items():
            base = identifier_base(name)
            if name in self._aliases:
                target, base = self._aliases[name], self._aliases[name].key
            elif base is None:
                continue
            else:
                target = entity if base == () else self.entity(self.vocabulary.of_base(base))
            if target is None:
                continue
            if schema.get("type") == "array":
                if name in required:
                    draft.fail("unknown_argument", f"it takes many identifiers at once in '{name}'")
                continue
            exact = base == () or same_noun(base, target.key)
            if target is entity and draft.own is None and exact:
                draft.own = name
            elif target is entity and not exact and draft.own is None and name in required:
                draft.own = name
            else:
                draft.references[name] = target
        for name in required:
            if name in draft.references or name == draft.own or identifier_base(name) is not None:
                continue
            target = self.entity(self.vocabulary.of_base(weak_identifier_base(name) or ()))
            weak = target is not None and same_noun(weak_identifier_base(name) or (), target.key)
            if target is None or not weak or draft.properties[name].get("type") != "string":
                continue
            if target is not entity and normal(name) not in target.fields and not _is_label(name, entity):
                draft.references[name] = target
            elif target is entity and draft.own is None and draft.reading.action in _NEED_ROW:
                draft.own = name

    def _decide_verb(self, draft: ToolDraft) -> None:
        action, reading = draft.reading.action, draft.reading
        if action == "" and (draft.entity is None or reading.head != draft.entity.key):
            # `planet(id)` reads a planet, but `ponder_planet(id)` does something nobody knows.
            draft.fail("unknown_meaning", "its name has no known verb")
        if action in ("get", ""):
            if draft.own is None and reading.plural and reading.head[-1] not in _SINGLE_NOUNS:
                action = "list"
            elif draft.own is not None or action == "get":
                action = "get"
            else:
                draft.fail("unknown_meaning", "its name has no verb")
        if action == "transition" and draft.own is None and reading.verb in ("start", "return", "ship"):
            action = "create" if reading.tool.required else action
        if action == "adjust" and not any(_is_amount(n, s) for n, s in draft.properties.items()):
            action = VERBS.get(reading.verb, "unsupported")
        if (
            action == "create"
            and draft.own is not None
            and not draft.references
            and len(draft.properties) == 1
        ):
            draft.fail("unknown_meaning", f"'{reading.verb}' of one existing row has no known effect")
        if action == "unsupported":
            draft.fail("unknown_meaning", f"'{reading.verb}' has no known effect")
            return
        if set(reading.modifiers) & {"random", "next", "trending", "popular", "top", "daily"}:
            draft.fail("unknown_meaning", f"'{' '.join(reading.modifiers)}' chooses rows in an unknown way")
        draft.verb = action or "other"  # type: ignore[assignment]

    def _name_by_key(self, draft: ToolDraft) -> None:
        """Where no identifier names the row, look for a natural key: a name, a title, a path."""
        entity, required = draft.entity, draft.reading.tool.required
        for name, target in draft.references.items():
            if target is not entity:
                target.id_names.append(name)
                target.id_types.add(str(draft.properties[name].get("type", "string")))
        if entity is None:
            return
        if draft.own is not None:
            if draft.own not in required and draft.verb != "create":
                draft.fail(
                    "unknown_argument",
                    f"'{draft.own}' may be left out, and then it is not known which row is meant",
                )
            if draft.verb == "create":
                entity.natural_key = draft.own
            entity.id_names.append(draft.own)
            entity.id_types.add(str(draft.properties[draft.own].get("type", "string")))
            return
        if draft.verb not in _NEED_ROW or any(
            identifier_base(name) == entity.key for name in draft.properties
        ):
            return
        keys = [name for name in required if self._may_name(name, entity, draft)]
        if keys:
            draft.own, draft.own_is_key = keys[0], True
            entity.natural_key = entity.natural_key or _key_field(keys[0], entity)
        elif draft.verb != "get" and draft.verb != "update":
            draft.fail("unknown_meaning", "it does not say which row it changes")

    def _may_name(self, name: str, entity: EntityDraft, draft: ToolDraft) -> bool:
        if draft.properties[name].get("type") != "string" or name in draft.references:
            return False
        words = split_name(name)
        words = words[len(entity.key) :] if words[: len(entity.key)] == entity.key else words
        return not words or "_".join(words) in NATURAL_KEYS

    # --- all tools ----------------------------------------------------------------------------

    def _find_scopes(self) -> None:
        """Tell parameters that only say where a row is from those that are a property of it.

        In `get_page(space_id, page_id)` the space is part of the page's address. Where a page is
        found through a space and an author through a page, `(space_id, page_id)` in a tool of
        authors is one address: only the page is a property of the author.
        """
        for draft in self.tools:
            if draft.entity is None or draft.problem is not None:
                continue
            required = draft.reading.tool.required
            for name, target in draft.references.items():
                if name not in required or target is draft.entity:
                    continue
                if draft.own is not None and draft.verb in ("get", "delete", "transition", "adjust"):
                    draft.scopes.append(name)
                elif any(
                    other is not target
                    and other is not draft.entity
                    and n in required
                    and self._inside(other, target)
                    for n, other in draft.references.items()
                ):
                    draft.scopes.append(name)
                elif draft.verb == "update" and draft.own is not None and self._addresses(draft, target):
                    draft.scopes.append(name)

    def _inside(self, child: EntityDraft, parent: EntityDraft) -> bool:
        """Tell whether rows of one entity are listed or read only within a row of another."""
        return any(
            draft.entity is child
            and draft.verb in ("list", "get", "search")
            and any(t is parent and n in draft.reading.tool.required for n, t in draft.references.items())
            for draft in self.tools
        )

    def _addresses(self, draft: ToolDraft, target: EntityDraft) -> bool:
        if draft.reading.verb in ("move", "assign", "reassign", "transfer"):
            return False
        return (
            any(
                other is not draft
                and other.entity is draft.entity
                and other.own is not None
                and other.verb in ("get", "delete")
                and target in other.references.values()
                for other in self.tools
            )
            or (len(draft.rest()) > 0 and self._inside(draft.entity, target))
            if draft.entity
            else False
        )


_SINGLE_NOUNS = frozenset("setting preference config configuration option".split())
"""Nouns that stand for one record even in plural."""
_NEED_ROW = ("get", "update", "delete", "transition", "adjust")


def same_noun(base: Phrase, key: Phrase) -> bool:
    """Tell whether the noun of a parameter is an entity's, in singular, plural or abbreviated."""
    return (bool(base) and (*base[:-1], singular(base[-1])) == key) or (
        len(base) == 1 and base[0] != key[-1] and _short(base[0], key)
    )


def _short(word: str, key: Phrase) -> bool:
    return word == "".join(part[0] for part in key) or (len(key) == 1 and key[0].startswith(word))


def _is_foreign_identifier(name: str) -> bool:
    words = split_name(name)
    return identifier_base(name) is not None or (
        len(words) > 1 and words[-1] in ("slug", "key", "jid", "uid")
    )


def _is_label(name: str, entity: EntityDraft | None) -> bool:
    return entity is not None and normal(name) in NAME_WORDS


def _is_amount(name: str, schema: dict[str, Any]) -> bool:
    return schema.get("type") in ("integer", "number") and bool(set(split_name(name)) & AMOUNTS)


def _key_field(name: str, entity: EntityDraft) -> str:
    words = split_name(name)
    if words[: len(entity.key)] == entity.key and len(words) > len(entity.key):
        return "_".join(words[len(entity.key) :])
    return "name" if words == entity.key else name
