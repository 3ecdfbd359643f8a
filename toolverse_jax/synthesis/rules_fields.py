"""Second pass of the rules author: the fields of every entity, and what each parameter means."""

from __future__ import annotations

from typing import Any, Literal

from toolverse_jax.environment.spec import ArgBinding
from toolverse_jax.synthesis import packs
from toolverse_jax.synthesis.entities import identifier_base
from toolverse_jax.synthesis.lexicon import plural, split_name
from toolverse_jax.synthesis.rules_drafts import (
    NAME_WORDS,
    Drafts,
    EntityDraft,
    FieldDraft,
    ToolDraft,
    is_query,
    is_quiet,
    normal,
    paging_role,
)

Match = Literal["exact", "ci", "contains", "ge", "le"]

_LOW_MARKS = frozenset("min minimum from after since start gte newer_than lower".split())
_HIGH_MARKS = frozenset("max maximum to before until end lte older_than upper".split())
_FLAG_STARTS = frozenset("include with show only has use exclude skip force".split())
_SWITCH_STARTS = frozenset("force skip overwrite dry validate restart refresh reload wait".split())
_TEXTS = ("content", "text", "body", "message", "description")
_SORTING = frozenset("sort order orderby sortby direction desc asc ordering sorting".split())
_MERGED_KEYS = ("enum", "examples", "format", "minimum", "maximum", "default", "items")
_SIMPLE = ("string", "integer", "number", "boolean")


def collect_fields(drafts: Drafts) -> None:
    """Give every entity its fields, and every understood parameter its meaning."""
    for draft in drafts.tools:
        draft.others = [entity for entity in drafts.entities.values() if entity is not draft.entity]
        if draft.problem is None and draft.entity is not None and draft.verb in ("create", "update"):
            _written(draft, draft.entity)
    for draft in drafts.tools:
        if draft.problem is None and draft.entity is not None:
            _references(draft, draft.entity)
    for draft in drafts.tools:
        if (
            draft.problem is None
            and draft.entity is not None
            and draft.verb in ("list", "search", "aggregate")
        ):
            _filtered(draft, draft.entity)
    for draft in drafts.tools:
        if draft.problem is None and draft.entity is not None:
            _leftovers(draft)
    for entity in drafts.entities.values():
        _require(entity, drafts)


def _require(entity: EntityDraft, drafts: Drafts) -> None:
    """A field that only some of the creating tools mention may be absent."""
    creators = {
        d.name for d in drafts.tools if d.entity is entity and d.verb == "create" and d.problem is None
    }
    for field in entity.fields.values():
        field.variant = bool(field.creators) and field.creators < creators
        field.required = field.required and creators <= field.creators


def _written(draft: ToolDraft, entity: EntityDraft) -> None:
    """Read the parameters of a creating or updating tool as fields."""
    required = draft.reading.tool.required
    if draft.verb == "create":
        # `add_rehearsal` is told as "Plan a rehearsal": the first word of the text may say more.
        told = split_name(draft.reading.tool.description[:40])[:1]
        entity.create_verbs += [draft.reading.verb, *told]
    names = draft.rest()
    if draft.verb == "create" and draft.own is not None:
        names = [draft.own, *names]
    stored = 0
    for name in names:
        if is_quiet(name):
            draft.args[name] = ArgBinding(role="ignored")
            continue
        schema = draft.properties[name]
        if schema.get("type") == "boolean" and split_name(name)[0] in _SWITCH_STARTS:
            continue  # it changes how the tool works, not what the thing is
        field = add_field(entity, name, schema, creating=draft.verb == "create")
        if draft.verb == "create":
            field.creators.add(draft.name)
            field.required = field.required and name in required
        else:
            field.updated = True
        draft.args[name] = ArgBinding(role="field", entity=entity.name, field=field.name)
        stored += 1
    if draft.verb == "update" and not stored and all(name in draft.scopes for name in draft.references):
        draft.fail("unknown_meaning", f"'{draft.reading.verb}' does not say what changes")


def add_field(entity: EntityDraft, parameter: str, schema: dict[str, Any], *, creating: bool) -> FieldDraft:
    """Return the field a parameter stands for, made where it is new."""
    words = split_name(parameter)
    known = {normal(name): field for name, field in entity.fields.items()}
    candidates = ["_".join(words)]
    if len(words) > 1 and words[0] == "new":
        candidates.append("_".join(words[1:]))
    if len(words) > len(entity.key) and words[: len(entity.key)] == entity.key:
        candidates.append("_".join(words[len(entity.key) :]))
    field = next((known[each] for each in candidates if each in known), None)
    if field is None:
        name = parameter
        if candidates[-1] != candidates[0] and (candidates[-1] in NAME_WORDS or words[:1] == ("new",)):
            name = candidates[-1]
        field = FieldDraft(name=name, schema=dict(schema))
        entity.fields[name] = field
        return field
    for key in _MERGED_KEYS:
        if key in schema and (key not in field.schema or (creating and key != "enum")):
            field.schema[key] = schema[key]
    if not field.schema.get("description") and schema.get("description"):
        field.schema["description"] = schema["description"]
    return field


def _references(draft: ToolDraft, entity: EntityDraft) -> None:
    """Turn identifiers of other entities into references between rows."""
    taken: set[str] = set()
    for name, target in draft.references.items():
        if draft.verb == "get" and draft.own is None:
            draft.fail("unknown_meaning", "it does not say which row it reads")
            return
        binding = ArgBinding(role="id", entity=target.name)
        if name in draft.scopes:
            draft.args[name] = binding
            continue
        if target is entity and draft.verb in ("list", "search", "aggregate") and draft.own is None:
            same = [f for f in entity.fields.values() if f.ref == entity.name]
            if not same:
                draft.fail("unknown_meaning", f"which rows belong to '{name}' is not known")
                return
        field = _reference_field(entity, name, target, taken)
        taken.add(field.name)
        if draft.verb == "create":
            required = name in draft.reading.tool.required
            field.creators.add(draft.name)
            field.required = field.required and required
        elif draft.verb == "update":
            field.updated = True
        elif draft.verb in ("list", "search", "aggregate"):
            field.filtered = True
        draft.columns[name] = field.name
        if field.name == target.id_name:
            binding = binding.model_copy(update={"field": field.name})
        draft.args[name] = binding


def _reference_field(entity: EntityDraft, name: str, target: EntityDraft, taken: set[str]) -> FieldDraft:
    if name in entity.fields and entity.fields[name].ref == target.name:
        return entity.fields[name]
    same = [f for f in entity.fields.values() if f.ref == target.name and f.name not in taken]
    own_words = identifier_base(name)
    plain = own_words is not None and (
        own_words == () or (own_words[-1:] == target.key[-1:] and len(own_words) == len(target.key))
    )
    if same and (plain or (len(same) == 1 and not taken)):
        return same[0]
    field = FieldDraft(
        name=name if name != entity.id_name else f"{target.name}_ref", schema={}, ref=target.name
    )
    entity.fields[field.name] = field
    return field


# --- lists ------------------------------------------------------------------------------------


def _filtered(draft: ToolDraft, entity: EntityDraft) -> None:
    """Read the parameters of a listing tool as filters, text to search, or pages."""
    if draft.own is not None:
        draft.fail("unknown_meaning", f"a list of one row named by '{draft.own}' has no known meaning")
        return
    for name in draft.rest():
        schema = draft.properties[name]
        paging = paging_role(name)
        if is_quiet(name):
            draft.args[name] = ArgBinding(role="ignored")
        elif paging in ("limit", "offset") and schema.get("type") in ("integer", "number"):
            draft.args[name] = ArgBinding(role=paging)  # type: ignore[arg-type]
        elif paging is not None:
            draft.pages.append(name)
            draft.args[name] = ArgBinding(role="ignored")
        elif is_query(name) and schema.get("type") == "string" and find_field(entity, name) is None:
            searched = _searched(entity)
            draft.args[name] = ArgBinding(
                role="query", entity=entity.name, field=searched.name, match="contains"
            )
        else:
            _filter(draft, entity, name, schema)


def _searched(entity: EntityDraft) -> FieldDraft:
    """Return the field that free text is searched in: the name of a thing, or else its text."""
    label = label_of(entity)
    if label is None or split_name(label.name)[-1] in NAME_WORDS:
        return label or _named(entity)
    texts = [field for word in _TEXTS for field in entity.fields.values() if normal(field.name) == word]
    return texts[0] if texts else label


def _filter(draft: ToolDraft, entity: EntityDraft, name: str, schema: dict[str, Any]) -> None:
    words = set(split_name(name))
    if words & _SORTING and find_field(entity, name) is None:
        return
    if schema.get("type") not in _SIMPLE:
        return
    if names_other(draft, name):
        return
    edge = _range(entity, name, schema)
    if edge is not None:
        field, match = edge
        draft.args[name] = ArgBinding(role="filter", entity=entity.name, field=field.name, match=match)
        field.filtered = True
        return
    field = find_field(entity, name) or _listing_field(entity, name, schema)
    if field is None and _may_be_field(name, schema):
        field = add_field(entity, name, schema, creating=False)
    if field is None:
        return
    field.filtered = True
    for key in ("enum", "examples"):
        if key in schema and key not in field.schema:
            field.schema[key] = schema[key]
    match = _match(draft, field, schema)
    role = "query" if match == "contains" and draft.verb == "search" else "filter"
    draft.args[name] = ArgBinding(role=role, entity=entity.name, field=field.name, match=match)


def names_other(draft: ToolDraft, parameter: str) -> bool:
    """Tell whether a parameter names a row of another entity by its name, as `project_name` does."""
    words = split_name(parameter)
    if draft.entity is None or words[-1] not in NAME_WORDS or len(words) < 2:
        return False
    return words[:-1] != draft.entity.key and any(words[:-1] == other.key for other in draft.others)


def _match(draft: ToolDraft, field: FieldDraft, schema: dict[str, Any]) -> Match:
    if field.schema.get("type") == "array":
        return "contains"
    if field.schema.get("type", "string") != "string" or "enum" in field.schema or "format" in field.schema:
        return "exact"
    partly = any(
        word in str(schema.get("description", "")).lower() for word in ("part", "contain", "substring")
    )
    named = normal(field.name) in NAME_WORDS or normal(field.name).endswith("name")
    return "contains" if partly or (named and draft.verb == "search") else "ci"


def _may_be_field(name: str, schema: dict[str, Any]) -> bool:
    """Tell whether a filter tells of a property that no creating tool mentions."""
    words = split_name(name)
    kind = schema.get("type")
    if words[0] in _FLAG_STARTS or identifier_base(name) is not None or kind not in _SIMPLE:
        return False
    if kind == "boolean":
        return len(words) <= 2 or words[0] == "is"
    if "enum" in schema:
        return not {"all", "any"} & {str(value).lower() for value in schema["enum"]}
    if schema.get("examples") or words[-1] in NAME_WORDS:
        return True
    return packs.value_generator(name, str(kind)) is not None


def find_field(entity: EntityDraft, parameter: str) -> FieldDraft | None:
    """Return the field of an entity that a parameter names."""
    words = split_name(parameter)
    names = ["_".join(words)]
    if len(words) > len(entity.key) and words[: len(entity.key)] == entity.key:
        names.append("_".join(words[len(entity.key) :]))
    for field in entity.fields.values():
        if normal(field.name) in names and field.ref is None:
            return field
    return None


def _listing_field(entity: EntityDraft, name: str, schema: dict[str, Any]) -> FieldDraft | None:
    """Return the list that holds the value of a filter, as `tags` holds a `tag`."""
    if schema.get("type") != "string":
        return None
    many = plural(normal(name))
    return next(
        (f for f in entity.fields.values() if f.schema.get("type") == "array" and normal(f.name) == many),
        None,
    )


def _range(entity: EntityDraft, name: str, schema: dict[str, Any]) -> tuple[FieldDraft, Match] | None:
    """Return the field and direction of a parameter such as `min_price` or `due_before`."""
    words = list(split_name(name))
    marks = [word for word in (words[0], words[-1]) if word in _LOW_MARKS or word in _HIGH_MARKS]
    if not marks or find_field(entity, name) is not None:
        return None
    match: Match = "ge" if marks[0] in _LOW_MARKS else "le"
    base = [word for word in words if word != marks[0]]
    numeric = schema.get("type") in ("integer", "number")
    fits = [
        field
        for field in entity.fields.values()
        if (field.schema.get("type") in ("integer", "number") if numeric else is_date(field))
        and field.ref is None
    ]
    named = [field for field in fits if set(base) & set(split_name(field.name))]
    if named:
        return named[0], match
    dated = not numeric and (not base or base == ["date"]) and len(fits) == 1
    return (fits[0], match) if dated else None


def _leftovers(draft: ToolDraft) -> None:
    """Mark what was not understood: ignored where it may be left out, a problem where it may not."""
    required = draft.reading.tool.required
    for name in draft.rest():
        if is_quiet(name):
            draft.args[name] = ArgBinding(role="ignored")
        elif draft.verb == "adjust" and draft.properties[name].get("type") in ("integer", "number"):
            draft.args[name] = ArgBinding(role="amount", entity=draft.entity.name if draft.entity else None)
        elif name in required:
            draft.fail("unknown_argument", f"the meaning of its argument '{name}' is not known")
        else:
            draft.unknown.append(name)
            draft.args[name] = ArgBinding(role="ignored")


# --- labels -----------------------------------------------------------------------------------


def is_date(field: FieldDraft) -> bool:
    """Tell whether a field holds a day or a date and time."""
    if field.schema.get("format") in ("date", "date-time"):
        return True
    kind = field.schema.get("type") == "string"
    return kind and packs.is_date_name(field.name, str(field.schema.get("description", "")))


def label_of(entity: EntityDraft) -> FieldDraft | None:
    """Return the field by which people name a row, best guess first."""
    fields = [field for field in entity.fields.values() if _can_label(field)]
    for word in NAME_WORDS:
        exact = [field for field in fields if normal(field.name) == word]
        if exact:
            return exact[0]
    ending = [
        field
        for field in fields
        if split_name(field.name)[-1] in (*NAME_WORDS, "subject", "headline", "username")
    ]
    key = [field for field in fields if field.name == entity.natural_key]
    created = sorted((field for field in fields if field.in_create), key=lambda field: not field.required)
    return next(iter([*ending, *key, *created]), None)


def _can_label(field: FieldDraft) -> bool:
    schema = field.schema
    if field.ref is not None or schema.get("type") != "string" or "enum" in schema:
        return False
    return not is_date(field) and not identifier_base(field.name)


def _named(entity: EntityDraft) -> FieldDraft:
    """Invent the label of an entity that is searched by text only."""
    field = FieldDraft(
        name="title" if entity.key[-1] in _TITLED else "name", schema={"type": "string"}, required=False
    )
    entity.fields = {field.name: field, **entity.fields}
    return field


_TITLED = frozenset(
    "paper article book page document post story note video movie film issue task event thread".split()
)


def ensure_label(entity: EntityDraft) -> FieldDraft | None:
    """Return the label, invented where the entity's things are usually named but no tool says how."""
    label = label_of(entity)
    created = any(field.in_create for field in entity.fields.values())
    if label is None and not created and (packs.title_generator(entity.key) or packs.profile(entity.key)):
        label = _named(entity)
    return label
