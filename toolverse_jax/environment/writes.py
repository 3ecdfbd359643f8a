"""Compiles the values of inserts, updates and settings: types, references, uniqueness, defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from toolverse_jax.environment.arguments import is_date, is_datetime
from toolverse_jax.environment.expressions import (
    Expression,
    Scope,
    bounded,
    compile_expression,
    is_operation,
    same,
)
from toolverse_jax.environment.failures import CallFailure
from toolverse_jax.environment.spec import Entity, Expr, FieldSpec
from toolverse_jax.environment.transaction import KEY, Row, Transaction
from toolverse_jax.types import JSON

Write = Callable[[Transaction, Row | None], Row]
"""Values to write, given the row before (None for inserts); empty where nothing changes."""


def spoken(name: str) -> str:
    """Return a name as words, for messages."""
    return name.replace("_", " ").replace("-", " ")


def compile_writer(
    fields: Sequence[FieldSpec],
    values: Mapping[str, Expr],
    scope: Scope,
    *,
    owner: Entity | None = None,
    inserting: bool = False,
    skip_null: bool = False,
) -> Write:
    """Compile `values` to a function that returns checked field values.

    Raises:
        EnvironmentSpecError: a field does not exist, or its value can never fit.
    """
    by_name = {field.name: field for field in fields}
    for name in values:
        if name not in by_name:
            raise scope.fail(f"there is no field {name!r} to write (fields: {', '.join(by_name)})")
    compiled = [(by_name[name], _compile_value(by_name[name], expr, scope)) for name, expr in values.items()]
    unique = (
        [field for field in fields if field.unique and (field.name in values or inserting)] if owner else []
    )
    if inserting:
        return _insert_writer(fields, dict((f.name, e) for f, e in compiled), unique, owner, scope)

    def write(tx: Transaction, before: Row | None) -> Row:
        assert before is not None
        changes: Row = {}
        for field, expression in compiled:
            value = expression.evaluate(tx)
            if value is None and skip_null:
                continue
            value = check_value(field, value, expression.argument)
            if value is not before[field.name] and not same(value, before[field.name]):
                changes[field.name] = value
        if changes and unique and owner is not None:
            _check_unique(tx, owner, unique, changes, before[KEY])
        return changes

    return write


def _insert_writer(
    fields: Sequence[FieldSpec],
    expressions: Mapping[str, Expression],
    unique: list[FieldSpec],
    owner: Entity | None,
    scope: Scope,
) -> Write:
    assert owner is not None
    plan = [(field, expressions.get(field.name)) for field in fields]
    for field, expression in plan:
        if expression is None and field.default is None and not field.nullable:
            raise scope.fail(
                f"field {field.name!r} of {owner.name!r} gets no value: give it one, a default, or nullable"
            )

    def write(tx: Transaction, before: Row | None) -> Row:
        row: Row = {}
        for field, expression in plan:
            value = None if expression is None else expression.evaluate(tx)
            if value is None:
                value = field.default
                if isinstance(value, list | dict):
                    value = list(value) if isinstance(value, list) else dict(value)
            row[field.name] = check_value(field, value, None if expression is None else expression.argument)
        if unique:
            _check_unique(tx, owner, unique, row, None)
        return row

    return write


def _compile_value(field: FieldSpec, expr: Expr, scope: Scope) -> Expression:
    expression = compile_expression(expr, scope)
    if field.type == "ref":
        if expression.constant and (
            expression.literal is None or _is_seed_key(expression.literal, field, scope)
        ):
            return expression
        if expression.ref != field.ref:
            raise scope.fail(
                f"reference field {field.name!r} needs a row of {field.ref!r}: look it up and write ['id', binding]"
            )
    elif expression.ref is not None:
        raise scope.fail(f"field {field.name!r} of type {field.type!r} cannot hold a reference to a row")
    elif expression.constant and isinstance(expression.literal, list) and field.type not in ("array", "json"):
        operator = expression.literal[0] if expression.literal else expression.literal
        raise scope.fail(f"the value of field {field.name!r} starts with unknown operator {operator!r}")
    elif expression.constant and not is_operation(expr) and expression.literal is not None:
        try:
            check_value(field, expression.literal, None)
        except CallFailure as failure:
            raise scope.fail(
                f"literal {expr!r} does not fit field {field.name!r}: {failure.message}"
            ) from None
    return expression


def _is_seed_key(value: JSON, field: FieldSpec, scope: Scope) -> bool:
    if not isinstance(value, str) or field.ref is None:
        return False
    entity, _, n = value.partition(":")
    return entity == field.ref and n.isdigit() and int(n) < len(scope.spec.entity(entity).seed)


def check_value(field: FieldSpec, value: JSON, param: str | None) -> JSON:
    """Return a value as the field stores it.

    Raises:
        CallFailure: `invalid_arguments` where it does not fit the field.
    """
    if value is None:
        if field.nullable:
            return None
        raise CallFailure("invalid_arguments", f"A value for '{param or field.name}' is needed.", param)
    if field.type == "string" and field.enum is None and type(value) is str:
        return value
    if field.enum is not None and not any(same(value, each) for each in field.enum):
        options = ", ".join(str(each) for each in field.enum)
        raise CallFailure("invalid_arguments", f"The {spoken(field.name)} must be one of {options}.", param)
    if field.type in ("integer", "number") and isinstance(value, int | float) and not isinstance(value, bool):
        value = bounded(value)
    if not _FITS[field.type](value):
        kind = "date and time" if field.type == "datetime" else field.type
        raise CallFailure("invalid_arguments", f"The {spoken(field.name)} must be of type {kind}.", param)
    return value


_FITS: dict[str, Callable[[JSON], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "date": lambda value: isinstance(value, str) and is_date(value),
    "datetime": lambda value: isinstance(value, str) and (is_datetime(value) or is_date(value)),
    "enum": lambda value: True,
    "ref": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "json": lambda value: True,
}


def _check_unique(
    tx: Transaction, entity: Entity, unique: list[FieldSpec], changes: Mapping[str, JSON], own_key: str | None
) -> None:
    for field in unique:
        value = changes.get(field.name)
        if value is None:
            continue
        for row in tx.tables[entity.name].values():
            if row[KEY] != own_key and same(row[field.name], value):
                message = f"Another {spoken(entity.name)} has this {spoken(field.name)} already."
                raise CallFailure("already_exists", message)
