"""The rules author: reads names and schemas of tools, and writes the environment they tell of.

It needs no model and no network, and is deterministic. What it cannot give a real meaning it does
not fake: such a tool refuses every call, and a toolset with too many of them is rejected.
"""

from __future__ import annotations

from collections import Counter

from toolverse_jax.environment.spec import EnvSpec, FieldSpec, Singleton, ToolInterface
from toolverse_jax.synthesis import packs
from toolverse_jax.synthesis.author import Rejection
from toolverse_jax.synthesis.entities import read_tools
from toolverse_jax.synthesis.normalise import NormalisedTool, NormalisedToolset, normalise_toolset
from toolverse_jax.synthesis.rules_drafts import Drafts, EntityDraft
from toolverse_jax.synthesis.rules_entities import build_entities, build_field, on_delete
from toolverse_jax.synthesis.rules_fields import collect_fields, ensure_label
from toolverse_jax.synthesis.rules_operations import OperationBuilder
from toolverse_jax.types import JSON, Toolset

MIN_FULL_FRACTION = 0.7
"""Least share of tools that must really do what they say."""
MAX_IGNORED_FRACTION = 0.2
"""Largest share of parameters that may have no effect; credentials and looks are not counted."""
_PRODUCERS = ("list", "search", "create")
_DOMAIN = "domain:"


class RulesAuthor:
    """Writes environments by rules over the names and schemas of tools."""

    id = "rules@1"

    def author(self, toolset: Toolset, seed: int = 0) -> EnvSpec | Rejection:
        """Return the environment of a toolset, or why there is none.

        Args:
            toolset: The tools, schemas verbatim.
            seed: Unused: the rules leave nothing to chance.
        """
        normalised = normalise_toolset(toolset)
        drafts = Drafts(read_tools(normalised.tools))
        settings = _find_settings(drafts)
        _fail_aimless(drafts, settings)
        collect_fields(drafts)
        for draft in drafts.tools:
            if draft.problem is None and draft.entity is not None and draft.verb == "transition":
                draft.entity.transitions.append(draft.reading.verb)
        alive = _living_entities(drafts, settings)
        singletons = {entity.name: _singleton(entity) for entity in settings}
        built = build_entities(drafts, alive)
        operations = OperationBuilder(built, singletons)
        written = [operations.build(draft) for draft in drafts.tools]
        rejection = _judge(drafts, alive, settings)
        if rejection is not None:
            return rejection
        entities = tuple(
            b.entity.model_copy(update={"on_delete": on_delete(name, built)}) for name, b in built.items()
        )
        return EnvSpec(
            name=toolset.name,
            domain=_domain(toolset),
            description=toolset.overview,
            source=_source(normalised, drafts),
            author=self.id,
            entities=entities,
            singletons=tuple(singletons.values()),
            tools=tuple(_interface(tool) for tool in normalised.tools),
            operations=tuple(written),
        )


# --- settings ---------------------------------------------------------------------------------


def _find_settings(drafts: Drafts) -> list[EntityDraft]:
    """Find things of which there is one: read without saying which, and changed the same way."""
    found = []
    for entity in drafts.entities.values():
        tools = [draft for draft in drafts.tools if draft.entity is entity and draft.problem is None]
        reads = [draft for draft in tools if draft.verb == "get"]
        writes = [draft for draft in tools if draft.verb == "update"]
        if not reads or not writes or len(reads) + len(writes) < len(tools):
            continue
        if any(draft.references or (draft.own and not draft.own_is_key) for draft in tools):
            continue
        if any(draft.reading.tool.required for draft in reads) or not all(d.properties for d in writes):
            continue
        for draft in tools:
            draft.verb, draft.own, draft.own_is_key = (
                ("settings" if draft.verb == "get" else "update"),
                None,
                False,
            )
        found.append(entity)
    return found


def _fail_aimless(drafts: Drafts, settings: list[EntityDraft]) -> None:
    """Fail the tools that read or change one row of many without saying which."""
    for draft in drafts.tools:
        if draft.verb in ("get", "update") and draft.own is None and draft.entity not in settings:
            draft.fail("unknown_meaning", "it does not say which row it is about")


def _singleton(entity: EntityDraft) -> Singleton:
    fields: list[FieldSpec] = []
    for field in entity.fields.values():
        spec = build_field(field, entity, is_label=False, creatable=False)
        default = field.schema.get("default")
        fields.append(spec.model_copy(update={"default": default, "unique": False, "nullable": False}))
    return Singleton(name=entity.name, fields=tuple(fields))


# --- what is known ----------------------------------------------------------------------------


def _living_entities(drafts: Drafts, settings: list[EntityDraft]) -> list[EntityDraft]:
    """Return the entities that the tools say enough about, and fail the tools of the others."""
    for draft in drafts.tools:
        if draft.entity in settings and draft.problem is None:
            draft.verb = "settings"
    candidates = [entity for entity in drafts.entities.values() if entity not in settings]
    while True:
        dead = [entity for entity in candidates if not _known(entity, drafts)]
        candidates = [entity for entity in candidates if entity not in dead]
        failed = False
        for entity in dead:
            failed |= _bury(entity, drafts)
        if not dead and not failed:
            return candidates


def _known(entity: EntityDraft, drafts: Drafts) -> bool:
    """Tell whether rows of an entity can be found by some tool, and have something to show."""
    tools = [draft for draft in drafts.tools if draft.entity is entity and draft.problem is None]
    found = any(draft.verb in _PRODUCERS for draft in tools)
    shown = any(
        field.ref == entity.name and other is not entity
        for other in drafts.entities.values()
        for field in other.fields.values()
    )
    if not found and not (shown and any(draft.verb == "get" for draft in tools)):
        return False
    told = [field for field in entity.fields.values() if field.ref is None]
    if any(field.in_create for field in told):
        return True
    # Of a thing that no tool makes, a name alone would be a made-up list of names.
    label = ensure_label(entity)
    return label is not None and (len(told) > 1 or bool(packs.profile(entity.key)))


def _bury(entity: EntityDraft, drafts: Drafts) -> bool:
    """Take an entity out; return whether a tool failed by it."""
    failed = False
    noun = " ".join(entity.key)
    for draft in drafts.tools:
        if draft.problem is not None:
            continue
        if draft.entity is entity and draft.verb != "aggregate":
            draft.fail("no_entity", f"nothing else tells of any {noun}")
            failed = True
            continue
        for name in [n for n, target in draft.references.items() if target is entity]:
            if name in draft.reading.tool.required:
                draft.fail("no_entity", f"nothing else tells of any {noun}")
                failed = True
            else:
                del draft.references[name]
                draft.columns.pop(name, None)
                draft.args[name] = draft.args[name].model_copy(
                    update={"role": "ignored", "entity": None, "field": None}
                )
                draft.unknown.append(name)
    for other in drafts.entities.values():
        other.fields = {name: field for name, field in other.fields.items() if field.ref != entity.name}
    return failed


# --- acceptance -------------------------------------------------------------------------------


def _judge(drafts: Drafts, alive: list[EntityDraft], settings: list[EntityDraft]) -> Rejection | None:
    """Return why the toolset makes no honest environment, None where it does."""
    problems = [(draft, *draft.problem) for draft in drafts.tools if draft.problem is not None]
    full = len(drafts.tools) - len(problems)
    if not drafts.tools or full < MIN_FULL_FRACTION * len(drafts.tools):
        reason = Counter(problem[1] for problem in problems).most_common(1)[0][0] if problems else "no_entity"
        told = "; ".join(f"{draft.name}: {clause}" for draft, code, clause in problems if code == reason)
        return Rejection(
            reason,
            f"{full} of {len(drafts.tools)} tools can be simulated, {MIN_FULL_FRACTION:.0%} are needed ({told[:300]}).",
        )
    if not alive:
        return Rejection("no_entity", "The tools tell of no thing that can be listed, found or created.")
    if not _links(drafts):
        return Rejection("no_link", "No tool takes an identifier that another tool gives.")
    ignored = [
        f"{draft.name}.{name}" for draft in drafts.tools if draft.problem is None for name in draft.unknown
    ]
    total = sum(len(draft.properties) for draft in drafts.tools)
    if total and len(ignored) > MAX_IGNORED_FRACTION * total:
        return Rejection(
            "ignored_arguments",
            f"{len(ignored)} of {total} parameters have no known effect ({', '.join(ignored[:8])}).",
        )
    return None


def _links(drafts: Drafts) -> bool:
    """Tell whether some tool takes an identifier that another one answers with."""
    working = [draft for draft in drafts.tools if draft.problem is None]
    given = {draft.entity.name for draft in working if draft.entity is not None and draft.verb in _PRODUCERS}
    return any(
        (
            draft.own is not None
            and draft.entity is not None
            and draft.entity.name in given
            and draft.verb != "create"
        )
        or any(target.name in given for target in draft.references.values())
        for draft in working
    )


# --- public face ------------------------------------------------------------------------------


def _interface(tool: NormalisedTool) -> ToolInterface:
    changed = tool.input_schema != tool.raw_schema
    return ToolInterface(
        name=tool.name,
        description=tool.description,
        input_schema=tool.input_schema,
        input_schema_raw=tool.raw_schema if changed else None,
        changes=tool.changes,
    )


def _domain(toolset: Toolset) -> str:
    marked = [label[len(_DOMAIN) :] for label in toolset.labels if label.startswith(_DOMAIN)]
    plain = [label for label in toolset.labels if ":" not in label]
    return (marked or plain or [""])[0]


def _source(normalised: NormalisedToolset, drafts: Drafts) -> dict[str, JSON]:
    toolset = normalised.toolset
    source: dict[str, JSON] = {
        "origin": toolset.source,
        "licence": toolset.licence,
        "stratum": "scraped" if normalised.scraped else "full",
    }
    problems = {draft.name: draft.problem[1] for draft in drafts.tools if draft.problem is not None}
    if problems:
        source["not_simulated"] = problems
    if normalised.changes:
        source["changes"] = list(normalised.changes)
    return source
