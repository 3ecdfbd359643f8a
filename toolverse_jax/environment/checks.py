"""Checks a specification as a whole; operations are checked when they are compiled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

from toolverse_jax.environment.database import seed_order
from toolverse_jax.environment.failures import CallFailure
from toolverse_jax.environment.spec import (
    Choices,
    Compose,
    DateRange,
    Entity,
    EnvSpec,
    FieldSpec,
    NumberRange,
    ValueKind,
)
from toolverse_jax.environment.transaction import KEY
from toolverse_jax.environment.values import VALUE_KINDS
from toolverse_jax.environment.writes import check_value
from toolverse_jax.errors import EnvironmentSpecError
from toolverse_jax.types import json_equal


def check_spec(spec: EnvSpec) -> None:
    """Check names, references, generators, seed rows and lifecycles.

    Raises:
        EnvironmentSpecError: one sentence that names the environment, the place and the problem.
    """
    _Checker(spec).check()


class _Checker:
    def __init__(self, spec: EnvSpec) -> None:
        self._spec = spec
        self._entities = {entity.name: entity for entity in spec.entities}

    def _fail(self, place: str, problem: str) -> EnvironmentSpecError:
        return EnvironmentSpecError(f"environment {self._spec.name!r}, {place}: {problem}")

    def check(self) -> None:
        spec = self._spec
        self._check_epoch()
        self._distinct("entities", (entity.name for entity in spec.entities))
        self._distinct("plurals", (entity.plural for entity in spec.entities))
        self._distinct("singletons", (singleton.name for singleton in spec.singletons))
        self._distinct("tools", (tool.name for tool in spec.tools))
        self._distinct("operations", (operation.tool for operation in spec.operations))
        tools = {tool.name for tool in spec.tools}
        operations = {operation.tool for operation in spec.operations}
        for name in [*(t for t in sorted(tools) if t not in operations)][:1]:
            raise self._fail(f"tool {name!r}", "it has no operation")
        for name in [*(t for t in sorted(operations) if t not in tools)][:1]:
            raise self._fail(f"operation {name!r}", "there is no tool of this name")
        for entity in spec.entities:
            self._check_entity(entity)
        for singleton in spec.singletons:
            place = f"singleton {singleton.name!r}"
            self._distinct(f"fields of {place}", (field.name for field in singleton.fields))
            for field in singleton.fields:
                self._check_field(f"{place}, field {field.name!r}", field)
        try:
            seed_order(spec.entities)
        except ValueError as error:
            raise self._fail("entities", str(error)) from error

    def _check_epoch(self) -> None:
        try:
            epoch = datetime.fromisoformat(self._spec.epoch)
        except ValueError:
            raise self._fail("epoch", f"{self._spec.epoch!r} is not an ISO 8601 date and time") from None
        if not 1000 <= epoch.year <= 9000:
            raise self._fail("epoch", f"the year of {self._spec.epoch!r} must be within 1000-9000")

    def _distinct(self, what: str, names: Iterable[str]) -> None:
        for name, count in Counter(names).items():
            if count > 1:
                raise self._fail(what, f"the name {name!r} is used {count} times")

    def _check_entity(self, entity: Entity) -> None:
        place = f"entity {entity.name!r}"
        self._distinct(f"fields of {place}", (field.name for field in entity.fields))
        names = {field.name for field in entity.fields}
        if ":" in entity.name:
            raise self._fail(place, "the name must not contain ':'")
        if entity.id_name in names or KEY in names:
            raise self._fail(place, f"the identifier {entity.id_name!r} is also the name of a field")
        if entity.label_field is not None and entity.label_field not in names:
            raise self._fail(place, f"label field {entity.label_field!r} does not exist")
        low, high = entity.population
        if not 0 <= low <= high:
            raise self._fail(place, f"population {entity.population!r} is not a range from low to high")
        if not 1 <= entity.id_scheme.length <= 24:
            raise self._fail(place, f"identifier length must be 1-24, got {entity.id_scheme.length}")
        for field in entity.fields:
            self._check_field(f"{place}, field {field.name!r}", field)
            self._check_reference(entity, field)
            if field.unique:
                self._check_unique(entity, field)
        self._check_lifecycle(entity)
        self._check_seed(entity)

    def _check_field(self, place: str, field: FieldSpec) -> None:
        if (field.type == "ref") != (field.ref is not None):
            raise self._fail(place, "a field has `ref` exactly when its type is 'ref'")
        if field.ref is not None and field.ref not in self._entities:
            raise self._fail(place, f"it refers to entity {field.ref!r}, which does not exist")
        if field.type == "enum" and not field.enum:
            raise self._fail(place, "an enum field needs a list of values")
        if field.type == "ref" and field.default is not None:
            raise self._fail(place, "a reference has no default other than null")
        if field.default is not None and field.type != "ref":
            self._check_fits(place, field, field.default, "default")
        self._check_generator(place, field)

    def _check_fits(self, place: str, field: FieldSpec, value: object, what: str) -> None:
        try:
            check_value(field, value, None)
        except CallFailure as failure:
            raise self._fail(place, f"the {what} {value!r} does not fit: {failure.message}") from None

    def _check_generator(self, place: str, field: FieldSpec) -> None:
        generator = field.generator
        if isinstance(generator, ValueKind):
            if generator.value not in VALUE_KINDS:
                raise self._fail(
                    place, f"unknown kind of value {generator.value!r}; known: {', '.join(VALUE_KINDS)}"
                )
        elif isinstance(generator, Choices):
            for value in generator.values:
                self._check_fits(place, field, value, "choice")
        elif isinstance(generator, Compose):
            if not any(generator.parts):
                raise self._fail(place, "the compose generator has no words")
        elif isinstance(generator, NumberRange):
            if generator.step <= 0 or generator.high < generator.low:
                raise self._fail(place, "the range generator needs low <= high and a positive step")
        elif (
            isinstance(generator, DateRange)
            and not -300_000 <= generator.low_days <= generator.high_days <= 300_000
        ):
            raise self._fail(place, "the date generator needs low_days <= high_days, within 300000 days")

    def _check_reference(self, entity: Entity, field: FieldSpec) -> None:
        if field.ref is None:
            return
        place = f"entity {entity.name!r}, field {field.name!r}"
        parent = self._entities[field.ref]
        if field.nullable:
            return
        if parent.name == entity.name:
            raise self._fail(
                place, "a reference to its own entity must be nullable, the first row has no other"
            )
        if parent.on_delete == "nullify":
            raise self._fail(
                place, f"{field.ref!r} has on_delete 'nullify', so references to it must be nullable"
            )
        if parent.population[0] + len(parent.seed) < 1 and entity.population[1] + len(entity.seed) > 0:
            raise self._fail(place, f"{field.ref!r} may have no rows to refer to; raise its population")

    def _check_unique(self, entity: Entity, field: FieldSpec) -> None:
        domain = len(field.enum) if field.enum else 2 if field.type == "boolean" else None
        most = entity.population[1] + len(entity.seed)
        if domain is not None and domain < most and not field.nullable:
            raise self._fail(
                f"entity {entity.name!r}, field {field.name!r}",
                f"it is unique with {domain} possible values, but there may be {most} rows",
            )

    def _check_lifecycle(self, entity: Entity) -> None:
        lifecycle = entity.lifecycle
        if lifecycle is None:
            return
        place = f"entity {entity.name!r}, lifecycle"
        field = next((field for field in entity.fields if field.name == lifecycle.field), None)
        if field is None or not field.enum:
            raise self._fail(place, f"{lifecycle.field!r} is not an enum field of the entity")
        for verb, (sources, target) in lifecycle.transitions.items():
            for state in (*sources, target):
                if state not in field.enum:
                    raise self._fail(
                        place, f"transition {verb!r} names state {state!r}, which the field does not have"
                    )

    def _check_seed(self, entity: Entity) -> None:
        fields = {field.name: field for field in entity.fields}
        for n, row in enumerate(entity.seed):
            place = f"entity {entity.name!r}, seed row {n}"
            for name, value in row.items():
                field = fields.get(name)
                if field is None:
                    raise self._fail(place, f"there is no field {name!r}")
                if field.ref is not None and value is not None:
                    self._check_seed_reference(place, field, value)
                else:
                    self._check_fits(place, field, value, f"value of {name!r}")
        for field in entity.fields:
            values = [row[field.name] for row in entity.seed if row.get(field.name) is not None]
            if field.unique and any(json_equal(a, b) for i, a in enumerate(values) for b in values[:i]):
                raise self._fail(
                    f"entity {entity.name!r}", f"seed rows share a value of the unique field {field.name!r}"
                )

    def _check_seed_reference(self, place: str, field: FieldSpec, value: object) -> None:
        parent = self._entities[field.ref or ""]
        count = len(parent.seed) + parent.population[0]
        if not any(value == f"{parent.name}:{n}" for n in range(count)):
            raise self._fail(
                place, f"{field.name!r} must be the key of a row such as '{parent.name}:0', got {value!r}"
            )
