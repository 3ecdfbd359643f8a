"""What an operation needs, shows, reads and writes, read off the specification without running it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from toolverse_jax.environment.spec import (
    Adjust,
    Delete,
    EnvSpec,
    Expr,
    FieldSpec,
    Insert,
    Lookup,
    Operation,
    Query,
    SetSingleton,
    Transition,
    Update,
)
from toolverse_jax.types import JSON

MUTATING_STEPS = (Adjust, Delete, Insert, SetSingleton, Transition, Update)


@dataclasses.dataclass(frozen=True, kw_only=True)
class NeededId:
    """A parameter that takes the identifier of a row."""

    parameter: str
    entity: str
    required: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class ShownValue:
    """A member of a result, or of each row of a result."""

    entity: str
    """Entity identified (identifiers and references) or described (other fields)."""
    output: str
    """Name of the member."""
    field: FieldSpec | None = None
    """The field shown; None for a row's own identifier."""
    fresh: bool = False
    """The row did not exist before the call."""

    @property
    def is_id(self) -> bool:
        return self.field is None or self.field.type == "ref"


@dataclasses.dataclass(frozen=True, kw_only=True)
class StateNeed:
    """A state that an operation checks before it runs."""

    place: str
    """`entity:<name>`, `rows:<name>` (how many there are) or `singleton:<name>`."""
    field: str
    allowed: tuple[JSON, ...] | None = None
    """Values it runs with; None: not known."""
    forbidden: tuple[JSON, ...] = ()
    initial: bool = False
    """New rows are in an allowed state already."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class StateWrite:
    """A state that an operation establishes."""

    place: str
    field: str
    value: JSON = None
    known: bool = True
    """False where the value depends on an argument."""


def bound_entities(operation: Operation) -> dict[str, str]:
    """Return the entity of each binding of an operation."""
    return {s.bind: s.entity for s in operation.steps if isinstance(s, Lookup | Query | Insert)}


def changes_state(operation: Operation) -> bool:
    """Return whether any step of the operation writes."""
    return any(isinstance(step, MUTATING_STEPS) for step in operation.steps)


def required_parameters(spec: EnvSpec, tool: str) -> tuple[str, ...]:
    """Return the parameters that a call must give."""
    return tuple(spec.tool(tool).input_schema.get("required", ()))


def needed_ids(spec: EnvSpec, operation: Operation) -> tuple[NeededId, ...]:
    """Return the parameters that take an identifier, with the entity identified."""
    required = required_parameters(spec, operation.tool)
    looked_up = {s.arg: s.entity for s in operation.steps if isinstance(s, Lookup) and s.field is None}
    found = []
    for parameter, binding in operation.args.items():
        entity = looked_up.get(parameter)
        if entity is None and binding.role == "id":
            entity = binding.entity
        if entity is None and binding.entity and binding.field:
            field = _field(spec, binding.entity, binding.field)
            entity = field.ref if field and field.type == "ref" else None
        if entity is not None:
            found.append(NeededId(parameter=parameter, entity=entity, required=parameter in required))
    return tuple(found)


def shown_values(spec: EnvSpec, operation: Operation) -> tuple[ShownValue, ...]:
    """Return the members that a successful call shows, identifiers first."""
    output = operation.output
    bound = bound_entities(operation)
    inserted = {step.bind for step in operation.steps if isinstance(step, Insert)}
    shown: list[ShownValue] = []
    if output.shape in ("record", "list"):
        name = output.entity or bound.get(output.source) or operation.entity
        if name is not None:
            entity = spec.entity(name)
            fresh = output.source in inserted
            shown.append(ShownValue(entity=name, output=entity.id_name, fresh=fresh))
            view = "detail" if output.shape == "record" else "list"
            for field in entity.fields:
                visible = (
                    field.name in output.fields if output.fields is not None else view in field.visible_in
                )
                if visible:
                    shown.append(_shown_field(name, field, field.name))
    elif output.shape == "singleton":
        for singleton in spec.singletons:
            if singleton.name == output.source:
                shown += [_shown_field(singleton.name, f, f.name) for f in singleton.fields]
    for key, expression in output.extra.items():
        match expression:
            case ["id", str(binding)] if binding in bound:
                shown.append(ShownValue(entity=bound[binding], output=key, fresh=binding in inserted))
            case ["field", str(binding), str(member)] if binding in bound:
                field = _field(spec, bound[binding], member)
                if field is not None:
                    shown.append(_shown_field(bound[binding], field, key))
    return tuple(sorted(shown, key=lambda value: not value.is_id))


def state_needs(spec: EnvSpec, operation: Operation) -> tuple[StateNeed, ...]:
    """Return the states that lifecycle transitions and guards of an operation check."""
    needs = []
    for step in operation.steps:
        lifecycle = spec.entity(step.entity).lifecycle if isinstance(step, Transition) else None
        if isinstance(step, Transition) and lifecycle and step.verb in lifecycle.transitions:
            allowed = lifecycle.transitions[step.verb][0]
            field = _field(spec, step.entity, lifecycle.field)
            needs.append(
                StateNeed(
                    place=f"entity:{step.entity}",
                    field=lifecycle.field,
                    allowed=allowed,
                    initial=field is not None and field.default in allowed,
                )
            )
    bound = bound_entities(operation)
    for guard in operation.guards:
        needs += _needs_of(spec, bound, guard.condition, holds=True)
    return tuple(needs)


def state_writes(spec: EnvSpec, operation: Operation) -> tuple[StateWrite, ...]:
    """Return the states that an operation establishes."""
    writes: list[StateWrite] = []
    for step in operation.steps:
        if isinstance(step, Transition):
            lifecycle = spec.entity(step.entity).lifecycle
            if lifecycle and step.verb in lifecycle.transitions:
                target = lifecycle.transitions[step.verb][1]
                writes.append(StateWrite(place=f"entity:{step.entity}", field=lifecycle.field, value=target))
        elif isinstance(step, Update):
            writes += _literal_writes(f"entity:{step.entity}", step.values)
        elif isinstance(step, SetSingleton):
            writes += _literal_writes(f"singleton:{step.singleton}", step.values)
        elif isinstance(step, Adjust):
            writes.append(StateWrite(place=f"entity:{step.entity}", field=step.field, known=False))
        elif isinstance(step, Insert):
            writes.append(StateWrite(place=f"rows:{step.entity}", field="", value="some"))
        elif isinstance(step, Delete):
            writes.append(StateWrite(place=f"rows:{step.entity}", field="", value="none", known=False))
    return tuple(writes)


def deleted_entities(spec: EnvSpec, operation: Operation) -> tuple[str, ...]:
    """Return the entities whose rows an operation deletes, cascades included."""
    deleted = [step.entity for step in operation.steps if isinstance(step, Delete)]
    for name in deleted:
        if spec.entity(name).on_delete == "cascade":
            deleted += [
                entity.name
                for entity in spec.entities
                if entity.name not in deleted and any(f.ref == name for f in entity.fields)
            ]
    return tuple(deleted)


def terminal_entities(spec: EnvSpec, operation: Operation) -> tuple[str, ...]:
    """Return the entities whose rows an operation moves into a state that no transition leaves."""
    found = []
    for step in operation.steps:
        lifecycle = spec.entity(step.entity).lifecycle if isinstance(step, Transition) else None
        if isinstance(step, Transition) and lifecycle and step.verb in lifecycle.transitions:
            target = lifecycle.transitions[step.verb][1]
            if all(target not in sources for sources, _ in lifecycle.transitions.values()):
                found.append(step.entity)
    return tuple(found)


def _field(spec: EnvSpec, entity: str, name: str) -> FieldSpec | None:
    owners = [
        *(e for e in spec.entities if e.name == entity),
        *(s for s in spec.singletons if s.name == entity),
    ]
    return next((field for owner in owners for field in owner.fields if field.name == name), None)


def _shown_field(owner: str, field: FieldSpec, output: str) -> ShownValue:
    entity = field.ref if field.type == "ref" and field.ref else owner
    return ShownValue(entity=entity, output=output, field=field)


def _literal_writes(place: str, values: dict[str, Expr]) -> Iterator[StateWrite]:
    for field, expression in values.items():
        if not isinstance(expression, list | tuple):
            yield StateWrite(place=place, field=field, value=expression)
        elif expression and expression[0] == "arg":
            yield StateWrite(place=place, field=field, known=False)


def _needs_of(spec: EnvSpec, bound: dict[str, str], condition: Expr, *, holds: bool) -> Iterator[StateNeed]:
    match condition:
        case ["and", *parts] if holds:
            for part in parts:
                yield from _needs_of(spec, bound, part, holds=True)
        case ["or", *parts] if not holds:
            for part in parts:
                yield from _needs_of(spec, bound, part, holds=False)
        case ["not", part]:
            yield from _needs_of(spec, bound, part, holds=not holds)
        case [str(operator), left, right] if operator in ("eq", "ne", "in", "gt", "ge", "lt", "le"):
            place = _place(spec, bound, left)
            if place is not None:
                yield from _comparison(place, operator, right, holds)


def _place(spec: EnvSpec, bound: dict[str, str], operand: Expr) -> tuple[str, str, JSON] | None:
    """Return place, field and the value of the field in a new row."""
    match operand:
        case ["field", str(binding), str(name)] if binding in bound:
            field = _field(spec, bound[binding], name)
            return f"entity:{bound[binding]}", name, field.default if field else None
        case ["singleton", str(owner), str(name)]:
            field = _field(spec, owner, name)
            return f"singleton:{owner}", name, field.default if field else None
        case ["count", str(binding)] if binding in bound:
            return f"rows:{bound[binding]}", "", None
    return None


def _comparison(where: tuple[str, str, JSON], operator: str, right: Expr, holds: bool) -> Iterator[StateNeed]:
    place, field, default = where
    if place.startswith("rows:"):
        wants_rows = operator in ("gt", "ge", "ne") if holds else operator in ("eq", "le", "lt")
        yield StateNeed(place=place, field=field, allowed=("some",) if wants_rows else ("none",))
        return
    literals = right if operator == "in" else (right,)
    if operator in ("gt", "ge", "lt", "le"):
        yield StateNeed(place=place, field=field)
    elif isinstance(literals, list | tuple) and not any(isinstance(item, list | tuple) for item in literals):
        values = tuple(literals)
        if (operator != "ne") == holds:
            yield StateNeed(place=place, field=field, allowed=values, initial=default in values)
        else:
            yield StateNeed(place=place, field=field, forbidden=values, initial=default not in values)
