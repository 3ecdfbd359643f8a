"""Mutation check: break a specification in small ways and see whether the laws notice.

A validation that no broken environment fails proves nothing. Every mutant changes one thing of one
operation or entity; the laws of the *original* specification are then tried on the mutant's
sessions. A mutant that breaks no law survives, and is listed.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from toolverse_jax.environment import Environment
from toolverse_jax.environment.spec import (
    Adjust,
    Delete,
    EnvSpec,
    FieldSpec,
    Insert,
    Lookup,
    Operation,
    Query,
    Record,
    SetSingleton,
    Transition,
    Update,
)
from toolverse_jax.errors import EnvironmentSpecError
from toolverse_jax.synthesis.declared_laws import reachable_bounds
from toolverse_jax.synthesis.laws import tool_checks
from toolverse_jax.synthesis.probe import Probe
from toolverse_jax.synthesis.read_laws import is_mutator
from toolverse_jax.types import JSON

FALL_BACK_CODE = "unsupported"

Schema = Mapping[str, Any]
StepMutant = tuple[str, Record | None]
"""What was broken, and the step in its place; None: the step is left out."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Mutant:
    """A broken copy of a specification."""

    name: str
    """What was broken, such as `cancel_stay: skip delete`."""
    tool: str
    """Tool whose laws should notice."""
    spec: EnvSpec


@dataclasses.dataclass(frozen=True, kw_only=True)
class MutationReport:
    """How many mutants the laws noticed."""

    killed: int
    total: int
    survivors: tuple[str, ...]
    stillborn: int
    """Mutants that the interpreter refused to compile; they count neither way."""
    by_kind: dict[str, tuple[int, int]]
    """Kind of mutation -> (killed, total)."""

    @property
    def kill_rate(self) -> float:
        """Share of mutants that broke a law; 1.0 where there was none to make."""
        return self.killed / self.total if self.total else 1.0


def check_mutants(spec: EnvSpec, probe: Probe) -> MutationReport:
    """Try the laws on every mutant.

    Args:
        spec: the specification that is validated.
        probe: the probe its own validation used; its working arguments are tried first.
    """
    killed = stillborn = 0
    survivors: list[str] = []
    by_kind: dict[str, tuple[int, int]] = {}
    for mutant in mutants(spec):
        try:
            environment = Environment(_reduced(mutant))
        except (EnvironmentSpecError, ValueError):
            stillborn += 1
            continue
        dead = _is_noticed(spec, environment, mutant.tool, probe)
        killed += dead
        if not dead:
            survivors.append(mutant.name)
        kind = mutant.name.partition(": ")[2]
        kind = kind.partition(" of ")[0]
        done, total = by_kind.get(kind, (0, 0))
        by_kind[kind] = done + dead, total + 1
    return MutationReport(
        killed=killed,
        total=killed + len(survivors),
        survivors=tuple(survivors),
        stillborn=stillborn,
        by_kind=dict(sorted(by_kind.items())),
    )


def _reduced(mutant: Mutant) -> EnvSpec:
    """Return a mutant with only the tools that the laws of its tool call, which compiles faster."""
    broken = mutant.spec.operation(mutant.tool)
    kept = [
        o
        for o in mutant.spec.operations
        if o.tool == mutant.tool or (not is_mutator(o) and o.entity == broken.entity)
    ]
    names = {operation.tool for operation in kept}
    tools = tuple(tool for tool in mutant.spec.tools if tool.name in names)
    return mutant.spec.model_copy(update={"tools": tools, "operations": tuple(kept)})


def _is_noticed(spec: EnvSpec, environment: Environment, tool: str, original: Probe) -> bool:
    probe = Probe(spec, environment.session, seeds=original.seeds)
    probe.reuse_arguments(original)
    return any(check.passed is False for check in tool_checks(probe, tool))


def mutants(spec: EnvSpec) -> Iterator[Mutant]:
    """Yield every mutant of a specification, in a fixed order."""
    for operation in spec.operations:
        if operation.simulated == "none":
            continue
        for name, changed in _operation_mutants(spec, operation):
            operations = tuple(changed if o.tool == operation.tool else o for o in spec.operations)
            broken = spec.model_copy(update={"operations": operations})
            yield Mutant(name=f"{operation.tool}: {name}", tool=operation.tool, spec=broken)
    yield from _entity_mutants(spec)


def _operation_mutants(spec: EnvSpec, operation: Operation) -> Iterator[tuple[str, Operation]]:
    for index, guard in enumerate(operation.guards):
        rest = operation.guards[:index] + operation.guards[index + 1 :]
        yield f"drop guard of number {index}", _with(operation, guards=rest)
        for kind, change in (
            ("negate guard", {"condition": ["not", guard.condition]}),
            ("wrong code in guard", {"code": FALL_BACK_CODE}),
        ):
            guards = (*operation.guards[:index], _with(guard, **change), *operation.guards[index + 1 :])
            yield f"{kind} of number {index}", _with(operation, guards=guards)
    schema = spec.tool(operation.tool).input_schema
    for index, step in enumerate(operation.steps):
        for name, changed in _step_mutants(spec, step, schema):
            middle = () if changed is None else (changed,)
            steps = (*operation.steps[:index], *middle, *operation.steps[index + 1 :])
            yield f"{name}", _with(operation, steps=steps)
    yield from _extra_writes(spec, operation)
    yield from _output_mutants(spec, operation)


def _with(record: Any, **changes: Any) -> Any:
    return record.model_copy(update=changes)


def _step_mutants(spec: EnvSpec, step: Record, schema: Schema) -> Iterator[StepMutant]:
    for kind, make in _BY_STEP.items():
        if isinstance(step, kind):
            yield from make(spec, step, schema)


def _lookups(spec: EnvSpec, step: Lookup, schema: Schema) -> Iterator[StepMutant]:
    other = next((entity.name for entity in spec.entities if entity.name != step.entity), None)
    if other is not None and step.field is None:
        yield f"wrong table of {step.arg}", _with(step, entity=other)


def _queries(spec: EnvSpec, step: Query, schema: Schema) -> Iterator[StepMutant]:
    for index, kept in enumerate(step.filters):
        rest = step.filters[:index] + step.filters[index + 1 :]
        yield f"ignore filter of {kept.arg}", _with(step, filters=rest)
        other = "contains" if kept.match in ("ge", "le") else "le" if kept.match == "exact" else "exact"
        changed = (*step.filters[:index], _with(kept, match=other), *step.filters[index + 1 :])
        yield f"wrong match of {kept.arg}", _with(step, filters=changed)
    if step.where is not None:
        yield "drop condition of query", _with(step, where=None)
    if step.sort_field is not None:
        yield "sort backwards of query", _with(step, descending=not step.descending)
    for name in ("limit_arg", "offset_arg"):
        if getattr(step, name) is not None:
            yield f"ignore {name} of query", _with(step, **{name: None})
    yield "only one row of query", _with(step, limit=1)


def _inserts(spec: EnvSpec, step: Insert, schema: Schema) -> Iterator[StepMutant]:
    yield from _values(step)
    fields = {field.name: field for field in spec.entity(step.entity).fields}
    for name in step.values:
        constant = _constant(fields[name])
        if constant is not None:
            yield f"constant in place of {name}", _with(step, values={**step.values, name: constant})


def _constant(field: FieldSpec) -> JSON:
    """Return some value that fits a field; None for references and containers."""
    if field.enum:
        return field.enum[-1]
    plain = {"string": "changed", "integer": 77777, "number": 77777, "boolean": True, "date": "2001-01-01"}
    return {**plain, "datetime": "2001-01-01T00:00:00"}.get(field.type)


def _updates(spec: EnvSpec, step: Update, schema: Schema) -> Iterator[StepMutant]:
    yield "skip write of update", None
    yield from _values(step)
    silent = {name for name in schema.get("properties", {}) if name not in schema.get("required", ())}
    if step.skip_null and any(_argument(value) in silent for value in step.values.values()):
        yield "erase what is not given of update", _with(step, skip_null=False)


def _argument(expression: Any) -> str | None:
    """Return the name of the argument an expression stands for, None where it is something else."""
    is_argument = isinstance(expression, list | tuple) and len(expression) == 2 and expression[0] == "arg"
    return expression[1] if is_argument else None


def _values(step: Any) -> Iterator[StepMutant]:
    """Ignore each stored argument, and store two of them in each other's field."""
    names = list(step.values)
    for name in names:
        yield (
            f"ignore argument of {name}",
            _with(step, values={k: v for k, v in step.values.items() if k != name}),
        )
    for left, right in itertools.pairwise(names):
        swapped = {**step.values, left: step.values[right], right: step.values[left]}
        yield f"swap fields of {left} and {right}", _with(step, values=swapped)


def _deletes(spec: EnvSpec, step: Delete, schema: Schema) -> Iterator[StepMutant]:
    yield "skip delete of row", None


def _transitions(spec: EnvSpec, step: Transition, schema: Schema) -> Iterator[StepMutant]:
    yield "skip transition of row", None
    lifecycle = spec.entity(step.entity).lifecycle
    transitions = lifecycle.transitions if lifecycle is not None else {}
    for verb in transitions:
        if verb != step.verb and transitions[verb] != transitions[step.verb]:
            yield f"wrong transition of {verb}", _with(step, verb=verb)


def _adjusts(spec: EnvSpec, step: Adjust, schema: Schema) -> Iterator[StepMutant]:
    yield f"skip adjustment of {step.field}", None
    yield f"negate amount of {step.field}", _with(step, amount=["sub", 0, step.amount])
    yield f"amount off by one of {step.field}", _with(step, amount=["add", step.amount, 1])
    for bound in ("minimum", "maximum"):
        if getattr(step, bound) is not None and bound in reachable_bounds(step, schema):
            yield f"drop {bound} of {step.field}", _with(step, **{bound: None})


def _singletons(spec: EnvSpec, step: SetSingleton, schema: Schema) -> Iterator[StepMutant]:
    yield from _values(step)


_BY_STEP: dict[type, Callable[[EnvSpec, Any, Schema], Iterator[StepMutant]]] = {
    Lookup: _lookups,
    Query: _queries,
    Insert: _inserts,
    Update: _updates,
    Delete: _deletes,
    Transition: _transitions,
    Adjust: _adjusts,
    SetSingleton: _singletons,
}


def _extra_writes(spec: EnvSpec, operation: Operation) -> Iterator[tuple[str, Operation]]:
    """Change one more field of a row the operation has looked up."""
    deleted = {step.row for step in operation.steps if isinstance(step, Delete)}
    written = {
        name for step in operation.steps if isinstance(step, Update | Insert) for name in step.values
    } | {step.field for step in operation.steps if isinstance(step, Adjust)}
    for step in operation.steps:
        if not isinstance(step, Lookup | Insert) or step.bind in deleted or getattr(step, "optional", False):
            continue
        entity = spec.entity(step.entity)
        state = entity.lifecycle.field if entity.lifecycle else None
        for field in entity.fields:
            if (
                field.type in ("string", "integer", "number")
                and field.name not in written
                and field.name != state
            ):
                value: Any = "changed" if field.type == "string" else 77777
                extra = Update(entity=entity.name, row=step.bind, values={field.name: value})
                yield f"extra write of {field.name}", _with(operation, steps=(*operation.steps, extra))
                break


def _output_mutants(spec: EnvSpec, operation: Operation) -> Iterator[tuple[str, Operation]]:
    output = operation.output
    for name, expression in output.extra.items():
        wrong = _with(output, extra={**output.extra, name: ["coalesce", None, 77777]})
        if not isinstance(expression, str | bool):
            yield f"wrong result of {name}", _with(operation, output=wrong)
    if output.shape == "record" and output.fields is None and output.entity is not None:
        yield "empty answer of record", _with(operation, output=_with(output, fields=()))


def _entity_mutants(spec: EnvSpec) -> Iterator[Mutant]:
    for entity in spec.entities:
        for name, tool, changed in _broken_entities(spec, entity):
            entities = tuple(changed if e.name == entity.name else e for e in spec.entities)
            broken = spec.model_copy(update={"entities": entities})
            yield Mutant(name=f"{tool}: {name}", tool=tool, spec=broken)


def _broken_entities(spec: EnvSpec, entity: Any) -> Iterator[tuple[str, str, Any]]:
    def user(kind: type, **wanted: str) -> str | None:
        for operation in spec.operations:
            for step in operation.steps:
                if isinstance(step, kind) and all(getattr(step, k) == v for k, v in wanted.items()):
                    return operation.tool
        return None

    lifecycle = entity.lifecycle
    for verb, (sources, end) in lifecycle.transitions.items() if lifecycle else ():
        tool = user(Transition, entity=entity.name, verb=verb)
        states = tuple(entity.field(lifecycle.field).enum or ())
        if tool is None:
            continue
        variants = {"any state is a source": (states, end)}
        if states and states[0] != end:
            variants["wrong end state"] = sources, states[0]
        for name, transition in variants.items():
            if set(transition[0]) != set(sources) or transition[1] != end:
                transitions = {**lifecycle.transitions, verb: transition}
                yield (
                    f"{name} of {verb}",
                    tool,
                    _with(entity, lifecycle=_with(lifecycle, transitions=transitions)),
                )
    creator = user(Insert, entity=entity.name)
    for field in entity.fields:
        if field.unique and creator is not None:
            fields = tuple(_with(f, unique=False) if f is field else f for f in entity.fields)
            yield f"drop uniqueness of {field.name}", creator, _with(entity, fields=fields)
    deleter = user(Delete, entity=entity.name)
    used = any(field.ref == entity.name for e in spec.entities for field in e.fields)
    if deleter is not None and used:
        other = "cascade" if entity.on_delete == "restrict" else "restrict"
        yield f"wrong fate of dependents of {entity.name}", deleter, _with(entity, on_delete=other)
