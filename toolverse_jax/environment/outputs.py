"""Compiles what a successful call returns, and derives its JSON Schema."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from toolverse_jax.environment.expressions import Expression, Scope, compile_expression, field_schema
from toolverse_jax.environment.failures import CallFailure
from toolverse_jax.environment.identifiers import Identifiers
from toolverse_jax.environment.spec import Entity, EnvSpec, FieldSpec, Output
from toolverse_jax.environment.transaction import KEY, Row, Transaction
from toolverse_jax.environment.writes import spoken
from toolverse_jax.types import JSON

Render = Callable[[Transaction], dict[str, JSON]]
RenderRow = Callable[[Row, Identifiers], dict[str, JSON]]

_CONTAINERS = ("array", "object", "json")


def plain_copy(value: JSON) -> JSON:
    """Return a JSON value that shares no list or object with the original."""
    if type(value) is list:
        return [plain_copy(each) for each in value]
    if type(value) is dict:
        return {name: plain_copy(each) for name, each in value.items()}
    return value


def compile_row(fields: Sequence[FieldSpec], id_name: str | None) -> RenderRow:
    """Return a function from a row to its external form: the identifier first, references as identifiers."""
    plain = all(field.type != "ref" and field.type not in _CONTAINERS for field in fields)
    names = tuple(field.name for field in fields)
    plan = tuple((f.name, 1 if f.type == "ref" else 2 if f.type in _CONTAINERS else 0) for f in fields)

    def render(row: Row, identifiers: Identifiers) -> dict[str, JSON]:
        out: dict[str, JSON] = {}
        if id_name is not None:
            out[id_name] = identifiers.external[row[KEY]]
        if plain:
            for name in names:
                out[name] = row[name]
            return out
        for name, kind in plan:
            value = row[name]
            if kind == 1:
                value = None if value is None else identifiers.external[value]
            elif kind == 2:
                value = plain_copy(value)
            out[name] = value
        return out

    return render


def compile_output(output: Output, scope: Scope) -> tuple[Render, dict[str, JSON]]:
    """Return the function that renders the result of a call, and the result's JSON Schema.

    Raises:
        EnvironmentSpecError: the source or a field does not exist.
    """
    extras = [(name, compile_expression(expr, scope)) for name, expr in output.extra.items()]
    base, properties = _compile_base(output, scope)
    clash = next((name for name, _ in extras if name in properties), None)
    if clash is not None:
        raise scope.fail(f"output member {clash!r} is given twice")
    properties.update((name, each.schema) for name, each in extras)
    schema: dict[str, JSON] = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    if not extras:
        return base, schema
    shown = [(name, _shown(each)) for name, each in extras]

    def render(tx: Transaction) -> dict[str, JSON]:
        out = base(tx)
        for name, evaluate in shown:
            out[name] = evaluate(tx)
        return out

    return render, schema


def _shown(expression: Expression) -> Callable[[Transaction], JSON]:
    evaluate = expression.evaluate
    if expression.ref is not None:

        def identifier(tx: Transaction) -> JSON:
            key = evaluate(tx)
            return None if key is None else tx.identifiers.external.get(key)

        return identifier
    if expression.schema.get("type") in ("boolean", "integer", "number", "string"):
        return evaluate
    return lambda tx: plain_copy(evaluate(tx))


def _compile_base(output: Output, scope: Scope) -> tuple[Render, dict[str, JSON]]:
    if output.shape == "scalar":
        return (lambda tx: {}), {}
    source = output.source
    if output.shape == "singleton":
        singleton = next((each for each in scope.spec.singletons if each.name == source), None)
        if singleton is None:
            raise scope.fail(f"singleton {source!r} does not exist")
        fields = _shown_fields(output, singleton.fields, scope, "detail")
        render_row = compile_row(fields, None)
        return (lambda tx: render_row(tx.singletons[source], tx.identifiers)), {
            field.name: field_schema(scope.spec, field) for field in fields
        }
    many = output.shape == "list"
    bound = scope.row(source, many=many)
    if output.entity is not None and output.entity != bound.entity:
        raise scope.fail(f"the output shows {output.entity!r}, but binding {source!r} holds {bound.entity!r}")
    entity = scope.spec.entity(bound.entity)
    fields = _shown_fields(output, entity.fields, scope, "list" if many else "detail")
    render_row = compile_row(fields, entity.id_name)
    properties = row_properties(scope.spec, entity, fields)
    if not many:
        absent = ("not_found", f"There is no such {spoken(entity.name)}.")

        def record(tx: Transaction) -> dict[str, JSON]:
            row = tx.bound[source]
            if row is None:
                raise CallFailure(*absent)
            return render_row(row, tx.identifiers)

        return record, properties
    plural = entity.plural
    item: dict[str, JSON] = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }

    def rows(tx: Transaction) -> dict[str, JSON]:
        identifiers = tx.identifiers
        return {plural: [render_row(row, identifiers) for row in tx.bound[source]]}

    return rows, {plural: {"type": "array", "items": item}}


def row_properties(spec: EnvSpec, entity: Entity, fields: Sequence[FieldSpec]) -> dict[str, JSON]:
    """Return the JSON Schema of each member of a shown row."""
    properties: dict[str, JSON] = {entity.id_name: {"type": entity.id_scheme.type}}
    properties.update((field.name, field_schema(spec, field)) for field in fields)
    return properties


def _shown_fields(
    output: Output, fields: Sequence[FieldSpec], scope: Scope, view: str
) -> tuple[FieldSpec, ...]:
    if output.fields is None:
        return tuple(field for field in fields if view in field.visible_in)
    by_name = {field.name: field for field in fields}
    for name in output.fields:
        if name not in by_name:
            raise scope.fail(f"the output shows field {name!r}, which does not exist")
    return tuple(by_name[name] for name in output.fields)
