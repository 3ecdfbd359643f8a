"""Laws of tools that read, and of every tool.

A law is stated over calls and tables as a caller sees them: it knows what a tool *declares* (verb,
entity, bindings of its parameters), never how the interpreter does it. So an environment whose
tools do something else than they declare breaks a law.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from toolverse_jax.environment.spec import Operation, Query
from toolverse_jax.synthesis.interface_checks import Check, error_code, output_rows
from toolverse_jax.synthesis.probe import Probe, Row, Tables
from toolverse_jax.types import JSON, ToolResult, json_equal

READING = ("list", "search", "get", "aggregate")
Arguments = Mapping[str, JSON]


def is_mutator(operation: Operation) -> bool:
    """Tell whether a tool declares to change anything."""
    return operation.verb not in READING and any(
        step.op not in ("lookup", "query") for step in operation.steps
    )


def check(
    operation: Operation, law: str, passed: bool | None, detail: str = "", layer: str = "laws"
) -> Check:
    """Return the check of one law on one tool."""
    return Check(layer=layer, law=law, tool=operation.tool, passed=passed, detail=detail)


# --- every tool -------------------------------------------------------------------------------


def fabricated_identifier_checks(probe: Probe, operation: Operation) -> Iterator[Check]:
    found = probe.any_working(operation.tool, optional=True) or probe.any_working(operation.tool)
    if found is None:
        return
    seed, arguments = found
    for name, entity in probe.target_args(operation):
        if name not in arguments or isinstance(arguments[name], list):
            continue
        strangers = [probe.fabricated(operation.tool, name)]
        if operation.args[name].role == "id":
            other = next((e for e in probe.entities if e != entity), None)
            strangers += list(probe.first_tables(seed)[other])[:1] if other else []
        for stranger in strangers:
            session = probe.session(seed)
            before = session.state_hash()
            result = session.call(operation.tool, {**arguments, name: stranger})
            passed = error_code(result) == "not_found" and session.state_hash() == before
            yield check(
                operation, "an unknown identifier is not found", passed, f"{name}: {error_code(result)!r}"
            )


def unsupported_checks(probe: Probe, operation: Operation) -> Iterator[Check]:
    """Yield checks that a tool declared as not simulated says so and does nothing."""
    seed = probe.seeds[0]
    for arguments in probe.candidates(operation.tool, seed, probe.first_tables(seed), limit=2):
        session = probe.session(seed)
        before = session.state_hash()
        code = error_code(session.call(operation.tool, arguments))
        passed = code == "unsupported" and session.state_hash() == before
        yield check(operation, "a tool that is not simulated says so", passed, f"{code!r}")


# --- tools that read --------------------------------------------------------------------------


def read_checks(probe: Probe, operation: Operation) -> Iterator[Check]:
    """Yield the checks of a tool that reads."""
    yield from _pure(probe, operation)
    if operation.output.shape == "list":
        yield from _listing(probe, operation)
    elif operation.output.shape == "record":
        yield from _getting(probe, operation)
    if operation.verb == "aggregate":
        yield from _aggregating(probe, operation)


def _pure(probe: Probe, operation: Operation) -> Iterator[Check]:
    for seed in probe.seeds[:2]:
        arguments = probe.working(operation.tool, seed)
        if arguments is None:
            continue
        session = probe.session(seed)
        before = session.state_hash(), probe.tables(session)
        first, second = session.call(operation.tool, arguments), session.call(operation.tool, arguments)
        pure = (session.state_hash(), probe.tables(session)) == before
        yield check(operation, "reading changes nothing", pure)
        yield check(operation, "reading twice gives the same answer", first == second)


def _getting(probe: Probe, operation: Operation) -> Iterator[Check]:
    target = probe.own_target(operation)
    if target is None:
        return
    for seed in probe.seeds[:2]:
        arguments = probe.working(operation.tool, seed)
        tables = probe.first_tables(seed)
        for row in list(tables[operation.entity or ""].values())[:3] if arguments is not None else ():
            named = {**(arguments or {}), target: _named(probe, operation, target, row)}
            result = probe.session(seed).call(operation.tool, probe.aligned(operation, named, tables))
            passed = not result.is_error and shows(result.value, row, probe, operation)
            yield check(operation, "the row asked for is shown as it is", passed, str(result.value)[:200])


def _named(probe: Probe, operation: Operation, parameter: str, row: Row) -> JSON:
    field = probe.row_field(operation, parameter)
    if operation.args[parameter].role == "natural_key":
        field = operation.args[parameter].field
    return row.get(field or "")


def shows(value: JSON, row: Row, probe: Probe, operation: Operation) -> bool:
    """Tell whether an answer shows a row: its identifier and the values its table holds."""
    entity = probe.entities[operation.output.entity or operation.entity or ""]
    if not isinstance(value, Mapping) or not json_equal(value.get(entity.id_name), row[entity.id_name]):
        return False
    return all(json_equal(value[name], row[name]) for name in value if name in row)


def _listing(probe: Probe, operation: Operation) -> Iterator[Check]:
    for seed in probe.seeds[:3]:
        for arguments in _listing_arguments(probe, operation, seed):
            session = probe.session(seed)
            result = session.call(operation.tool, arguments)
            if result.is_error and probe.may_refuse(operation, arguments, seed):
                continue
            if result.is_error:
                yield check(operation, "a filter never fails", False, f"{arguments}: {result.value}")
                continue
            yield _listed(probe, operation, seed, arguments, result)


def _listing_arguments(probe: Probe, operation: Operation, seed: int) -> Iterator[dict[str, JSON]]:
    """Yield calls of a listing tool: every parent, and every filter alone, matching and not."""
    base = probe.working(operation.tool, seed)
    if base is None:
        return
    tables = probe.first_tables(seed)
    properties = probe.schemas[operation.tool].get("properties", {})
    bases = [base, *_other_parents(probe, operation, base, tables)]
    yield from bases
    for name, binding in operation.args.items():
        if binding.role in ("filter", "query") and name in properties:
            for value in _filter_values(probe, operation, name, tables):
                yield {**base, name: value}
        elif binding.role in ("limit", "offset") and name in properties:
            for arguments in bases:
                yield {**arguments, name: 1}
            yield {**base, name: 2}


def _other_parents(
    probe: Probe, operation: Operation, base: dict[str, JSON], tables: Tables
) -> Iterator[dict[str, JSON]]:
    for name, owner in probe.target_args(operation):
        binding = operation.args[name]
        field = probe.entities[owner].id_name if binding.role == "id" else binding.field
        for row in tables[owner].values():
            arguments = probe.aligned(operation, {**base, name: row.get(field or "")}, tables)
            yield arguments


def _filter_values(probe: Probe, operation: Operation, name: str, tables: Tables) -> list[JSON]:
    """Return values of a filter that match some row, in other spelling too, and values that match none."""
    field, match = probe.row_field(operation, name), operation.args[name].match
    present = [row.get(field or "") for row in tables[operation.entity or ""].values()]
    values = [value for value in present if value is not None][:2]
    words = [value for value in values[:1] if isinstance(value, str) and value.split()]
    if match == "ci":
        values += [word.swapcase() for word in words]
    elif match == "contains":
        values += [word.split()[0].upper() for word in words]
    return values + _absent(probe.schemas[operation.tool]["properties"][name])


def _absent(schema: Mapping) -> list[JSON]:
    if schema.get("enum"):
        return list(schema["enum"])
    return ["zzqx"] if schema.get("type") == "string" and "format" not in schema else []


def _listed(probe: Probe, operation: Operation, seed: int, arguments: Arguments, result: ToolResult) -> Check:
    """Check a list against the rows of the table that match the arguments."""
    entity = probe.entities[operation.output.entity or operation.entity or ""]
    table = probe.first_tables(seed)[entity.name]
    query = next((step for step in operation.steps if isinstance(step, Query)), None)
    wanted = [row for row in table.values() if probe.matches(operation, arguments, row)]
    if query is not None and query.where is not None:
        bound = probe.bindings(operation, arguments, probe.first_tables(seed)) or {}
        wanted = [
            row
            for row in wanted
            if probe.holds(query.where, arguments, {**bound, "row": (entity.name, row)}, probe.session(seed))
        ]
    if query is not None and query.sort_field is not None:
        field = query.sort_field
        wanted.sort(key=lambda row: (row.get(field) is not None, row.get(field)), reverse=query.descending)
    given = probe.completed(operation, arguments)
    start = _given(operation, given, "offset") or 0
    size = _given(operation, given, "limit") or (query.limit if query is not None else None)
    wanted = wanted[start : None if size is None else start + size]
    rows = output_rows(probe, operation.tool, result.value)
    same = [row.get(entity.id_name) for row in rows] == [row[entity.id_name] for row in wanted]
    true = (
        all(shows(row, table.get(row.get(entity.id_name), {}), probe, operation) for row in rows)
        if same
        else True
    )
    law = "a list holds exactly the rows that match"
    return check(operation, law, same and true, f"{dict(arguments)}: {len(rows)} rows, {len(wanted)} match")


def _given(operation: Operation, arguments: Arguments, role: str) -> int | None:
    for name, binding in operation.args.items():
        if binding.role == role and isinstance(value := arguments.get(name), int):
            return value
    return None


def _aggregating(probe: Probe, operation: Operation) -> Iterator[Check]:
    """A count or a sum agrees with the rows that match the arguments."""
    if operation.entity not in probe.entities:
        return
    for seed in probe.seeds:
        for arguments in _listing_arguments(probe, operation, seed):
            result = probe.session(seed).call(operation.tool, arguments)
            tables = probe.first_tables(seed)
            bound = probe.bindings(operation, arguments, tables)
            if result.is_error and probe.may_refuse(operation, arguments, seed):
                continue
            if result.is_error or bound is None:
                yield check(operation, "a filter never fails", False, f"{arguments}: {result.value}")
                continue
            rows = [
                row for row in tables[operation.entity].values() if probe.matches(operation, arguments, row)
            ]
            filtered = any(isinstance(step, Query) and step.where is not None for step in operation.steps)
            for name, expression in operation.output.extra.items():
                wanted = probe.value_of(expression, arguments, bound, probe.session(seed))
                if isinstance(expression, list | tuple) and expression[0] == "count" and not filtered:
                    wanted = len(rows)
                same = isinstance(result.value, Mapping) and json_equal(result.value.get(name), wanted)
                yield check(operation, "an aggregate agrees with the rows", same, f"{name}: {wanted}")


def reader_arguments(probe: Probe, reader: Operation, row: Row) -> dict[str, JSON] | None:
    """Return required arguments with which a reading tool must show a row, None where there are none."""
    arguments: dict[str, JSON] = {}
    for name in probe.schemas[reader.tool].get("required", ()):
        binding = reader.args.get(name)
        if binding is None or binding.role in ("limit", "offset", "amount", "ignored"):
            return None
        field = binding.field if binding.role == "natural_key" else probe.row_field(reader, name)
        value = row.get(field or "")
        if value is None:
            return None
        arguments[name] = value
    return arguments
