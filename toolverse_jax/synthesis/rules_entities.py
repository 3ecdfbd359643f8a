"""Third pass of the rules author: entity drafts become entities with generators and identifiers."""

from __future__ import annotations

import dataclasses
from typing import Any

from toolverse_jax.environment.spec import (
    Choices,
    Entity,
    FieldSpec,
    FieldType,
    Generator,
    IdScheme,
    Lifecycle,
    ValueKind,
)
from toolverse_jax.synthesis import packs
from toolverse_jax.synthesis.lexicon import split_name
from toolverse_jax.synthesis.rules_drafts import NAME_WORDS, Drafts, EntityDraft, FieldDraft, normal
from toolverse_jax.synthesis.rules_fields import is_date, label_of
from toolverse_jax.synthesis.rules_lifecycle import STATUS_NAMES, LifecycleDraft, draft_lifecycle

POPULATION = (3, 4)
ID_LENGTH = 4
CREATED_AT = "created_at"
_LISTED = 2
"""Most fields a list shows besides identifier, label and references, where a row can be read alone."""
_LONG_TEXTS = frozenset("description content body notes text details prompt template".split())


@dataclasses.dataclass(frozen=True)
class BuiltEntity:
    """An entity with what the operations need to know about it."""

    entity: Entity
    lifecycle: LifecycleDraft | None
    toggles: dict[str, tuple[str, bool]]
    """Transition verb -> (boolean field, value), for things that are switched rather than moved."""


def build_entities(drafts: Drafts, alive: list[EntityDraft]) -> dict[str, BuiltEntity]:
    """Return the entities by name, in the order of their first tool."""
    prefixes = _prefixes([draft.key for draft in alive])
    built = {}
    for draft in alive:
        readable = any(
            tool.problem is None and tool.entity is draft and tool.verb == "get" for tool in drafts.tools
        )
        creatable = any(
            tool.problem is None and tool.entity is draft and tool.verb == "create" for tool in drafts.tools
        )
        built[draft.name] = _build(draft, prefixes[draft.name], readable=readable, creatable=creatable)
    return built


def _build(draft: EntityDraft, prefix: str, *, readable: bool, creatable: bool) -> BuiltEntity:
    label = label_of(draft)
    lifecycle, status, toggles = _lifecycle(draft)
    fields = [
        build_field(field, draft, is_label=field is label, creatable=creatable)
        for field in draft.fields.values()
        if field.name != status
    ]
    if lifecycle is not None and status is not None:
        fields.append(_status_field(status, lifecycle, draft))
    if not creatable:
        have = {normal(field.name) for field in fields}
        fields += [field for field in packs.profile(draft.key) if normal(field.name) not in have]
    label_name = label.name if label is not None else None
    fields.sort(key=lambda field: (field.name != label_name, field.type != "ref"))
    if readable:
        fields = _hide_details(fields, label_name, status, draft, creatable=creatable)
    integers = bool(draft.id_types) and draft.id_types <= {"integer", "number"}
    id_name = draft.id_name
    if any(field.name == id_name for field in fields):
        id_name = "id" if all(field.name != "id" for field in fields) else f"{draft.name}_ref"
    entity = Entity(
        name=draft.name,
        plural=draft.plural if draft.plural != draft.name else f"{draft.name}_list",
        fields=tuple(fields),
        id_name=id_name,
        id_scheme=IdScheme(
            prefix="" if integers else prefix, length=ID_LENGTH, type="integer" if integers else "string"
        ),
        label_field=label_name,
        lifecycle=None
        if lifecycle is None or status is None
        else Lifecycle(field=status, transitions=lifecycle.transitions),
        population=POPULATION,
    )
    return BuiltEntity(entity, lifecycle, toggles)


def on_delete(entity: str, built: dict[str, BuiltEntity]) -> str:
    """Return what deleting a row does to those that point to it: parts go with the whole."""
    pointing = [f for b in built.values() for f in b.entity.fields if f.ref == entity]
    if pointing and all(not field.nullable for field in pointing):
        return "cascade"
    return "nullify" if pointing and all(field.nullable for field in pointing) else "restrict"


def _prefixes(keys: list[tuple[str, ...]]) -> dict[str, str]:
    """Return a short prefix for every entity, one letter where that is enough to tell them apart."""
    taken: set[str] = set()
    prefixes = {}
    for key in keys:
        word = "".join(key)
        tries = [word[:size] for size in range(1, len(word) + 1)]
        prefix = next((each for each in tries if each not in taken), word)
        taken.add(prefix)
        prefixes["_".join(key)] = prefix
    return prefixes


# --- fields -----------------------------------------------------------------------------------


def build_field(field: FieldDraft, draft: EntityDraft, *, is_label: bool, creatable: bool) -> FieldSpec:
    """Return the specification of a field.

    A field that a creating call may leave out is nullable or has a default; so is one that no
    creating call mentions.
    """
    schema = field.schema
    optional = creatable and not (field.in_create and field.required)
    description = str(schema.get("description", ""))
    if field.ref is not None:
        return FieldSpec(
            name=field.name, type="ref", ref=field.ref, nullable=optional, description=description
        )
    kind = field_type(field)
    default = schema.get("default") if optional else None
    if optional and default is None and kind == "boolean":
        default = False
    named = normal(field.name) in NAME_WORDS or field.name == draft.natural_key
    return FieldSpec(
        name=field.name,
        type=kind,
        description=description,
        enum=tuple(schema["enum"]) if kind == "enum" else None,
        unique=is_label and named,
        nullable=optional and default is None,
        default=default,
        generator=field_generator(field, draft, kind, is_label=is_label),
    )


def field_type(field: FieldDraft) -> FieldType:
    """Return the type of a field from its schema."""
    schema = field.schema
    kind = schema.get("type", "string" if not schema or "enum" in schema else "json")
    if schema.get("enum"):
        return "enum"
    if is_date(field):
        return "datetime" if schema.get("format") == "date-time" else "date"
    return kind if kind in ("string", "integer", "number", "boolean", "array", "object") else "json"  # type: ignore[return-value]


def field_generator(
    field: FieldDraft, draft: EntityDraft, kind: FieldType, *, is_label: bool
) -> Generator | None:
    """Return how rows of the start state get their values."""
    schema = field.schema
    if kind == "enum" or (field.variant and not is_label):
        return None
    if (
        kind == "string"
        and isinstance(schema.get("default"), str)
        and not schema.get("examples")
        and not is_label
    ):
        return Choices(values=(schema["default"],))
    examples = [value for value in schema.get("examples") or () if _fits(value, kind)]
    if len(examples) > 1:
        return Choices(values=tuple(examples))
    if kind in ("date", "datetime"):
        return packs.date_generator(field.name)
    if kind in ("integer", "number"):
        bounded = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"} & set(schema)
        known = packs.value_generator(field.name, kind)
        return packs.number_generator(schema) if bounded or known is None else known
    if kind == "boolean":
        return packs.value_generator(field.name, kind)
    if kind == "string":
        return _text_generator(field, draft, is_label=is_label)
    if kind == "array" and (schema.get("items") or {}).get("type", "string") == "string":
        return Choices(values=(["garden"], ["office", "later"], ["travel"], ["home", "urgent"]))
    return Choices(values=([],)) if kind == "array" else Choices(values=({},)) if kind == "object" else None


def _text_generator(field: FieldDraft, draft: EntityDraft, *, is_label: bool) -> Generator:
    words = split_name(field.name)
    named = words[-1] in (*NAME_WORDS, "subject", "headline", "summary")
    if named and (is_label or words[-1] in NAME_WORDS):
        about = words[:-1] if len(words) > 1 else draft.key
        title = packs.title_generator(about) or packs.title_generator(draft.key)
        return title or packs.generic_title(draft.key)
    known = packs.value_generator(field.name, "string")
    if known is not None:
        return known
    return packs.generic_title(draft.key) if is_label else ValueKind(value="word")


def _fits(value: Any, kind: FieldType) -> bool:
    if kind == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if kind == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "string":
        return isinstance(value, str)
    return kind not in ("date", "datetime") or isinstance(value, str)


# --- states -----------------------------------------------------------------------------------


def _lifecycle(draft: EntityDraft) -> tuple[LifecycleDraft | None, str | None, dict[str, tuple[str, bool]]]:
    """Return the lifecycle with its field, and the verbs that switch a boolean field instead."""
    toggles = {verb: switch for verb in draft.transitions if (switch := _switch(draft, verb)) is not None}
    verbs = [verb for verb in draft.transitions if verb not in toggles]
    if not verbs:
        return None, None, toggles
    field = next((f for f in draft.fields.values() if normal(f.name) in STATUS_NAMES), None)
    states = [state for state in (field.schema.get("enum") or ()) if isinstance(state, str)] if field else []
    default = field.schema.get("default") if field else None
    lifecycle = draft_lifecycle(verbs, states, create_verbs=draft.create_verbs, default=default)
    return lifecycle, field.name if field else STATUS_NAMES[0], toggles


_SWITCHES = {
    "enable": ("enabled", True),
    "disable": ("enabled", False),
    "activate": ("active", True),
    "deactivate": ("active", False),
    "publish": ("published", True),
    "unpublish": ("published", False),
    "archive": ("archived", True),
    "unarchive": ("archived", False),
    "complete": ("completed", True),
    "reopen": ("completed", False),
    "lock": ("locked", True),
    "unlock": ("locked", False),
}


def _switch(draft: EntityDraft, verb: str) -> tuple[str, bool] | None:
    name, value = _SWITCHES.get(verb, ("", False))
    for field in draft.fields.values():
        if field.schema.get("type") == "boolean" and normal(field.name) in (name, f"is_{name}"):
            return field.name, value
    return None


def _status_field(name: str, lifecycle: LifecycleDraft, draft: EntityDraft) -> FieldSpec:
    known = draft.fields.get(name)
    # Twice the first state: most rows of a fresh episode can still be acted on.
    values = (lifecycle.initial, *lifecycle.states)
    return FieldSpec(
        name=name,
        type="enum",
        description=str(known.schema.get("description", ""))
        if known
        else f"state of the {' '.join(draft.key)}",
        enum=lifecycle.states,
        default=lifecycle.initial,
        generator=Choices(values=values),
    )


# --- what lists show --------------------------------------------------------------------------


def _hide_details(
    fields: list[FieldSpec], label: str | None, status: str | None, draft: EntityDraft, *, creatable: bool
) -> list[FieldSpec]:
    """Show some fields only where a single row is read, so that reading it tells something new."""
    plain = [field for field in fields if field.name != label and field.type != "ref"]
    filtered = {field.name for field in draft.fields.values() if field.filtered}

    def dullness(field: FieldSpec) -> tuple[bool, bool, bool, bool]:
        long = split_name(field.name)[-1] in _LONG_TEXTS or field.type in ("array", "object", "json")
        return field.name != status, long, field.name not in filtered, field.type != "enum"

    shown = sorted(plain, key=dullness)[: min(_LISTED, max(len(plain) - 1, 0))]
    if plain and len(plain) == 1 and (plain[0].name in filtered or plain[0].name == status):
        shown = plain
    if len(shown) == len(plain):
        taken = {normal(field.name) for field in fields}
        more = [field for field in packs.profile(draft.key) if normal(field.name) not in taken]
        # A new row has a time of creation, but nobody would know its other properties.
        extra = _created_at() if creatable or not more else more[0]
        fields = [*fields, extra]
    keep = {field.name for field in shown}
    return [
        field
        if field.name in keep or field.name == label or field.type == "ref"
        else field.model_copy(update={"visible_in": ("detail",)})
        for field in fields
    ]


def _created_at() -> FieldSpec:
    return FieldSpec(
        name=CREATED_AT, type="datetime", description="when it was added", generator=packs.date_generator(CREATED_AT),
        nullable=True,
    )  # fmt: skip
