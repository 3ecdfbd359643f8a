"""Settles suspected dependencies by running the tools: proved, weak or refuted.

A parameter edge is proved where the consumer accepts the value that the producer shows, and refuses (or
finds nothing for) an invented value of the same shape; weak where it takes the invented value as well;
refuted where it never accepts what the producer shows. A semantic edge is proved where the consumer fails
on every state tried without the producer and works after it. Confidence stays: it is evidence of another
kind and still ranks edges in `sanitize`.

Reference: RESTler (Atlidakis et al. 2019) learns producers and consumers from refused requests alike.
"""

from __future__ import annotations

import dataclasses
import hashlib
import random
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from toolverse_jax.environment.spec import ArgBinding, Choices, EnvSpec, FieldSpec, Operation
from toolverse_jax.gust.dataflow import needed_ids, required_parameters
from toolverse_jax.gust.graph import Edge, ToolDependencyGraph, Verdict
from toolverse_jax.types import JSON, ToolResult

if TYPE_CHECKING:
    from toolverse_jax.environment import Environment, Session

_EPISODES = 6
"""Episode seeds tried, from the given one on: in one episode alone, all rows may be in a final state."""
_ATTEMPTS = 8
"""Draws of arguments in each episode."""
_UNRECOGNISED = frozenset({"not_found", "invalid_arguments", "unknown_tool"})


def verify_edges(environment: Environment, graph: ToolDependencyGraph, seed: int = 0) -> ToolDependencyGraph:
    """Return the graph with a verdict on every edge and without the refuted ones.

    A semantic edge that is proved becomes a required one: nothing but its producer brings the state about.

    Args:
        environment: the environment of the graph.
        graph: an inferred graph.
        seed: first episode seed of the rows that the tools are tried on.
    """
    verified = []
    for edge in graph.edges:
        verdict, output = verify_edge(environment, edge, seed)
        if verdict == "refuted":
            continue
        required = edge.required or (edge.kind == "semantic" and verdict == "proved")
        verified.append(dataclasses.replace(edge, verdict=verdict, output=output, required=required))
    return graph.with_edges(verified)


def verify_edge(environment: Environment, edge: Edge, seed: int = 0) -> tuple[Verdict, str]:
    """Return the verdict on one edge, and the member of the producer's result that holds the value."""
    key = f"{seed}/{edge.producer}/{edge.consumer}/{edge.parameter}"
    rng = random.Random(int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest()))
    trial = _Trial(environment, seed, rng)
    if edge.kind == "semantic":
        return trial.semantic_verdict(edge), ""
    return trial.parameter_verdict(edge)


class _Trial:
    def __init__(self, environment: Environment, seed: int, rng: random.Random) -> None:
        self.spec = environment.spec
        self.rng = rng
        self.bases = [environment.session(seed + n) for n in range(_EPISODES)]

    def parameter_verdict(self, edge: Edge) -> tuple[Verdict, str]:
        producer, consumer = self.spec.operation(edge.producer), self.spec.operation(edge.consumer)
        recognised, output, produced = False, edge.output, False
        for session in self._sessions():
            shown = session.call(producer.tool, plausible_arguments(self.spec, session, producer, self.rng))
            if shown.is_error:
                continue
            for member, value in _members(shown.value, edge.output):
                produced = True
                arguments = plausible_arguments(
                    self.spec, session, consumer, self.rng, {edge.parameter or "": value}
                )
                real = session.fork().call(consumer.tool, arguments)
                invented_value = {edge.parameter or "": invent_like(value)}
                invented = session.fork().call(consumer.tool, {**arguments, **invented_value})
                if not real.is_error:
                    recognised, output = True, member
                    if _refused(invented) or (_finds(real) and not _finds(invented)):
                        return "proved", member
                elif _code(real) not in _UNRECOGNISED and _refused(invented):
                    recognised, output = True, member
        return ("weak" if recognised or not produced else "refuted"), output

    def _sessions(self) -> Iterator[Session]:
        for base in self.bases:
            for _ in range(_ATTEMPTS):
                yield base.fork()

    def semantic_verdict(self, edge: Edge) -> Verdict:
        producer, consumer = self.spec.operation(edge.producer), self.spec.operation(edge.consumer)
        tried = enabled = free = False
        for session in self._sessions():
            arguments = plausible_arguments(self.spec, session, consumer, self.rng)
            same_rows = {
                theirs.parameter: arguments[ours.parameter]
                for ours in needed_ids(self.spec, consumer)
                for theirs in needed_ids(self.spec, producer)
                if ours.entity == theirs.entity and ours.parameter in arguments
            }
            before = session.fork().call(consumer.tool, arguments)
            free = free or not before.is_error
            first = session.call(
                producer.tool, plausible_arguments(self.spec, session, producer, self.rng, same_rows)
            )
            if first.is_error:
                continue
            tried = True
            after = session.call(consumer.tool, arguments)
            enabled = enabled or (before.is_error and not after.is_error)
        if enabled:
            return "weak" if free else "proved"
        return "refuted" if tried else "weak"


def plausible_arguments(
    spec: EnvSpec,
    session: Session,
    operation: Operation,
    rng: random.Random,
    given: Mapping[str, JSON] | None = None,
) -> dict[str, JSON]:
    """Draw the required arguments of a tool from the rows of a session; `given` ones are kept."""
    arguments = dict(given or {})
    identifiers = {need.parameter: need.entity for need in needed_ids(spec, operation)}
    for parameter in required_parameters(spec, operation.tool):
        if parameter in arguments:
            continue
        schema = spec.tool(operation.tool).input_schema["properties"].get(parameter, {})
        binding = operation.args.get(parameter)
        entity = identifiers.get(parameter)
        if entity is not None:
            rows = session.rows(entity)
            name = spec.entity(entity).id_name
            arguments[parameter] = rng.choice(rows)[name] if rows else "none"
        elif binding is not None and binding.role in ("natural_key", "filter", "query"):
            values = _present_values(spec, session, binding)
            arguments[parameter] = rng.choice(values) if values else _drawn(schema, None, rng)
        else:
            field = _owner_field(spec, binding.entity, binding.field) if binding else None
            arguments[parameter] = _drawn(schema, field, rng)
    return arguments


def _present_values(spec: EnvSpec, session: Session, binding: ArgBinding) -> list[JSON]:
    if binding.field is None or all(entity.name != binding.entity for entity in spec.entities):
        return []
    rows = session.rows(binding.entity or "")
    return [row[binding.field] for row in rows if row.get(binding.field) is not None]


def invent_like(value: JSON) -> JSON:
    """Return a value of the same type and shape that nothing has."""
    if isinstance(value, str):
        half = len(value) // 2
        return value[:half] + "".join(_next_character(character) for character in value[half:])
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value + 7919
    return value


def _next_character(character: str) -> str:
    for alphabet in ("0123456789", "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"):
        if character in alphabet:
            return alphabet[(alphabet.index(character) + 7) % len(alphabet)]
    return character


def _drawn(schema: Mapping[str, Any], field: FieldSpec | None, rng: random.Random) -> JSON:
    """Draw a value that suits a parameter nothing in the state determines."""
    choices = schema.get("enum") or schema.get("examples")
    if choices:
        return rng.choice(choices)
    if field is not None and isinstance(field.generator, Choices):
        return rng.choice(field.generator.values)
    kind = schema.get("type", "string")
    if kind in ("integer", "number"):
        return max(schema.get("minimum", 1), min(schema.get("maximum", 1), 1))
    if kind == "boolean":
        return rng.random() < 0.5
    if kind == "array":
        return [_drawn(schema.get("items", {}), field, rng)]
    if kind == "object":
        properties = schema.get("properties", {})
        return {name: _drawn(properties.get(name, {}), None, rng) for name in schema.get("required", ())}
    day = f"2031-04-{rng.randint(10, 28)}"
    formats = {"date": day, "date-time": f"{day}T10:00:00", "time": "10:30", "email": "someone@example.org"}
    return formats.get(schema.get("format", ""), f"sample {rng.randint(10, 99)}")


def _owner_field(spec: EnvSpec, owner: str | None, name: str | None) -> FieldSpec | None:
    for candidate in (*spec.entities, *spec.singletons):
        if candidate.name == owner:
            return next((field for field in candidate.fields if field.name == name), None)
    return None


def _members(value: JSON, output: str) -> Iterator[tuple[str, JSON]]:
    """Yield the members of a result and of its rows; only those called `output` where it is known."""
    if isinstance(value, Mapping):
        for name, member in value.items():
            if isinstance(member, Mapping):
                yield from _members(member, output)
            elif isinstance(member, list | tuple):
                for item in member:
                    yield from _members(item, output)
            elif member is not None and not isinstance(member, bool) and output in ("", name):
                yield name, member


def _code(result: ToolResult) -> str:
    error = result.value.get("error", {}) if isinstance(result.value, Mapping) else {}
    return error.get("code", "") if isinstance(error, Mapping) else ""


def _refused(result: ToolResult) -> bool:
    return result.is_error and _code(result) in _UNRECOGNISED


def _finds(result: ToolResult) -> bool:
    """Return whether a result holds at least one row."""
    if result.is_error or not isinstance(result.value, Mapping):
        return False
    lists = [member for member in result.value.values() if isinstance(member, list | tuple)]
    return any(lists) if lists else True
