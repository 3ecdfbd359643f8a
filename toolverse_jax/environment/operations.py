"""Compiles an operation of a specification to a plan the engine can run."""

from __future__ import annotations

import dataclasses

from toolverse_jax.environment.arguments import ArgumentChecker
from toolverse_jax.environment.expressions import Scope, compile_expression, is_operation
from toolverse_jax.environment.failures import CallFailure
from toolverse_jax.environment.outputs import Render, compile_output
from toolverse_jax.environment.spec import (
    Delete,
    EnvSpec,
    Insert,
    Operation,
    SetSingleton,
    Transition,
    Update,
)
from toolverse_jax.environment.steps import READS, RunStep, compile_step, entity_of
from toolverse_jax.types import JSON


@dataclasses.dataclass(frozen=True)
class Annotations:
    """What a tool does to the state, in MCP's terms; derived from the steps, never declared."""

    read_only: bool
    destructive: bool
    """Changes or removes what exists, rather than only adding."""
    idempotent: bool
    """Repeating the call with the same arguments has no further effect."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """A compiled operation. Everything in `steps` is atomic: a failure undoes the whole call."""

    tool: str
    checker: ArgumentChecker
    steps: tuple[RunStep, ...]
    render: Render
    output_schema: dict[str, JSON]
    annotations: Annotations


def compile_operation(spec: EnvSpec, operation: Operation) -> Plan:
    """Compile an operation: lookups and queries, then guards, then changes, then the output.

    Absent arguments take the default of their schema, except in `update` and `settings` operations,
    where an absent argument leaves the field as it is.

    Raises:
        EnvironmentSpecError: something in the operation does not resolve; the sentence names the place.
    """
    tool = spec.tool(operation.tool)
    where = f"tool {tool.name!r}"
    checker = ArgumentChecker(
        tool.input_schema,
        where=f"environment {spec.name!r}, {where}",
        use_defaults=operation.verb not in ("update", "settings"),
    )
    scope = Scope(spec, tool.input_schema.get("properties", {}), {}, where)
    _check_args(operation, scope)
    steps: list[RunStep] = []
    guarded = False
    for index, step in enumerate(operation.steps):
        if not guarded and not isinstance(step, READS):
            steps += _compile_guards(operation, scope)
            guarded = True
        run, scope = compile_step(step, scope.at(f"{where}, step {index + 1} ({step.op})"), operation.args)
        steps.append(run)
    if not guarded:
        steps += _compile_guards(operation, scope)
    render, schema = compile_output(operation.output, scope.at(f"{where}, output"))
    return Plan(tool.name, checker, tuple(steps), render, schema, annotate(operation, scope))


def output_schema(spec: EnvSpec, operation: Operation) -> dict[str, JSON]:
    """Return the JSON Schema of what a successful call of an operation returns.

    Raises:
        EnvironmentSpecError: something in the operation does not resolve.
    """
    return compile_operation(spec, operation).output_schema


def _check_args(operation: Operation, scope: Scope) -> None:
    for name, binding in operation.args.items():
        place = scope.at(f"{scope.where}, argument {name!r}")
        if name not in scope.properties:
            known = ", ".join(scope.properties) or "none"
            raise place.fail(f"it is not in the input schema (arguments: {known})")
        if binding.entity is not None:
            entity = entity_of(place, binding.entity)
            if binding.field is not None and binding.field != entity.id_name:
                place.field(entity.name, binding.field)
        elif binding.field is not None and binding.role in ("id", "natural_key"):
            raise place.fail(f"it names field {binding.field!r} without an entity")
    if operation.entity is not None:
        entity_of(scope, operation.entity)


def _compile_guards(operation: Operation, scope: Scope) -> list[RunStep]:
    runs: list[RunStep] = []
    for index, guard in enumerate(operation.guards):
        place = scope.at(f"{scope.where.split(', step')[0]}, guard {index + 1}")
        if not is_operation(guard.condition) and not isinstance(guard.condition, bool):
            raise place.fail(f"the condition is not an expression: {guard.condition!r}")
        condition = compile_expression(guard.condition, place).evaluate
        code, message = guard.code, guard.message

        def run(tx, condition=condition, code=code, message=message) -> None:
            if not condition(tx):
                raise CallFailure(code, message)

        runs.append(run)
    return runs


def annotate(operation: Operation, scope: Scope) -> Annotations:
    """Derive the annotations of an operation from its steps."""
    writes = [step for step in operation.steps if not isinstance(step, READS)]
    destructive = any(not isinstance(step, Insert) for step in writes)
    return Annotations(
        read_only=not writes,
        destructive=destructive,
        idempotent=all(_is_idempotent(step, scope) for step in writes),
    )


def _is_idempotent(step: object, scope: Scope) -> bool:
    if isinstance(step, Delete | Transition):
        return True
    if isinstance(step, Update | SetSingleton):
        return not any(compile_expression(expr, scope).volatile for expr in step.values.values())
    return False
