"""Compiles the steps of an operation to closures over a transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from toolverse_jax.environment.deletion import delete_row
from toolverse_jax.environment.expressions import (
    Bound,
    Evaluate,
    Expression,
    Scope,
    bounded,
    compare_le,
    compile_expression,
    is_operation,
    same,
)
from toolverse_jax.environment.failures import CallFailure
from toolverse_jax.environment.spec import (
    Adjust,
    ArgBinding,
    Delete,
    Entity,
    FieldSpec,
    Filter,
    Insert,
    Lookup,
    Query,
    SetSingleton,
    Step,
    Transition,
    Update,
)
from toolverse_jax.environment.transaction import Row, Transaction
from toolverse_jax.environment.writes import compile_writer, spoken
from toolverse_jax.types import JSON

RunStep = Callable[[Transaction], None]
Test = Callable[[JSON, JSON], bool]

READS = (Lookup, Query)


def compile_step(step: Step, scope: Scope, args: Mapping[str, ArgBinding]) -> tuple[RunStep, Scope]:
    """Compile one step; return its closure and the scope after it.

    Raises:
        EnvironmentSpecError: a name does not resolve, or a value cannot fit its field.
    """
    if isinstance(step, Lookup):
        return _lookup(step, scope, args)
    if isinstance(step, Query):
        return _query(step, scope)
    if isinstance(step, Insert):
        return _insert(step, scope)
    if isinstance(step, SetSingleton):
        return _set_singleton(step, scope), scope
    bound = scope.row(step.row)
    if bound.entity != step.entity:
        raise scope.fail(f"binding {step.row!r} holds a row of {bound.entity!r}, not of {step.entity!r}")
    if isinstance(step, Update):
        return _update(step, scope), scope
    if isinstance(step, Delete):
        return _delete(step, scope), scope
    if isinstance(step, Transition):
        return _transition(step, scope), scope
    return _adjust(step, scope), scope


def entity_of(scope: Scope, name: str) -> Entity:
    """Return an entity, checked to exist."""
    try:
        return scope.spec.entity(name)
    except KeyError:
        raise scope.fail(f"entity {name!r} does not exist") from None


def _argument(scope: Scope, name: str) -> str:
    return compile_expression(["arg", name], scope).argument or name


def _writable_row(tx: Transaction, entity: str, binding: str) -> Row:
    row = tx.bound[binding]
    current = None if row is None else tx.current(entity, row)
    if current is None:
        raise CallFailure("not_found", f"There is no such {spoken(entity)}.")
    return current


# --- reading ----------------------------------------------------------------------------------


def _lookup(step: Lookup, scope: Scope, args: Mapping[str, ArgBinding]) -> tuple[RunStep, Scope]:
    entity = entity_of(scope, step.entity)
    name, bind, table_name = _argument(scope, step.arg), step.bind, entity.name
    missing = ("not_found", f"There is no {spoken(entity.name)} with this {spoken(name)}.", name)
    absent = ("invalid_arguments", f"The argument '{name}' is needed.", name)
    after = scope.bind(bind, Bound(entity.name, optional=step.optional))
    if step.field is None:
        _check_identifier_type(entity, scope, name)

        def by_identifier(tx: Transaction) -> None:
            value = tx.arguments.get(name)
            if value is None:
                if not step.optional:
                    raise CallFailure(*absent)
                tx.bound[bind] = None
                return
            key = tx.identifiers.key_of(table_name, value)
            row = None if key is None else tx.tables[table_name].get(key)
            if row is None:
                raise CallFailure(*missing)
            tx.bound[bind] = row

        return by_identifier, after
    field = scope.field(entity.name, step.field)
    match = args[name].match if name in args and args[name].match in ("exact", "ci") else "exact"
    test, prepare = compile_match(field, match)
    several = ("conflict", f"Several {spoken(entity.plural)} have this {spoken(name)}.", name)

    def by_field(tx: Transaction) -> None:
        value = tx.arguments.get(name)
        if value is None and step.optional:
            tx.bound[bind] = None
            return
        if value is None:
            raise CallFailure(*absent)
        wanted = prepare(tx, value)
        rows = [row for row in tx.tables[table_name].values() if test(row[field.name], wanted)]
        if len(rows) != 1:
            raise CallFailure(*(several if rows else missing))
        tx.bound[bind] = rows[0]

    return by_field, after


def _check_identifier_type(entity: Entity, scope: Scope, name: str) -> None:
    schema = scope.properties[name]
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    allowed = {"string": ("string",), "integer": ("integer", "number")}[entity.id_scheme.type]
    if isinstance(kind, str) and kind not in allowed:
        raise scope.fail(
            f"argument {name!r} has type {kind!r}, but identifiers of {entity.name!r} are of type {allowed[0]!r}"
        )


def compile_match(field: FieldSpec, match: str) -> tuple[Test, Callable[[Transaction, JSON], JSON]]:
    """Return a test of (field value, prepared argument) and the preparation of the argument."""
    if field.type == "ref":
        entity = field.ref or ""
        return (lambda value, wanted: value == wanted), (
            lambda tx, argument: tx.identifiers.key_of(entity, argument) or "?"
        )
    tests: dict[str, Test] = {
        "exact": same,
        "ci": lambda value, wanted: same(_folded(value), wanted),
        "contains": _holds,
        "ge": lambda value, wanted: compare_le(wanted, value),
        "le": lambda value, wanted: compare_le(value, wanted),
    }
    fold = match in ("ci", "contains")
    return tests[match], (lambda tx, argument: _folded(argument) if fold else argument)


def _folded(value: JSON) -> JSON:
    return value.casefold() if isinstance(value, str) else value


def _holds(value: JSON, wanted: JSON) -> bool:
    if isinstance(value, list):
        return any(same(_folded(each), wanted) for each in value)
    return isinstance(value, str) and isinstance(wanted, str) and wanted in value.casefold()


def _query(step: Query, scope: Scope) -> tuple[RunStep, Scope]:
    entity = entity_of(scope, step.entity)
    filters = [_compile_filter(each, entity, scope) for each in step.filters]
    inner = scope.bind("row", Bound(entity.name))
    where = None if step.where is None else compile_expression(step.where, inner).evaluate
    order = _compile_sort(step, entity, scope)
    page = _compile_page(step, scope)
    name, bind = entity.name, step.bind

    def run(tx: Transaction) -> None:
        rows = list(tx.tables[name].values())
        for keep in filters:
            rows = keep(tx, rows)
        if where is not None:
            rows = _select(tx, rows, where)
        if order is not None:
            rows = order(rows)
        tx.bound[bind] = rows if page is None else page(tx, rows)

    return run, scope.bind(bind, Bound(entity.name, many=True))


def _select(tx: Transaction, rows: list[Row], where: Evaluate) -> list[Row]:
    hidden = "row" in tx.bound
    outer = tx.bound.get("row")
    kept = []
    for row in rows:
        tx.bound["row"] = row
        if where(tx):
            kept.append(row)
    if hidden:
        tx.bound["row"] = outer
    else:
        tx.bound.pop("row", None)
    return kept


def _compile_filter(
    each: Filter, entity: Entity, scope: Scope
) -> Callable[[Transaction, list[Row]], list[Row]]:
    name = _argument(scope, each.arg)
    field = scope.field(entity.name, each.field)
    if field.type == "ref" and each.match != "exact":
        raise scope.fail(f"reference field {field.name!r} can only be filtered with match 'exact'")
    test, prepare = compile_match(field, each.match)
    field_name, exact = field.name, each.match == "exact"

    def keep(tx: Transaction, rows: list[Row]) -> list[Row]:
        value = tx.arguments.get(name)
        if value is None:
            return rows
        wanted = prepare(tx, value)
        if exact and type(wanted) is str:
            return [row for row in rows if row[field_name] == wanted]
        return [row for row in rows if test(row[field_name], wanted)]

    return keep


def _compile_sort(step: Query, entity: Entity, scope: Scope) -> Callable[[list[Row]], list[Row]] | None:
    name = step.sort_field
    if name is None:
        return None
    field = scope.field(entity.name, name)
    mixed = len({isinstance(value, str) for value in field.enum or ()}) > 1
    if field.type in ("array", "object", "json", "ref") or mixed:
        raise scope.fail(f"cannot sort by field {name!r}: its values have no order")

    def order(rows: list[Row]) -> list[Row]:
        known = [row for row in rows if row[name] is not None]
        known.sort(key=lambda row: row[name], reverse=step.descending)
        return known + [row for row in rows if row[name] is None]

    return order


def _compile_page(step: Query, scope: Scope) -> Callable[[Transaction, list[Row]], list[Row]] | None:
    if step.limit_arg is None and step.offset_arg is None and step.limit is None:
        return None
    limit_arg = step.limit_arg and _argument(scope, step.limit_arg)
    offset_arg = step.offset_arg and _argument(scope, step.offset_arg)

    def page(tx: Transaction, rows: list[Row]) -> list[Row]:
        offset = _whole_number(tx, offset_arg, 0) or 0
        limit = _whole_number(tx, limit_arg, step.limit)
        return rows[offset:] if limit is None else rows[offset : offset + limit]

    return page


def _whole_number(tx: Transaction, name: str | None, absent: int | None) -> int | None:
    value = tx.arguments.get(name) if name else None
    if value is None:
        return absent
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0 or value != int(value):
        raise CallFailure("invalid_arguments", f"The argument '{name}' must be a whole number from 0.", name)
    return int(value)


# --- writing ----------------------------------------------------------------------------------


def _insert(step: Insert, scope: Scope) -> tuple[RunStep, Scope]:
    entity = entity_of(scope, step.entity)
    write = compile_writer(entity.fields, step.values, scope, owner=entity, inserting=True)
    name, bind = entity.name, step.bind

    def run(tx: Transaction) -> None:
        tx.bound[bind] = tx.insert(name, write(tx, None))

    return run, scope.bind(bind, Bound(name))


def _update(step: Update, scope: Scope) -> RunStep:
    entity = entity_of(scope, step.entity)
    write = compile_writer(entity.fields, step.values, scope, owner=entity, skip_null=step.skip_null)
    name, binding = entity.name, step.row

    def run(tx: Transaction) -> None:
        row = _writable_row(tx, name, binding)
        changes = write(tx, row)
        if changes:
            tx.replace(name, row, changes)

    return run


def _delete(step: Delete, scope: Scope) -> RunStep:
    entity = entity_of(scope, step.entity)
    spec = scope.spec

    def run(tx: Transaction) -> None:
        row = _writable_row(tx, entity.name, step.row)
        delete_row(spec, tx, entity, row)

    return run


def _transition(step: Transition, scope: Scope) -> RunStep:
    entity = entity_of(scope, step.entity)
    lifecycle = entity.lifecycle
    if lifecycle is None or step.verb not in lifecycle.transitions:
        raise scope.fail(f"entity {entity.name!r} has no lifecycle transition {step.verb!r}")
    sources, target = lifecycle.transitions[step.verb]
    field, name, binding = lifecycle.field, entity.name, step.row

    def run(tx: Transaction) -> None:
        row = _writable_row(tx, name, binding)
        if row[field] not in sources:
            state = spoken(str(row[field]))
            message = f"Cannot {spoken(step.verb)} the {spoken(name)} while its {spoken(field)} is {state}."
            raise CallFailure("precondition_failed", message)
        if row[field] != target:
            tx.replace(name, row, {field: target})

    return run


def _adjust(step: Adjust, scope: Scope) -> RunStep:
    entity = entity_of(scope, step.entity)
    field = scope.field(entity.name, step.field)
    if field.type not in ("integer", "number"):
        raise scope.fail(f"cannot adjust field {field.name!r} of type {field.type!r}")
    amount: Expression = compile_expression(step.amount, scope)
    if not is_operation(step.amount) and not isinstance(amount.literal, int | float):
        raise scope.fail(f"the amount must be a number, got {step.amount!r}")
    name, binding = entity.name, step.row

    def run(tx: Transaction) -> None:
        row = _writable_row(tx, name, binding)
        change = amount.evaluate(tx)
        if isinstance(change, bool) or not isinstance(change, int | float):
            raise CallFailure("invalid_arguments", "The amount must be a number.", amount.argument)
        new: Any = bounded((row[field.name] or 0) + change)
        if field.type == "integer" and not isinstance(new, int):
            raise CallFailure("invalid_arguments", "The amount must be a whole number.", amount.argument)
        subject = f"The {spoken(field.name)} of the {spoken(name)}"
        if step.minimum is not None and new < step.minimum:
            raise CallFailure(
                "limit_exceeded", f"{subject} cannot go below {step.minimum:g}.", amount.argument
            )
        if step.maximum is not None and new > step.maximum:
            raise CallFailure(
                "limit_exceeded", f"{subject} cannot go above {step.maximum:g}.", amount.argument
            )
        if new != row[field.name]:
            tx.replace(name, row, {field.name: new})

    return run


def _set_singleton(step: SetSingleton, scope: Scope) -> RunStep:
    singleton = next((each for each in scope.spec.singletons if each.name == step.singleton), None)
    if singleton is None:
        raise scope.fail(f"singleton {step.singleton!r} does not exist")
    write = compile_writer(singleton.fields, step.values, scope, skip_null=step.skip_null)
    name = singleton.name

    def run(tx: Transaction) -> None:
        changes = write(tx, tx.singletons[name])
        if changes:
            tx.set_singleton(name, changes)

    return run
