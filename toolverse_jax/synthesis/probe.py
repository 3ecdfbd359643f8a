"""Probe: what the validation laws know about an environment without looking into its interpreter.

A probe holds the *declared* side (the specification under test) and a way to open sessions, reads
tables through the public session, proposes arguments for a tool, and evaluates declared conditions
over rows as a caller sees them. Laws compare the two sides; neither uses the interpreter's code.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from toolverse_jax.environment import output_schema
from toolverse_jax.environment.spec import (
    ArgBinding,
    EnvSpec,
    Lookup,
    Operation,
    Query,
)
from toolverse_jax.synthesis.arguments import schema_value
from toolverse_jax.synthesis.conditions import Bound, Scope, compare, evaluate
from toolverse_jax.types import JSON, ToolResult, json_equal

Row = dict[str, JSON]
Tables = dict[str, dict[JSON, Row]]
"""Entity -> external identifier -> row in external form."""

FABRICATED_TEXT = "zz-none-0"
FABRICATED_NUMBER = 987654321


class SessionLike(Protocol):
    """The part of a session that validation uses; controls implement it too."""

    def call(self, tool: str, arguments: Mapping[str, JSON]) -> ToolResult: ...

    def state_hash(self) -> str: ...

    def fork(self) -> Any: ...

    def rows(self, entity: str) -> list[dict[str, JSON]]: ...

    def singleton(self, name: str) -> dict[str, JSON]: ...

    @property
    def now(self) -> str: ...


OpenSession = Callable[[int], SessionLike]


def seeded(*parts: object) -> random.Random:
    """Return a generator that depends on nothing but the parts."""
    digest = hashlib.blake2b("/".join(map(str, parts)).encode(), digest_size=8).digest()
    return random.Random(int.from_bytes(digest, "big"))


class Probe:
    """One specification seen through sessions opened by `open_session`."""

    def __init__(self, spec: EnvSpec, open_session: OpenSession, *, seeds: tuple[int, ...] = (0, 1, 2, 3)):
        self.spec = spec
        self.seeds = seeds
        self.entities = {entity.name: entity for entity in spec.entities}
        self.operations = {operation.tool: operation for operation in spec.operations}
        self.schemas = {tool.name: tool.input_schema for tool in spec.tools}
        self._open = open_session
        self._bases: dict[int, SessionLike] = {}
        self._tables: dict[int, Tables] = {}
        self._validators: dict[str, Any] = {}
        self._working: dict[tuple[str, int, bool], dict[str, JSON] | None] = {}

    # --- sessions and tables ------------------------------------------------------------------

    def session(self, seed: int) -> SessionLike:
        """Return a session in its first state; changing it changes no other."""
        if seed not in self._bases:
            self._bases[seed] = self._open(seed)
        return self._bases[seed].fork()

    def reopen(self, seed: int) -> SessionLike:
        """Return a session opened anew, sharing nothing with `session(seed)`."""
        return self._open(seed)

    def first_tables(self, seed: int) -> Tables:
        """Return the tables before any call."""
        if seed not in self._tables:
            self._tables[seed] = self.tables(self.session(seed))
        return self._tables[seed]

    def tables(self, session: SessionLike) -> Tables:
        """Return every table of a session, keyed by external identifier."""
        return {
            entity.name: {row[entity.id_name]: row for row in session.rows(entity.name)}
            for entity in self.spec.entities
        }

    def reuse_arguments(self, other: Probe) -> None:
        """Start from the working arguments another probe has found for the same specification."""
        self._working = dict(other._working)
        self._validators = other._validators

    # --- bindings -----------------------------------------------------------------------------

    def target_args(self, operation: Operation) -> list[tuple[str, str]]:
        """Return (parameter, entity) of the parameters that name one row, target entity first."""
        found = [
            (name, binding.entity)
            for name, binding in operation.args.items()
            if binding.role in ("id", "natural_key") and binding.entity in self.entities
        ]
        return sorted(found, key=lambda pair: pair[1] != operation.entity)

    def own_target(self, operation: Operation) -> str | None:
        """Return the parameter naming a row of the operation's own entity, if any."""
        for name, entity in self.target_args(operation):
            if entity == operation.entity and operation.args[name].role == "id":
                return name
        for name, entity in self.target_args(operation):
            if entity == operation.entity:
                return name
        return None

    def row_field(self, operation: Operation, parameter: str) -> str | None:
        """Return the field of the operation's entity that a parameter is compared with or stored in."""
        binding = operation.args[parameter]
        entity = self.entities.get(operation.entity or "")
        if entity is None:
            return None
        names = [field.name for field in entity.fields]
        if binding.role in ("id", "natural_key"):
            refs = [field.name for field in entity.fields if field.ref == binding.entity]
            is_target = operation.verb != "create" and parameter == self.own_target(operation)
            if binding.entity == entity.name and (
                not refs or (is_target and operation.output.shape != "list")
            ):
                return entity.id_name if binding.role == "id" else None
            wanted = [name for name in (binding.field, parameter, *refs) if name in refs]
            return wanted[0] if wanted else None
        if binding.entity not in (None, entity.name):
            return None
        if binding.field in names:
            return binding.field
        return parameter if parameter in names and binding.role in ("field", "filter", "query") else None

    def aligned(self, operation: Operation, arguments: Mapping[str, JSON], tables: Tables) -> dict[str, JSON]:
        """Return arguments in which the parents named are those of the rows named below them."""
        fitting = dict(arguments)
        named = [
            (n, e) for n, e in self.target_args(operation) if n in fitting and operation.args[n].role == "id"
        ]
        for child, entity in named:
            row = self.resolve(tables, operation.args[child], fitting[child])
            parents = {field.ref: field.name for field in self.entities[entity].fields if field.ref}
            for name, owner in named if row is not None else ():
                if name != child and owner != entity and (row or {}).get(parents.get(owner, "")) is not None:
                    fitting[name] = (row or {})[parents[owner]]
        return fitting

    def resolve(self, tables: Tables, binding: ArgBinding, value: JSON) -> Row | None:
        """Return the row that an `id` or `natural_key` argument names."""
        if binding.entity not in self.entities:
            return None
        if binding.role == "id":
            return tables[binding.entity].get(value) if isinstance(value, str | int) else None
        for row in tables[binding.entity].values():
            if json_equal(row.get(binding.field or ""), value):
                return row
        return None

    # --- arguments ----------------------------------------------------------------------------

    def candidates(
        self, tool: str, seed: int, tables: Tables, *, optional: bool = False, limit: int = 48
    ) -> Iterator[dict[str, JSON]]:
        """Propose schema-valid arguments over the rows of `tables`, the same ones every time."""
        operation, schema = self.operations[tool], self.schemas[tool]
        rng = seeded("arguments", self.spec.name, tool, seed, optional)
        required = set(schema.get("required", ()))
        for _ in range(limit):
            arguments: dict[str, JSON] = {}
            for name, part in schema.get("properties", {}).items():
                if name in required or optional:
                    binding = operation.args.get(name, ArgBinding(role="ignored"))
                    value = self.value(operation, binding, part, tables, rng)
                    if value is not None or name in required:
                        arguments[name] = value
            # Half of the calls name parents that fit the row, half name whatever there is.
            yield self.aligned(operation, arguments, tables) if rng.random() < 0.5 else arguments

    def value(
        self,
        operation: Operation,
        binding: ArgBinding,
        schema: Mapping[str, Any],
        tables: Tables,
        rng: random.Random,
    ) -> JSON:
        """Draw one argument: an existing row for references, a value of the schema otherwise."""
        owner = binding.entity or operation.entity
        rows = list(tables.get(owner or "", {}).values())
        if binding.role in ("id", "natural_key") and owner in self.entities:
            if not rows:
                return FABRICATED_NUMBER if schema.get("type") == "integer" else FABRICATED_TEXT
            field = self.entities[owner].id_name if binding.role == "id" else binding.field or ""
            value = rng.choice(rows).get(field)
            return [value] if schema.get("type") == "array" else value
        if binding.role in ("filter", "query") and binding.field and rows:
            value = rng.choice(rows).get(binding.field)
            if binding.match == "contains" and isinstance(value, str):
                value = rng.choice(value.split() or [value])
            if value is not None:
                return value
        name = binding.field or ""
        taken = {row.get(name) for row in rows if isinstance(row.get(name), str)}
        return schema_value(schema, rng, avoid=taken if binding.role == "field" else set())

    def working(self, tool: str, seed: int, *, optional: bool = False) -> dict[str, JSON] | None:
        """Return arguments with which the tool succeeds in the first state of `seed`, if any are found."""
        key = (tool, seed, optional)
        if key not in self._working:
            self._working[key] = self._find_working(tool, seed, optional)
        return self._working[key]

    def _find_working(self, tool: str, seed: int, optional: bool) -> dict[str, JSON] | None:
        """Look for arguments that succeed; where the tool may change something, for ones that do."""
        start = self.session(seed).state_hash()
        changes = any(step.op not in ("lookup", "query") for step in self.operations[tool].steps)
        idle: dict[str, JSON] | None = None
        for arguments in self.candidates(tool, seed, self.first_tables(seed), optional=optional):
            session = self.session(seed)
            if session.call(tool, arguments).is_error:
                continue
            if not changes or session.state_hash() != start:
                return arguments
            idle = idle or arguments
        return idle

    def any_working(self, tool: str, *, optional: bool = False) -> tuple[int, dict[str, JSON]] | None:
        """Return the first (seed, arguments) with which the tool succeeds."""
        for seed in self.seeds:
            arguments = self.working(tool, seed, optional=optional)
            if arguments is not None:
                return seed, arguments
        return None

    def optional_parameters(self, tool: str) -> list[str]:
        """Return the parameters a caller may leave out."""
        schema = self.schemas[tool]
        required = schema.get("required", ())
        return [name for name in schema.get("properties", {}) if name not in required]

    def output_problem(self, tool: str, value: JSON) -> str | None:
        """Return why an answer does not fit the tool's output schema, None where it fits."""
        if tool not in self._validators:
            import jsonschema

            declared = self.spec.tool(tool).output_schema
            schema = declared or output_schema(self.spec, self.operations[tool])
            self._validators[tool] = jsonschema.Draft202012Validator(schema)
        error = next(iter(self._validators[tool].iter_errors(value)), None)
        return None if error is None else error.message

    def fabricated(self, tool: str, parameter: str) -> JSON:
        """Return an identifier of the right type that no row has."""
        kind = self.schemas[tool].get("properties", {}).get(parameter, {}).get("type")
        return FABRICATED_NUMBER if kind in ("integer", "number") else FABRICATED_TEXT

    def may_refuse(self, operation: Operation, arguments: Mapping[str, JSON], seed: int) -> bool:
        """Tell whether a declared guard or lookup refuses a call in the first state of `seed`."""
        bound = self.bindings(operation, arguments, self.first_tables(seed))
        session = self.session(seed)
        return bound is None or not all(
            self.holds(g.condition, arguments, bound, session) for g in operation.guards
        )

    def completed(self, operation: Operation, arguments: Mapping[str, JSON]) -> dict[str, JSON]:
        """Return arguments with the defaults of the schema, which hold where a caller says nothing.

        An update leaves alone what it is not given, so defaults do not count there.
        """
        if operation.verb in ("update", "settings"):
            return dict(arguments)
        properties = self.schemas[operation.tool].get("properties", {})
        defaults = {
            name: part["default"] for name, part in properties.items() if part.get("default") is not None
        }
        return {**defaults, **arguments}

    # --- declared conditions ------------------------------------------------------------------

    def matches(self, operation: Operation, arguments: Mapping[str, JSON], row: Row) -> bool:
        """Tell whether a row should be among the answers of a reading tool, by its bindings."""
        for name, value in self.completed(operation, arguments).items():
            binding = operation.args.get(name)
            if (
                binding is None
                or value is None
                or binding.role not in ("id", "natural_key", "filter", "query")
            ):
                continue
            field = self.row_field(operation, name)
            if field is None:
                continue
            mode = binding.match if binding.role in ("filter", "query") else "exact"
            if not compare(row.get(field), value, mode):
                return False
        return True

    def bindings(self, operation: Operation, arguments: Mapping[str, JSON], tables: Tables) -> Bound | None:
        """Return what the declared lookups and queries bind: name -> (entity, row or rows).

        None where a lookup finds nothing.
        """
        arguments = self.completed(operation, arguments)
        bound: Bound = {}
        for step in operation.steps:
            if isinstance(step, Lookup):
                value = arguments.get(step.arg)
                if value is None and step.optional:
                    bound[step.bind] = (step.entity, None)
                    continue
                role = "natural_key" if step.field else "id"
                row = self.resolve(tables, ArgBinding(role=role, entity=step.entity, field=step.field), value)
                if row is None:
                    return None
                bound[step.bind] = (step.entity, row)
            elif isinstance(step, Query):
                rows = [
                    row
                    for row in tables[step.entity].values()
                    if all(
                        arguments.get(f.arg) is None or compare(row.get(f.field), arguments[f.arg], f.match)
                        for f in step.filters
                    )
                    and (
                        step.where is None
                        or self.holds(step.where, arguments, {**bound, "row": (step.entity, row)})
                    )
                ]
                bound[step.bind] = (step.entity, rows)
        return bound

    def value_of(
        self,
        expression: Any,
        arguments: Mapping[str, JSON],
        bound: Bound,
        session: SessionLike | None = None,
    ) -> Any:
        """Return the value of a declared expression for the bound rows."""
        id_names = {entity.name: entity.id_name for entity in self.spec.entities}
        scope = Scope(
            arguments=arguments, bound=bound, id_names=id_names, session=session, now=self.spec.epoch
        )
        return evaluate(expression, scope)

    def holds(
        self,
        condition: Any,
        arguments: Mapping[str, JSON],
        bound: Bound,
        session: SessionLike | None = None,
    ) -> bool:
        """Tell whether a declared condition is true for the bound rows."""
        return bool(self.value_of(condition, arguments, bound, session))
