"""Compiles JSON expressions of a specification to closures over a running call."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

from toolverse_jax.environment.failures import CallFailure
from toolverse_jax.environment.spec import EXPRESSION_OPERATORS, EnvSpec, Expr, FieldSpec
from toolverse_jax.environment.transaction import KEY, Transaction
from toolverse_jax.errors import EnvironmentSpecError
from toolverse_jax.types import JSON, json_equal

Evaluate = Callable[[Transaction], JSON]

LARGEST_NUMBER = 1e15
"""Arithmetic beyond this magnitude is refused, so that every number survives JSON in any language."""


@dataclasses.dataclass(frozen=True)
class Bound:
    """What a binding holds: one row or a list of rows of an entity."""

    entity: str
    many: bool = False
    optional: bool = False
    """The row may be null."""


@dataclasses.dataclass(frozen=True)
class Scope:
    """Names an expression may use, and the place it stands in for error messages."""

    spec: EnvSpec
    properties: Mapping[str, JSON]
    """Properties of the tool's input schema."""
    bindings: Mapping[str, Bound]
    where: str

    def bind(self, name: str, bound: Bound) -> Scope:
        """Return a scope with one more binding."""
        return dataclasses.replace(self, bindings={**self.bindings, name: bound})

    def at(self, where: str) -> Scope:
        """Return the same scope at another place."""
        return dataclasses.replace(self, where=where)

    def fail(self, problem: str) -> EnvironmentSpecError:
        """Return the error that names the environment, the place and the problem."""
        return EnvironmentSpecError(f"environment {self.spec.name!r}, {self.where}: {problem}")

    def row(self, name: object, many: bool = False) -> Bound:
        """Return a binding, checked to exist and to be one row (or a list)."""
        bound = self.bindings.get(name) if isinstance(name, str) else None
        if bound is None:
            known = ", ".join(self.bindings) or "none"
            raise self.fail(f"binding {name!r} does not exist here (bound so far: {known})")
        if bound.many != many:
            raise self.fail(f"binding {name!r} is {'a list of rows' if bound.many else 'one row'}")
        return bound

    def field(self, entity: str, name: object) -> FieldSpec:
        """Return a field of an entity, checked to exist."""
        try:
            return self.spec.entity(entity).field(str(name))
        except KeyError:
            raise self.fail(f"entity {entity!r} has no field {name!r}") from None


@dataclasses.dataclass(frozen=True)
class Expression:
    """A compiled expression with what is known of its value."""

    evaluate: Evaluate
    schema: dict[str, JSON]
    """JSON Schema of the value as callers see it."""
    ref: str | None = None
    """Entity, where the value is an internal key of one of its rows."""
    argument: str | None = None
    """Name of the argument, where the expression is just that argument."""
    constant: bool = False
    literal: JSON = None
    volatile: bool = False
    """The value changes between repeated calls with the same arguments."""


def is_operation(expr: Expr) -> bool:
    """Tell whether an expression is an operator with operands rather than a literal."""
    return (
        isinstance(expr, list | tuple)
        and len(expr) > 0
        and isinstance(expr[0], str)
        and expr[0] in EXPRESSION_OPERATORS
    )


def compile_expression(expr: Expr, scope: Scope) -> Expression:
    """Compile an expression.

    Raises:
        EnvironmentSpecError: an operator has the wrong number of operands, or a name does not resolve.
    """
    if not is_operation(expr):
        return _literal(expr)
    operator, *operands = expr
    arity = EXPRESSION_OPERATORS[operator]
    if arity is not None and len(operands) != arity:
        raise scope.fail(f"operator {operator!r} takes {arity} operand(s), got {len(operands)}")
    if arity is None and not operands:
        raise scope.fail(f"operator {operator!r} needs at least one operand")
    if operator in _ACCESS:
        return _ACCESS[operator](operands, scope)
    parts = [compile_expression(operand, scope) for operand in operands]
    if operator == "coalesce":
        return _coalesce(parts, scope)
    if operator in ("add", "sub", "mul"):
        return _arithmetic(operator, parts)
    parts = _align_references(parts, scope)
    return _logic(operator, parts)


def _literal(value: JSON) -> Expression:
    if isinstance(value, tuple):
        value = list(value)
    return Expression(lambda tx: value, literal_schema(value), constant=True, literal=value)


def literal_schema(value: JSON) -> dict[str, JSON]:
    """Return a JSON Schema that fits one literal."""
    if value is None:
        return {"type": "null"}
    if isinstance(value, bool):
        return {"type": "boolean"}
    if isinstance(value, int):
        return {"type": "integer"}
    if isinstance(value, float):
        return {"type": "number"}
    if isinstance(value, str):
        return {"type": "string"}
    return {"type": "object"} if isinstance(value, Mapping) else {"type": "array"}


def field_schema(spec: EnvSpec, field: FieldSpec, *, nullable: bool = False) -> dict[str, JSON]:
    """Return the JSON Schema of a field's value as callers see it."""
    nullable = nullable or field.nullable
    if field.type == "enum":
        values = list(field.enum or ())
        return {"enum": [*values, None] if nullable and None not in values else values}
    if field.type == "json":
        return {}
    schema: dict[str, JSON]
    if field.type == "ref":
        schema = {"type": spec.entity(field.ref or "").id_scheme.type}
    elif field.type in ("date", "datetime"):
        schema = {"type": "string", "format": "date" if field.type == "date" else "date-time"}
    else:
        schema = {"type": field.type}
    if field.enum is not None:
        schema["enum"] = [*field.enum, None] if nullable else list(field.enum)
    if nullable:
        schema["type"] = [schema["type"], "null"]
    return schema


# --- access -----------------------------------------------------------------------------------


def _arg(operands: list[Any], scope: Scope) -> Expression:
    (name,) = operands
    if name not in scope.properties:
        known = ", ".join(scope.properties) or "none"
        raise scope.fail(f"argument {name!r} is not in the input schema (arguments: {known})")
    return Expression(lambda tx: tx.arguments.get(name), {}, argument=name)


def _field(operands: list[Any], scope: Scope) -> Expression:
    binding, name = operands
    bound = scope.row(binding)
    spec = scope.field(bound.entity, name)
    schema = field_schema(scope.spec, spec, nullable=bound.optional)

    def evaluate(tx: Transaction) -> JSON:
        row = tx.bound[binding]
        return None if row is None else row[name]

    return Expression(evaluate, schema, ref=spec.ref if spec.type == "ref" else None, volatile=True)


def _singleton(operands: list[Any], scope: Scope) -> Expression:
    name, field_name = operands
    for singleton in scope.spec.singletons:
        if singleton.name != name:
            continue
        for spec in singleton.fields:
            if spec.name == field_name:
                return Expression(
                    lambda tx: tx.singletons[name][field_name],
                    field_schema(scope.spec, spec),
                    ref=spec.ref if spec.type == "ref" else None,
                    volatile=True,
                )
        raise scope.fail(f"singleton {name!r} has no field {field_name!r}")
    raise scope.fail(f"singleton {name!r} does not exist")


def _now(_operands: list[Any], _scope: Scope) -> Expression:
    return Expression(lambda tx: tx.now, {"type": "string", "format": "date-time"}, volatile=True)


def _id(operands: list[Any], scope: Scope) -> Expression:
    (binding,) = operands
    bound = scope.row(binding)
    kind = scope.spec.entity(bound.entity).id_scheme.type

    def evaluate(tx: Transaction) -> JSON:
        row = tx.bound[binding]
        return None if row is None else row[KEY]

    return Expression(evaluate, {"type": [kind, "null"] if bound.optional else kind}, ref=bound.entity)


def _count(operands: list[Any], scope: Scope) -> Expression:
    (binding,) = operands
    scope.row(binding, many=True)
    return Expression(lambda tx: len(tx.bound[binding]), {"type": "integer"}, volatile=True)


def _sum(operands: list[Any], scope: Scope) -> Expression:
    binding, name = operands
    spec = scope.field(scope.row(binding, many=True).entity, name)
    if spec.type not in ("integer", "number"):
        raise scope.fail(f"cannot sum field {name!r} of type {spec.type!r}")
    return Expression(
        lambda tx: bounded(sum(row[name] or 0 for row in tx.bound[binding])),
        {"type": spec.type},
        volatile=True,
    )


_ACCESS: dict[str, Callable[[list[Any], Scope], Expression]] = {
    "arg": _arg,
    "field": _field,
    "singleton": _singleton,
    "now": _now,
    "id": _id,
    "count": _count,
    "sum": _sum,
}

# --- combination ------------------------------------------------------------------------------


def _coalesce(parts: list[Expression], scope: Scope) -> Expression:
    refs = {part.ref for part in parts if not (part.constant and part.literal is None)}
    if len(refs) > 1:
        raise scope.fail("operands of 'coalesce' mix rows of different entities with plain values")
    evaluators = [part.evaluate for part in parts]

    def evaluate(tx: Transaction) -> JSON:
        for each in evaluators:
            value = each(tx)
            if value is not None:
                return value
        return None

    schemas = [part.schema for part in parts]
    schema = schemas[0] if all(each == schemas[0] for each in schemas) else {}
    volatile = any(part.volatile for part in parts)
    return Expression(evaluate, schema, ref=next(iter(refs), None), volatile=volatile)


def bounded(value: float) -> float:
    """Return a number as it is stored: six decimals, integral values as integers.

    Raises:
        CallFailure: the magnitude is beyond `LARGEST_NUMBER`.
    """
    if isinstance(value, int):
        if -LARGEST_NUMBER <= value <= LARGEST_NUMBER:
            return value
        raise CallFailure("limit_exceeded", "The number is too large.")
    if not math.isfinite(value) or abs(value) > LARGEST_NUMBER:
        raise CallFailure("limit_exceeded", "The number is too large.")
    value = round(value, 6)
    return int(value) if value.is_integer() else value


def _is_number(value: JSON) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _arithmetic(operator: str, parts: list[Expression]) -> Expression:
    left, right = (part.evaluate for part in parts)

    def evaluate(tx: Transaction) -> JSON:
        a, b = left(tx), right(tx)
        if a is None or b is None:
            return None
        if operator == "add" and isinstance(a, str) and isinstance(b, str):
            return a + b
        if not (_is_number(a) and _is_number(b)):
            raise CallFailure("unsupported", "The values cannot be combined because they are not numbers.")
        return bounded(a + b if operator == "add" else a - b if operator == "sub" else a * b)

    kinds = {str(part.schema.get("type")) for part in parts}
    schema = (
        {"type": "integer"}
        if kinds == {"integer"}
        else {"type": "number"}
        if kinds <= {"integer", "number"}
        else {}
    )
    return Expression(evaluate, schema, volatile=any(part.volatile for part in parts))


def _align_references(parts: list[Expression], scope: Scope) -> list[Expression]:
    """Compare rows with rows: an argument beside a row reference is read as an identifier."""
    entity = next((part.ref for part in parts if part.ref), None)
    if entity is None:
        return parts
    return [resolve_argument(part, entity) if part.argument else part for part in parts]


def resolve_argument(part: Expression, entity: str) -> Expression:
    """Return an expression whose value is the internal key that an identifier argument stands for."""

    def evaluate(tx: Transaction) -> JSON:
        value = part.evaluate(tx)
        # An unknown identifier must equal no row, not even an absent reference.
        return None if value is None else tx.identifiers.key_of(entity, value) or "?"

    return dataclasses.replace(part, evaluate=evaluate, ref=entity, argument=None)


def compare_le(a: JSON, b: JSON) -> bool:
    """Tell whether a <= b for two numbers or two strings; false for anything else.

    A date-time is compared with a plain date by its day, so "until a day" includes that day.
    """
    if isinstance(a, str) and isinstance(b, str):
        if len(a) > len(b) == 10 and a[10] == "T":
            return a[:10] <= b
        return a <= b
    return _is_number(a) and _is_number(b) and a <= b


def compare_lt(a: JSON, b: JSON) -> bool:
    """Tell whether a < b for two numbers or two strings; false for anything else."""
    if isinstance(a, str) and isinstance(b, str):
        if len(b) > len(a) == 10 and b[10] == "T":
            return a < b[:10]
        return a < b
    return _is_number(a) and _is_number(b) and a < b


def same(a: JSON, b: JSON) -> bool:
    """Tell whether two JSON values are equal; `json_equal` with short cuts for texts and null."""
    if type(a) is str or a is None or b is None:
        return a == b
    return json_equal(a, b)


def _contains(item: JSON, container: JSON) -> bool:
    if isinstance(container, str):
        return isinstance(item, str) and item in container
    return isinstance(container, list) and any(json_equal(item, each) for each in container)


_COMPARISONS: dict[str, Callable[[JSON, JSON], bool]] = {
    "eq": same,
    "ne": lambda a, b: not same(a, b),
    "lt": compare_lt,
    "le": compare_le,
    "gt": lambda a, b: compare_lt(b, a),
    "ge": lambda a, b: compare_le(b, a),
    "in": _contains,
}


def _logic(operator: str, parts: list[Expression]) -> Expression:
    evaluators = [part.evaluate for part in parts]
    first, second = evaluators[0], evaluators[-1]

    def evaluate_and(tx: Transaction) -> JSON:
        return all(each(tx) for each in evaluators)

    def evaluate_or(tx: Transaction) -> JSON:
        return any(each(tx) for each in evaluators)

    evaluate: Evaluate
    if operator == "and":
        evaluate = evaluate_and
    elif operator == "or":
        evaluate = evaluate_or
    elif operator == "not":
        evaluate = lambda tx: not first(tx)  # noqa: E731
    else:
        compare = _COMPARISONS[operator]
        evaluate = lambda tx: compare(first(tx), second(tx))  # noqa: E731
    return Expression(evaluate, {"type": "boolean"}, volatile=any(part.volatile for part in parts))
