"""Checks of what a specification declares beyond its verbs, on both sides of every condition.

Guards, lifecycles, unique fields, bounds of adjustments, defaults of new rows, and what deleting a
row does to the rows that point to it: each is tried where it allows the call and where it refuses.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from toolverse_jax.environment.spec import Adjust, Delete, Insert, Operation, Transition
from toolverse_jax.synthesis.conditions import Scope, evaluate
from toolverse_jax.synthesis.interface_checks import Check, error_code
from toolverse_jax.synthesis.probe import Probe, Row, SessionLike, Tables
from toolverse_jax.synthesis.read_laws import check, is_mutator
from toolverse_jax.types import JSON, json_equal

LAYER = "semantics"
MOST_MOVES = 40
"""Calls in a row with which a bound is looked for."""


def declared_checks(probe: Probe, operation: Operation) -> Iterator[Check]:
    """Yield the checks of every condition a tool declares."""
    if is_mutator(operation):
        yield from _enum_values(probe, operation)
    for index in range(len(operation.guards)):
        yield from _guard(probe, operation, index)
    for step in operation.steps:
        if isinstance(step, Transition):
            yield from _transition(probe, operation, step)
        elif isinstance(step, Adjust):
            yield from _bounds(probe, operation, step)
        elif isinstance(step, Delete):
            yield from _dependents(probe, operation, step)
        elif isinstance(step, Insert):
            yield from _unique(probe, operation, step)
            yield from _defaults(probe, operation, step)


def _enum_values(probe: Probe, operation: Operation) -> Iterator[Check]:
    """Store each value of each enum."""
    found = probe.any_working(operation.tool)
    if found is None or operation.entity not in probe.entities:
        return
    seed, arguments = found
    named = arguments.get(probe.own_target(operation) or "")
    properties = probe.schemas[operation.tool].get("properties", {})
    for name, binding in operation.args.items():
        field = probe.row_field(operation, name) if binding.role == "field" else None
        if field is None:
            continue
        for value in properties.get(name, {}).get("enum", ()):
            session = probe.session(seed)
            before = probe.tables(session)[operation.entity]
            code = error_code(session.call(operation.tool, {**arguments, name: value}))
            rows = probe.tables(session)[operation.entity].items()
            stored = [row.get(field) for key, row in rows if key not in before or key == named]
            passed = code is None and any(json_equal(each, value) for each in stored)
            detail = f"{name}={value!r}: {code!r}"
            yield check(operation, "every value of an enum is stored", passed, detail, LAYER)


def _situations(probe: Probe, operation: Operation) -> Iterator[tuple[int, dict[str, JSON], Tables]]:
    """Yield (seed, arguments, tables) to look for a wanted situation in; the same ones every time.

    Numbers also take the ends of their range, or 0, -1 and a large one where it has none.
    """
    optional = bool(probe.optional_parameters(operation.tool))
    properties = probe.schemas[operation.tool].get("properties", {})
    for seed in probe.seeds:
        tables = probe.first_tables(seed)
        first: dict[str, JSON] = {}
        for arguments in probe.candidates(operation.tool, seed, tables, optional=optional, limit=24):
            first = first or arguments
            yield seed, arguments, tables
        for name, part in properties.items():
            if part.get("type") in ("integer", "number") and name in first:
                low, high = part.get("minimum"), part.get("maximum")
                for end in (*((0, -1) if low is None else (low,)), 1_000_000 if high is None else high):
                    yield seed, {**first, name: end}, tables


def _call(
    probe: Probe, operation: Operation, seed: int, arguments: Mapping[str, JSON]
) -> tuple[str | None, bool]:
    """Return the error code of a call in the first state, and whether the state stayed as it was."""
    session = probe.session(seed)
    before = session.state_hash()
    result = session.call(operation.tool, arguments)
    return error_code(result), session.state_hash() == before


def _guard(probe: Probe, operation: Operation, index: int) -> Iterator[Check]:
    guard = operation.guards[index]
    allowed = refused = False
    for seed, arguments, tables in _situations(probe, operation):
        if allowed and refused:
            break
        bound = probe.bindings(operation, arguments, tables)
        if bound is None:
            continue
        truths = [probe.holds(g.condition, arguments, bound, probe.session(seed)) for g in operation.guards]
        if all(truths) and not allowed:
            code, _ = _call(probe, operation, seed, arguments)
            if code is None:
                allowed = True
            elif code == guard.code and not _other_refusals(operation):
                yield check(operation, "a guard lets the rest through", False, f"{arguments}: {code}", LAYER)
                return
        elif not truths[index] and all(truths[:index]) and not refused:
            refused = True
            code, unchanged = _call(probe, operation, seed, arguments)
            passed = code == guard.code and unchanged
            yield check(operation, "a guard refuses with its code", passed, f"{arguments}: {code!r}", LAYER)
    yield check(operation, "a guard lets the rest through", True if allowed else None, "", LAYER)
    if not refused:
        yield check(operation, "a guard refuses with its code", None, "no such situation found", LAYER)


def _other_refusals(operation: Operation) -> bool:
    """Tell whether a step may refuse with the code that guards use too."""
    return any(isinstance(step, Transition | Adjust | Insert | Delete) for step in operation.steps)


def _transition(probe: Probe, operation: Operation, step: Transition) -> Iterator[Check]:
    entity = probe.entities[step.entity]
    lifecycle = entity.lifecycle
    if lifecycle is None or step.verb not in lifecycle.transitions:
        return
    sources, end = lifecycle.transitions[step.verb]
    seen: set[JSON] = set()
    for seed, arguments, tables in _situations(probe, operation):
        bound = probe.bindings(operation, arguments, tables)
        row = bound.get(step.row, (None, None))[1] if bound else None
        if row is None or row.get(lifecycle.field) in seen:
            continue
        if not all(probe.holds(g.condition, arguments, bound or {}, None) for g in operation.guards):
            continue
        state = row.get(lifecycle.field)
        seen.add(state)
        session = probe.session(seed)
        before = session.state_hash()
        code = error_code(session.call(operation.tool, arguments))
        now = probe.tables(session)[step.entity].get(row[entity.id_name], {}).get(lifecycle.field)
        if state in sources:
            yield check(
                operation,
                "a transition ends in its state",
                code is None and now == end,
                f"{state} -> {now}",
                LAYER,
            )
        else:
            passed = code == "precondition_failed" and session.state_hash() == before
            yield check(
                operation, "a transition from a wrong state is refused", passed, f"{state}: {code!r}", LAYER
            )
    states = entity.field(lifecycle.field).enum or ()
    missing = [state for state in states if state not in seen]
    if missing:
        yield check(operation, "every state is tried", None, f"never met: {missing}", LAYER)


def reachable_bounds(step: Adjust, schema: Mapping[str, Any]) -> set[str]:
    """Return the bounds (`minimum`, `maximum`) that some allowed amount moves towards."""
    properties = schema.get("properties", {})

    def amount(end: str, unlimited: float) -> float:
        arguments = {name: part.get(end, unlimited) for name, part in properties.items()}
        value = evaluate(step.amount, Scope(arguments=arguments, bound={}, id_names={}))
        return value if isinstance(value, int | float) else 0

    try:
        ends = amount("minimum", -math.inf), amount("maximum", math.inf)
    except (KeyError, TypeError):  # the amount depends on a row: anything may happen
        return {"minimum", "maximum"}
    return {name for name, moves in (("minimum", min(ends) < 0), ("maximum", max(ends) > 0)) if moves}


def _bounds(probe: Probe, operation: Operation, step: Adjust) -> Iterator[Check]:
    """Move a field within its bounds, then on and on until the next move would leave them."""
    schema = probe.schemas[operation.tool]
    wanted = {"inside"}
    for bound, side in (("minimum", "below"), ("maximum", "above")):
        if getattr(step, bound) is not None and bound in reachable_bounds(step, schema):
            wanted.add(side)
    reached: set[str] = set()
    for seed, arguments, _ in _situations(probe, operation):
        if reached >= wanted:
            break
        session = probe.session(seed)
        for _ in range(MOST_MOVES):
            side, passed, detail = _move(probe, operation, step, session, arguments)
            if side is None:
                break
            if side not in reached:
                reached.add(side)
                yield check(operation, f"an adjustment {side} the bounds", passed, detail, LAYER)
            if side != "inside" or reached >= wanted:
                break
    for side in sorted(wanted - reached):
        yield check(operation, f"an adjustment {side} the bounds", None, "no such situation", LAYER)


def _move(
    probe: Probe, operation: Operation, step: Adjust, session: SessionLike, arguments: Mapping[str, JSON]
) -> tuple[str | None, bool, str]:
    """Make one adjustment; return on which side of the bounds it ends, and whether the answer fits."""
    bound = probe.bindings(operation, arguments, probe.tables(session))
    row = bound.get(step.row, (None, None))[1] if bound else None
    if row is None or not all(
        probe.holds(g.condition, arguments, bound or {}, session) for g in operation.guards
    ):
        return None, False, ""
    amount = probe.value_of(step.amount, arguments, bound or {})
    end = (row.get(step.field) or 0) + (amount or 0)
    low = step.minimum is not None and end < step.minimum
    high = step.maximum is not None and end > step.maximum
    before = session.state_hash()
    code = error_code(session.call(operation.tool, arguments))
    detail = f"ends at {end}: {code!r}"
    if low or high:
        unchanged = session.state_hash() == before
        return ("below" if low else "above"), code == "limit_exceeded" and unchanged, detail
    if code is not None and _refuses_elsewhere(operation):
        return None, False, detail
    return "inside", code is None, detail


def _refuses_elsewhere(operation: Operation) -> bool:
    return sum(isinstance(step, Transition | Adjust | Delete | Insert) for step in operation.steps) > 1


def _dependents(probe: Probe, operation: Operation, step: Delete) -> Iterator[Check]:
    """Delete a row others point to, and one that nothing points to."""
    entity = probe.entities[step.entity]
    children = [(e.name, f.name) for e in probe.spec.entities for f in e.fields if f.ref == entity.name]
    reached: set[bool] = set()
    for seed, arguments, tables in _situations(probe, operation):
        bound = probe.bindings(operation, arguments, tables)
        row = bound.get(step.row, (None, None))[1] if bound else None
        if row is None:
            continue
        key = row[entity.id_name]
        users = [(c, i) for c, f in children for i, r in tables[c].items() if json_equal(r.get(f), key)]
        if bool(users) in reached:
            continue
        reached.add(bool(users))
        session = probe.session(seed)
        before = session.state_hash()
        code = error_code(session.call(operation.tool, arguments))
        after = probe.tables(session)
        law = f"deleting a row in use: {entity.on_delete}" if users else "deleting a free row"
        if users and entity.on_delete == "restrict":
            passed = code == "dependency_exists" and session.state_hash() == before
        elif users and entity.on_delete == "cascade":
            passed = code is None and not any(i in after[c] for c, i in users)
        else:
            passed = code is None and all(i in after[c] for c, i in users)
        yield check(operation, law, passed, f"{code!r}", LAYER)
    if children and True not in reached:
        yield check(operation, f"deleting a row in use: {entity.on_delete}", None, "no such row", LAYER)


def _unique(probe: Probe, operation: Operation, step: Insert) -> Iterator[Check]:
    """Create the same row twice where a stored argument must be unique."""
    unique = {field.name for field in probe.entities[step.entity].fields if field.unique}
    given = [
        name
        for name in operation.args
        if operation.args[name].role == "field" and probe.row_field(operation, name) in unique
    ]
    found = probe.any_working(operation.tool)
    if found is None or not any(name in found[1] for name in given):
        return
    session = probe.session(found[0])
    session.call(operation.tool, found[1])
    before = session.state_hash()
    code = error_code(session.call(operation.tool, found[1]))
    passed = code == "already_exists" and session.state_hash() == before
    yield check(operation, "a taken value is refused", passed, f"{code!r}", LAYER)


def _defaults(probe: Probe, operation: Operation, step: Insert) -> Iterator[Check]:
    """A new row has the declared value in every field that no argument fills."""
    found = probe.any_working(operation.tool)
    if found is None or not is_mutator(operation):
        return
    seed = found[0]
    arguments = probe.completed(operation, found[1])
    session = probe.session(seed)
    before = probe.tables(session)
    bound = probe.bindings(operation, arguments, before) or {}
    wanted = {
        name: probe.value_of(expression, arguments, bound, session)
        for name, expression in step.values.items()
        if _readable(expression, bound)
    }
    session.call(operation.tool, found[1])
    after = probe.tables(session)[step.entity]
    new: Row = next((row for key, row in after.items() if key not in before[step.entity]), {})
    for field in probe.entities[step.entity].fields:
        if field.name in step.values and field.name not in wanted:
            continue
        value = wanted.get(field.name)
        value = field.default if value is None else value
        passed = json_equal(new.get(field.name), value)
        law = "a new row starts as declared"
        yield check(operation, law, passed, f"{field.name}: {new.get(field.name)!r}, not {value!r}", LAYER)


def _readable(expression: JSON, bound: Mapping) -> bool:
    """Tell whether every binding an expression reads is known before the call."""
    if not isinstance(expression, list | tuple) or not expression:
        return True
    if expression[0] in ("field", "id", "count", "sum"):
        return expression[1] in bound
    return all(_readable(part, bound) for part in expression[1:])
