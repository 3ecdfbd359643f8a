"""Laws of tools that write: what must change, what must not, and what can be read afterwards."""

from __future__ import annotations

from collections.abc import Iterator

from toolverse_jax.environment.spec import Adjust, Delete, Insert, Operation, Query, Transition, Update
from toolverse_jax.synthesis.interface_checks import error_code, output_rows
from toolverse_jax.synthesis.probe import Probe, Row, SessionLike, Tables
from toolverse_jax.synthesis.read_laws import Arguments, Check, check, is_mutator, reader_arguments, shows
from toolverse_jax.types import JSON, json_equal


def write_checks(probe: Probe, operation: Operation) -> Iterator[Check]:
    """Yield the checks of a tool that writes."""
    for optional in (False, True):
        if optional and not probe.optional_parameters(operation.tool):
            continue
        for seed in probe.seeds[:2]:
            arguments = probe.working(operation.tool, seed, optional=optional)
            if arguments is not None:
                yield from _mutating(probe, operation, seed, arguments)


def _mutating(probe: Probe, operation: Operation, seed: int, arguments: dict[str, JSON]) -> Iterator[Check]:
    session = probe.session(seed)
    before, start = probe.tables(session), session.state_hash()
    result = session.call(operation.tool, arguments)
    if result.is_error:
        yield check(operation, "the same call succeeds again", False, str(result.value))
        return
    after = probe.tables(session)
    changed = session.state_hash() != start
    # An update may be told what is so already; the others cannot succeed without effect.
    must_change = any(isinstance(step, Insert | Delete | Adjust | Transition) for step in operation.steps)
    passed = changed == (after != before or bool(probe.spec.singletons and changed)) and (
        changed or not must_change
    )
    yield check(operation, "a change changes the state", passed)
    yield _frame(probe, operation, arguments, before, after)
    target = _target_row(probe, operation, arguments, before, after)
    if operation.verb == "create":
        yield from _created(probe, operation, before, after)
    elif operation.verb == "delete":
        yield from _deleted(probe, operation, session, arguments, target, after)
        return
    if operation.verb == "adjust":
        yield from _adjusted(probe, operation, arguments, before, after)
    if target is None or operation.entity not in probe.entities:
        return
    identifier = target[probe.entities[operation.entity].id_name]
    now = after[operation.entity].get(identifier, {})
    yield _echoed(probe, operation, arguments, now)
    if (
        operation.output.shape == "record"
        and (operation.output.entity or operation.entity) == operation.entity
    ):
        yield check(operation, "the answer shows the changed row", shows(result.value, now, probe, operation))
    yield from _read_back(probe, operation, session, now)


def _target_row(
    probe: Probe, operation: Operation, arguments: Arguments, before: Tables, after: Tables
) -> Row | None:
    """Return the row a mutator is about: the new one, or the one its arguments name."""
    if operation.entity not in probe.entities:
        return None
    if operation.verb == "create":
        added = [row for key, row in after[operation.entity].items() if key not in before[operation.entity]]
        return added[0] if len(added) == 1 else None
    name = probe.own_target(operation)
    return None if name is None else probe.resolve(before, operation.args[name], arguments.get(name))


def _frame(probe: Probe, operation: Operation, arguments: Arguments, before: Tables, after: Tables) -> Check:
    """Only rows the call names, and of those only declared fields, may differ."""
    written = _written_fields(probe, operation)
    silent = {
        probe.row_field(operation, name)
        for name, binding in operation.args.items()
        if binding.role == "field" and arguments.get(name) is None
    }
    named = {
        (entity, row[probe.entities[entity].id_name])
        for name, entity in probe.target_args(operation)
        if (row := probe.resolve(before, operation.args[name], arguments.get(name))) is not None
    }
    deletes = any(isinstance(step, Delete) for step in operation.steps)
    inserts = [step.entity for step in operation.steps if isinstance(step, Insert)]
    for entity, table in after.items():
        added = [key for key in table if key not in before[entity]]
        if len(added) != inserts.count(entity):
            return check(operation, "nothing else changes", False, f"{len(added)} new rows of {entity}")
        for key, old in before[entity].items():
            new = table.get(key)
            if new == old or (deletes and _fate_allowed(probe, entity, old, new)):
                continue
            changed = {name for name in old if new is not None and not json_equal(old[name], new.get(name))}
            if entity == operation.entity and changed & silent:
                return check(operation, "nothing else changes", False, f"{entity}: {sorted(changed)}")
            if new is None or (entity, key) not in named or changed - written.get(entity, set()):
                return check(operation, "nothing else changes", False, f"{entity}: {sorted(changed)}")
    return check(operation, "nothing else changes", True)


def _fate_allowed(probe: Probe, entity: str, old: Row, new: Row | None) -> bool:
    """Rows that point to a deleted row may vanish or lose the reference, as declared."""
    if new is None:
        return True
    changed = {name for name in old if not json_equal(old[name], new.get(name))}
    return all(new.get(name) is None and probe.entities[entity].field(name).type == "ref" for name in changed)


def _written_fields(probe: Probe, operation: Operation) -> dict[str, set[str | None]]:
    written: dict[str, set[str | None]] = {}
    for step in operation.steps:
        if isinstance(step, Update):
            written.setdefault(step.entity, set()).update(step.values)
        elif isinstance(step, Adjust):
            written.setdefault(step.entity, set()).add(step.field)
        elif isinstance(step, Transition):
            lifecycle = probe.entities[step.entity].lifecycle
            written.setdefault(step.entity, set()).add(lifecycle.field if lifecycle else None)
    return written


def _created(probe: Probe, operation: Operation, before: Tables, after: Tables) -> Iterator[Check]:
    entity = operation.entity or ""
    added = [key for key in after.get(entity, {}) if key not in before.get(entity, {})]
    yield check(operation, "creating adds one row with a fresh identifier", len(added) == 1)


def _echoed(probe: Probe, operation: Operation, arguments: Arguments, row: Row) -> Check:
    """Every argument that is stored is found in the row."""
    for name, value in arguments.items():
        binding = operation.args.get(name)
        if binding is None or binding.role not in ("field", "id", "natural_key"):
            continue
        if binding.role == "natural_key" and binding.entity != operation.entity:
            continue
        field = probe.row_field(operation, name)
        if field is not None and not json_equal(row.get(field), value):
            return check(
                operation, "arguments are stored", False, f"{name}={value!r}, row: {row.get(field)!r}"
            )
    return check(operation, "arguments are stored", True)


def _read_back(probe: Probe, operation: Operation, session: SessionLike, row: Row) -> Iterator[Check]:
    """Every tool that reads the entity shows the row as it is now."""
    for reader in probe.operations.values():
        if is_mutator(reader) or reader.entity != operation.entity or reader.verb == "aggregate":
            continue
        arguments = reader_arguments(probe, reader, row)
        if arguments is None or reader.output.shape not in ("record", "list"):
            continue
        result = session.call(reader.tool, arguments)
        entity = probe.entities[reader.entity or ""]
        shown = [
            item
            for item in output_rows(probe, reader.tool, result.value)
            if json_equal(item.get(entity.id_name), row.get(entity.id_name))
        ]
        narrowed = any(isinstance(s, Query) and (s.where is not None or s.limit) for s in reader.steps)
        if result.is_error or (not shown and not narrowed):
            yield check(operation, "what was written can be read", False, f"{reader.tool} does not show it")
        elif shown:
            yield check(
                operation, "what was written can be read", shows(shown[0], row, probe, reader), reader.tool
            )


def _deleted(
    probe: Probe,
    operation: Operation,
    session: SessionLike,
    arguments: Arguments,
    target: Row | None,
    after: Tables,
) -> Iterator[Check]:
    entity = probe.entities.get(operation.entity or "")
    if entity is None or target is None:
        return
    identifier = target[entity.id_name]
    yield check(operation, "deleting removes the row", identifier not in after[entity.name])
    yield check(
        operation,
        "deleting twice is not found",
        error_code(session.call(operation.tool, arguments)) == "not_found",
    )
    for reader in probe.operations.values():
        wanted = reader_arguments(probe, reader, target)
        if is_mutator(reader) or reader.entity != entity.name or wanted is None:
            continue
        result = session.call(reader.tool, wanted)
        if reader.verb == "get":
            yield check(
                operation, "a deleted row is not found", error_code(result) == "not_found", reader.tool
            )
        elif reader.output.shape == "list" and not result.is_error:
            shown = [row.get(entity.id_name) for row in output_rows(probe, reader.tool, result.value)]
            yield check(operation, "a deleted row is not listed", identifier not in shown, reader.tool)


def _adjusted(
    probe: Probe, operation: Operation, arguments: Arguments, before: Tables, after: Tables
) -> Iterator[Check]:
    """The numeric field moves by the amount, in the direction the tool declares."""
    for step in operation.steps:
        if not isinstance(step, Adjust):
            continue
        bound = probe.bindings(operation, arguments, before)
        if bound is None or step.row not in bound:
            continue
        amount = probe.value_of(step.amount, arguments, bound)
        row = bound[step.row][1]
        key = row[probe.entities[step.entity].id_name]
        moved = (after[step.entity][key].get(step.field) or 0) - (row.get(step.field) or 0)
        yield check(operation, "an adjustment moves by the amount", json_equal(moved, amount), f"{moved}")
