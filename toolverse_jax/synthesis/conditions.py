"""Evaluate declared conditions over rows as a caller sees them, apart from the interpreter."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from toolverse_jax.types import JSON, json_equal

Bound = dict[str, tuple[str, Any]]
"""Binding -> (entity, row, list of rows or None)."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scope:
    """What an expression can refer to."""

    arguments: Mapping[str, JSON]
    bound: Bound
    id_names: Mapping[str, str]
    """Name of the identifier in the rows of each entity."""
    session: Any = None
    """Session for singletons and the clock; None where neither is used."""
    now: str = ""


def evaluate(expression: Any, scope: Scope) -> Any:
    """Return the value of a declared expression; what is not an expression is itself."""
    if not (isinstance(expression, list | tuple) and expression and expression[0] in _KNOWN):
        return expression
    name, *operands = expression
    if name in _READERS:
        return _READERS[name](scope, *operands)
    return _OPERATORS[name](*(evaluate(operand, scope) for operand in operands))


def _field(scope: Scope, binding: str, name: str) -> Any:
    row = scope.bound[binding][1]
    return None if row is None else row.get(name)


def _identifier(scope: Scope, binding: str) -> Any:
    entity, row = scope.bound[binding]
    return None if row is None else row[scope.id_names[entity]]


_READERS: dict[str, Callable[..., Any]] = {
    "arg": lambda scope, name: scope.arguments.get(name),
    "field": _field,
    "id": _identifier,
    "count": lambda scope, binding: len(scope.bound[binding][1]),
    "sum": lambda scope, binding, name: sum(row.get(name) or 0 for row in scope.bound[binding][1]),
    "now": lambda scope: scope.now if scope.session is None else scope.session.now,
    "singleton": lambda scope, name, field: scope.session and scope.session.singleton(name).get(field),
}


def compare(left: JSON, right: JSON, mode: str) -> bool:
    """Compare a field with an argument in one of the match modes of a filter."""
    if mode == "exact":
        return json_equal(left, right)
    if left is None or right is None:
        return False
    if mode == "ci":
        return str(left).casefold() == str(right).casefold()
    if mode == "contains":
        return str(right).casefold() in str(left).casefold()
    return left >= right if mode == "ge" else left <= right


def _ordered(test: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda left, right: left is not None and right is not None and test(left, right)


_OPERATORS: dict[str, Callable[..., Any]] = {
    "coalesce": lambda *values: next((v for v in values if v is not None), None),
    "add": lambda left, right: (left or 0) + (right or 0),
    "sub": lambda left, right: (left or 0) - (right or 0),
    "mul": lambda left, right: (left or 0) * (right or 0),
    "eq": json_equal,
    "ne": lambda left, right: not json_equal(left, right),
    "lt": _ordered(lambda left, right: left < right),
    "le": _ordered(lambda left, right: left <= right),
    "gt": _ordered(lambda left, right: left > right),
    "ge": _ordered(lambda left, right: left >= right),
    "in": lambda left, right: any(json_equal(left, item) for item in right or ()),
    "and": lambda *values: all(values),
    "or": lambda *values: any(values),
    "not": lambda value: not value,
}

_KNOWN = frozenset(_READERS) | frozenset(_OPERATORS)
