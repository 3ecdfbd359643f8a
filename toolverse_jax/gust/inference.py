"""Infers a tool dependency graph from a specification: typed evidence instead of a model's votes.

Evidence and confidence (a value's confidence is the best of its evidence):

==================================================================  ==========
an operation shows a row's identifier, a parameter takes it            0.95
a lookup shows a reference to another row                              0.90
the parameter's text names the tool the value comes from               0.90
a transition or guard needs state that another tool writes             0.80
an optional parameter takes an identifier                              0.70
a natural key (a value a person may also know) is shown                0.70
the same kind of value (email, phone, path, ...) is shown              0.60
the state holds already in new rows, or the value written varies       0.50
==================================================================  ==========

A producer must not itself need the value: `get_task` shows the identifier of a task but takes it too,
so it unlocks nothing. Departure from ToolVerse: the paper asks a language model to judge tool pairs;
here `verification.verify_edges` settles by execution what inference only suspects.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Iterable, Iterator

from toolverse_jax.environment.spec import EnvSpec, Operation, ValueKind
from toolverse_jax.gust.dataflow import (
    NeededId,
    ShownValue,
    StateNeed,
    StateWrite,
    changes_state,
    deleted_entities,
    needed_ids,
    required_parameters,
    shown_values,
    state_needs,
    state_writes,
    terminal_entities,
)
from toolverse_jax.gust.graph import Edge, Ordering, ToolDependencyGraph, ToolTraits

NUM_VARIANTS = 3

_LINKING_KINDS = frozenset({"address", "city", "code", "email", "path", "phone", "slug", "symbol", "url"})
_SOURCE_WORDS = r"(?:returned|obtained|found|given|shown|listed|from|by|via|with|using|after|use|call|see)"
_SILENT_ROLES = frozenset({"limit", "offset", "ignored"})
_THRESHOLDS = (0.5, 0.75, 0.5)


def infer_graph(spec: EnvSpec, *, variant: int = 0) -> ToolDependencyGraph:
    """Infer a tool dependency graph; it may still hold cycles, see `sanitize`.

    Variant 0 keeps all evidence. Variant 1 keeps strong evidence only, takes values from lookups where
    a slot has one, and half of the semantic edges. Variant 2 takes values from the tools that make or
    reference a row, and the other half of the semantic edges.

    Args:
        spec: the environment.
        variant: 0, 1 or 2.

    Raises:
        ValueError: another variant.
    """
    if variant not in range(NUM_VARIANTS):
        raise ValueError(f"variant must be 0, 1 or 2, got {variant}")
    # A tool that refuses every call (`simulated="none"`) has no place in a graph of what can be done.
    operations = {o.tool: o for o in spec.operations if o.simulated != "none"}
    nodes = tuple(tool.name for tool in spec.tools if tool.name in operations)
    edges = _merge(
        edge
        for consumer in nodes
        for edge in (
            *_identifier_edges(spec, operations, operations[consumer]),
            *_known_value_edges(spec, operations, operations[consumer]),
            *_state_edges(spec, operations, operations[consumer]),
            *_prose_edges(spec, operations, operations[consumer]),
        )
    )
    traits = {tool: _traits(spec, operations[tool]) for tool in nodes}
    return ToolDependencyGraph(
        environment=spec.name,
        graph_id=f"{spec.name}-g{variant}",
        nodes=nodes,
        edges=tuple(_select(edges, traits, variant)),
        traits=traits,
        orderings=_orderings(spec, operations),
    )


def infer_graphs(spec: EnvSpec) -> tuple[ToolDependencyGraph, ...]:
    """Infer all variants, without those that have the same edges as an earlier one."""
    graphs: list[ToolDependencyGraph] = []
    for variant in range(NUM_VARIANTS):
        graph = infer_graph(spec, variant=variant)
        if all(graph.edges != other.edges for other in graphs):
            graphs.append(graph)
    return tuple(graphs)


def _traits(spec: EnvSpec, operation: Operation) -> ToolTraits:
    return ToolTraits(
        changes_state=changes_state(operation),
        repeatable=any(binding.role not in _SILENT_ROLES for binding in operation.args.values()),
        needs=tuple(need.parameter for need in needed_ids(spec, operation) if need.required),
    )


def _identifier_edges(spec: EnvSpec, operations: dict[str, Operation], consumer: Operation) -> Iterator[Edge]:
    for need in needed_ids(spec, consumer):
        for producer in operations.values():
            for value in shown_values(spec, producer):
                if producer.tool != consumer.tool and _produces(spec, producer, value, need):
                    yield Edge(
                        producer=producer.tool,
                        consumer=consumer.tool,
                        parameter=need.parameter,
                        confidence=_identifier_confidence(value, need),
                        evidence=f"shows the {value.output} of a {need.entity}"
                        if value.field is None
                        else f"shows a reference to a {need.entity}",
                        output=value.output,
                        required=need.required,
                    )


def _produces(spec: EnvSpec, producer: Operation, value: ShownValue, need: NeededId) -> bool:
    if not value.is_id or value.entity != need.entity:
        return False
    if value.field is not None and changes_state(producer):
        # A write echoes references that were known before it; only lookups are asked for a reference.
        return False
    takes_it = any(own.required and own.entity == need.entity for own in needed_ids(spec, producer))
    return value.fresh or not takes_it


def _identifier_confidence(value: ShownValue, need: NeededId) -> float:
    if not need.required:
        return 0.70
    if value.field is None:
        return 0.95
    return 0.85 if value.field.nullable else 0.90


def _known_value_edges(
    spec: EnvSpec, operations: dict[str, Operation], consumer: Operation
) -> Iterator[Edge]:
    """Yield edges for values that a person may know as well: natural keys and values of a general kind."""
    identifiers = {need.parameter for need in needed_ids(spec, consumer)}
    for parameter, binding in consumer.args.items():
        if parameter in identifiers or not binding.entity or not binding.field:
            continue
        kind = _value_kind(spec, binding.entity, binding.field)
        for producer in operations.values():
            if producer.tool == consumer.tool or parameter in producer.args:
                continue
            for value in shown_values(spec, producer):
                if value.field is None or value.is_id:
                    continue
                same_field = (value.entity, value.field.name) == (binding.entity, binding.field)
                if binding.role == "natural_key" and same_field:
                    evidence, confidence = f"shows the {binding.field} of a {binding.entity}", 0.70
                elif binding.role == "field" and kind and value.entity != binding.entity:
                    if _value_kind(spec, value.entity, value.field.name) != kind:
                        continue
                    evidence, confidence = f"shows a value of kind {kind}", 0.60
                else:
                    continue
                yield Edge(
                    producer=producer.tool,
                    consumer=consumer.tool,
                    parameter=parameter,
                    confidence=confidence,
                    evidence=evidence,
                    output=value.output,
                    required=False,
                )


def _value_kind(spec: EnvSpec, owner: str, name: str) -> str:
    for candidate in (*spec.entities, *spec.singletons):
        if candidate.name == owner:
            for field in candidate.fields:
                if field.name == name and isinstance(field.generator, ValueKind):
                    return field.generator.value if field.generator.value in _LINKING_KINDS else ""
    return ""


def _state_edges(spec: EnvSpec, operations: dict[str, Operation], consumer: Operation) -> Iterator[Edge]:
    for need in state_needs(spec, consumer):
        for producer in operations.values():
            if producer.tool == consumer.tool:
                continue
            for write in state_writes(spec, producer):
                if _enables(write, need):
                    certain = write.known and need.allowed is not None and not need.initial
                    name = need.place.partition(":")[2]
                    yield Edge(
                        producer=producer.tool,
                        consumer=consumer.tool,
                        kind="semantic",
                        confidence=0.80 if certain else 0.50,
                        evidence=f"writes the {need.field or 'rows'} of {name} that a check reads",
                        required=False,
                    )


def _enables(write: StateWrite, need: StateNeed) -> bool:
    if (write.place, write.field) != (need.place, need.field):
        return False
    if write.place.startswith("rows:"):
        return need.allowed is not None and write.value in need.allowed
    if not write.known:
        return True
    return write.value not in need.forbidden and (need.allowed is None or write.value in need.allowed)


def _prose_edges(spec: EnvSpec, operations: dict[str, Operation], consumer: Operation) -> Iterator[Edge]:
    tool = spec.tool(consumer.tool)
    texts: list[tuple[str | None, str]] = [(None, tool.description)]
    for parameter, schema in tool.input_schema.get("properties", {}).items():
        texts.append((parameter, str(schema.get("description", ""))))
    required = required_parameters(spec, consumer.tool)
    for parameter, text in texts:
        for producer in operations:
            name = re.escape(producer)
            cue = (
                rf"\b{_SOURCE_WORDS}\s+(?:the\s+)?[`'\"]?{name}\b|\b{name}\b[`'\"]?\s+(?:first|result|output)"
            )
            if producer == consumer.tool or not re.search(cue, text, re.IGNORECASE):
                continue
            known = [v for v in shown_values(spec, operations[producer]) if v.output == parameter]
            identifiers = [v for v in shown_values(spec, operations[producer]) if v.is_id]
            output = (known or identifiers)[0].output if parameter and (known or identifiers) else ""
            yield Edge(
                producer=producer,
                consumer=consumer.tool,
                parameter=parameter,
                kind="semantic" if parameter is None else "parameter",
                confidence=0.90,
                evidence="named in the text",
                output=output,
                required=parameter in required,
            )


def _merge(edges: Iterable[Edge]) -> list[Edge]:
    """Join evidence for the same dependency: the best confidence, all reasons."""
    merged: dict[tuple[str, str, str, str], Edge] = {}
    for edge in edges:
        known = merged.get(edge.key)
        if known is None:
            merged[edge.key] = edge
            continue
        best, other = (edge, known) if edge.confidence > known.confidence else (known, edge)
        reasons = dict.fromkeys((*known.evidence.split("; "), *edge.evidence.split("; ")))
        merged[edge.key] = dataclasses.replace(
            best, evidence="; ".join(reasons), output=best.output or other.output
        )
    return list(merged.values())


def _select(edges: list[Edge], traits: dict[str, ToolTraits], variant: int) -> Iterator[Edge]:
    kept = [edge for edge in edges if edge.confidence >= _THRESHOLDS[variant]]
    if variant == 0:
        yield from kept
        return
    for edge in kept:
        if edge.kind == "semantic":
            if _half(edge) == variant - 1:
                yield edge
            continue
        slot = [e for e in kept if (e.consumer, e.parameter) == (edge.consumer, edge.parameter)]
        preferred = [e for e in slot if _is_plain_lookup(e, traits) == (variant == 1)]
        if not preferred or edge in preferred:
            yield edge


def _is_plain_lookup(edge: Edge, traits: dict[str, ToolTraits]) -> bool:
    return not traits[edge.producer].changes_state and "reference" not in edge.evidence


def _half(edge: Edge) -> int:
    name = f"{edge.producer}>{edge.consumer}".encode()
    return hashlib.blake2b(name, digest_size=1).digest()[0] % 2


def _orderings(spec: EnvSpec, operations: dict[str, Operation]) -> tuple[Ordering, ...]:
    """Return what must not be called after a row is gone or finished."""
    found: dict[tuple[str, str], Ordering] = {}
    for later in operations.values():
        deleted, finished = deleted_entities(spec, later), terminal_entities(spec, later)
        for earlier in operations.values():
            if earlier.tool == later.tool:
                continue
            used = {need.entity for need in needed_ids(spec, earlier)}
            earlier_ends = {*deleted_entities(spec, earlier), *terminal_entities(spec, earlier)}
            reason = ""
            if used.intersection(deleted) and not used.intersection(deleted_entities(spec, earlier)):
                reason = f"{later.tool} deletes what {earlier.tool} uses"
            elif changes_state(earlier) and used.intersection(finished) - earlier_ends:
                reason = f"{later.tool} ends what {earlier.tool} changes"
            if reason:
                found[earlier.tool, later.tool] = Ordering(
                    earlier=earlier.tool, later=later.tool, reason=reason
                )
    return tuple(found.values())
