"""Checks of the public interface: schemas of arguments and results, determinism, isolation."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from toolverse_jax.synthesis.probe import Probe, Row, Tables
from toolverse_jax.types import JSON, ToolResult


@dataclasses.dataclass(frozen=True, kw_only=True)
class Check:
    """One thing that was tried, and whether the environment behaved."""

    layer: str
    law: str
    tool: str
    passed: bool | None
    """None: the situation could not be reached, so nothing is known."""
    detail: str = ""


def error_code(result: ToolResult) -> str | None:
    """Return the error code of a failed call, None for a successful one."""
    if not result.is_error:
        return None
    error = result.value.get("error") if isinstance(result.value, Mapping) else None
    return error.get("code", "") if isinstance(error, Mapping) else ""


def schema_checks(probe: Probe, tool: str) -> Iterator[Check]:
    """Yield checks that a tool takes what its schema allows and refuses the rest untouched."""

    def check(law: str, passed: bool | None, detail: str = "") -> Check:
        return Check(layer="schema", law=law, tool=tool, passed=passed, detail=detail)

    found = probe.any_working(tool)
    yield check("valid arguments are accepted", found is not None)
    if found is None:
        return
    if probe.optional_parameters(tool):
        yield check("optional arguments are accepted", probe.any_working(tool, optional=True) is not None)
    seed, arguments = probe.any_working(tool, optional=True) or found
    for law, wrong in _wrong_arguments(probe.schemas[tool], arguments):
        session = probe.session(seed)
        before = session.state_hash()
        result = session.call(tool, wrong)
        unchanged = session.state_hash() == before
        passed = error_code(result) == "invalid_arguments" and unchanged
        yield check(law, passed, f"{sorted(wrong)} answered {error_code(result)!r}, unchanged: {unchanged}")


def _wrong_arguments(schema: Mapping[str, Any], arguments: dict[str, JSON]) -> Iterator[tuple[str, dict]]:
    for name in schema.get("required", ()):
        yield "a missing argument is refused", {k: v for k, v in arguments.items() if k != name}
    for name, part in schema.get("properties", {}).items():
        wrong = _wrong_type(part)
        if wrong is not None:
            yield "a wrong type is refused", {**arguments, name: wrong}
        if part.get("enum"):
            stranger = "none of these" if isinstance(part["enum"][0], str) else FAR
            yield "a value outside the enum is refused", {**arguments, name: stranger}
        if isinstance(part.get("maximum"), int | float):
            yield "a number above the maximum is refused", {**arguments, name: part["maximum"] + 1}
        if isinstance(part.get("minimum"), int | float):
            yield "a number below the minimum is refused", {**arguments, name: part["minimum"] - 1}
    if schema.get("additionalProperties") is False:
        yield "an unknown argument is refused", {**arguments, "no_such_argument": "x"}


FAR = 987654321


def _wrong_type(schema: Mapping[str, Any]) -> JSON:
    kind = schema.get("type")
    wrong = {"string": 7, "integer": "seven", "number": "seven", "boolean": "yes", "array": 7, "object": 7}
    return wrong.get(kind) if isinstance(kind, str) else None


def output_checks(probe: Probe, tool: str) -> Iterator[Check]:
    """Yield checks that answers fit the derived schema and that their identifiers resolve."""
    for seed in probe.seeds[:2]:
        arguments = probe.working(tool, seed)
        if arguments is None:
            continue
        session = probe.session(seed)
        result = session.call(tool, arguments)
        problem = probe.output_problem(tool, result.value)
        yield Check(
            layer="output",
            law="the answer fits its schema",
            tool=tool,
            passed=problem is None and not result.is_error,
            detail=problem or "",
        )
        yield Check(
            layer="output",
            law="identifiers in the answer resolve",
            tool=tool,
            passed=not (lost := _lost_identifiers(probe, tool, result.value, session)),
            detail=", ".join(lost),
        )


def _lost_identifiers(probe: Probe, tool: str, value: JSON, session: Any) -> list[str]:
    operation = probe.operations[tool]
    entity = probe.entities.get(operation.output.entity or operation.entity or "")
    if entity is None or operation.output.shape not in ("record", "list"):
        return []
    tables = probe.tables(session)
    lost = []
    for row in output_rows(probe, tool, value):
        if operation.verb != "delete" and row.get(entity.id_name) not in tables[entity.name]:
            lost.append(f"{entity.id_name}={row.get(entity.id_name)!r}")
        for field in entity.fields:
            identifier = row.get(field.name)
            if field.type == "ref" and identifier is not None and identifier not in tables[field.ref or ""]:
                lost.append(f"{field.name}={identifier!r}")
    return lost


def output_rows(probe: Probe, tool: str, value: JSON) -> list[Row]:
    """Return the rows inside an answer: the record itself, or the items of the list."""
    operation = probe.operations[tool]
    if not isinstance(value, Mapping):
        return []
    if operation.output.shape == "record":
        return [dict(value)]
    if operation.output.shape == "list":
        entity = probe.entities.get(operation.output.entity or operation.entity or "")
        items = value.get(entity.plural if entity else "", ())
        return [dict(item) for item in items if isinstance(item, Mapping)] if isinstance(items, list) else []
    return []


def isolation_checks(probe: Probe) -> Iterator[Check]:
    """Yield checks that a seed fixes everything and that sessions share nothing."""

    def check(law: str, passed: bool) -> Check:
        return Check(layer="isolation", law=law, tool="", passed=passed)

    seed = probe.seeds[0]
    script = [
        (tool, arguments)
        for tool in sorted(probe.operations)
        if (arguments := probe.working(tool, seed)) is not None
    ]
    left, right, still = probe.session(seed), probe.reopen(seed), probe.session(seed)
    start = still.state_hash()
    first = [left.call(tool, arguments) for tool, arguments in script]
    untouched = still.state_hash() == start and right.state_hash() == start
    yield check("a session never sees the calls of another", untouched)
    second = [right.call(tool, arguments) for tool, arguments in script]
    yield check(
        "the same seed and calls give the same answers",
        first == second and left.state_hash() == right.state_hash(),
    )
    one, two = probe.session(seed), probe.session(seed)
    mixed = [(one.call(tool, arguments), two.call(tool, arguments)) for tool, arguments in script]
    yield check(
        "interleaved sessions are independent",
        all(a == b == c for (a, b), c in zip(mixed, first, strict=True)),
    )
    first_seed, second_seed = (_identifiers(probe.first_tables(number)) for number in probe.seeds[:2])
    yield check("another seed gives other identifiers", first_seed != second_seed)
    unknown = probe.session(seed).call("no_such_tool", {})
    yield check("an unknown tool is refused", error_code(unknown) == "unknown_tool")


def _identifiers(tables: Tables) -> list[JSON]:
    """Return every identifier of every table."""
    return [identifier for table in tables.values() for identifier in table]
