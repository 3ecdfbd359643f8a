"""Seeding: the rows an episode starts with, a pure function of (specification, seed)."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta

from toolverse_jax.environment.identifiers import Identifiers, row_key, stable_int
from toolverse_jax.environment.spec import Choices, Entity, EnvSpec, FieldSpec, ValueKind
from toolverse_jax.environment.transaction import KEY, Row, State, Table
from toolverse_jax.environment.values import (
    UNIQUE_ATTEMPTS,
    distinct_variant,
    fallback_value,
    generate_value,
)
from toolverse_jax.types import JSON


class Database:
    """The populated start state of one seed; sessions share it and copy what they change."""

    __slots__ = ("identifiers", "state")

    def __init__(self, state: State, identifiers: Identifiers) -> None:
        self.state = state
        self.identifiers = identifiers


def seed_order(entities: Sequence[Entity]) -> list[Entity]:
    """Order entities so that a row's references can be drawn from rows that exist already.

    References to an entity that comes later (a cycle through a nullable field) are drawn last.

    Raises:
        ValueError: entities refer to each other in a cycle of fields that may not be null.
    """
    ordered: list[Entity] = []
    placed: set[str] = set()
    waiting = list(entities)
    while waiting:
        ready = [e for e in waiting if _parents(e, nullable=True) <= placed | {e.name}]
        if not ready:
            ready = [e for e in waiting if _parents(e, nullable=False) <= placed][:1]
        if not ready:
            names = ", ".join(entity.name for entity in waiting)
            raise ValueError(f"entities {names} refer to each other through fields that may not be null")
        ordered += ready
        placed |= {entity.name for entity in ready}
        waiting = [entity for entity in waiting if entity.name not in placed]
    return ordered


def _parents(entity: Entity, *, nullable: bool) -> set[str]:
    return {
        f.ref for f in entity.fields if f.type == "ref" and f.ref is not None and (nullable or not f.nullable)
    }


def seed_rows(spec: EnvSpec, seed: int) -> dict[str, Table]:
    """Return the tables of an episode: seed rows first, then generated ones, by internal key."""
    return _Seeder(spec, seed).tables()


def seed_database(spec: EnvSpec, seed: int) -> Database:
    """Return the start state of an episode with its identifiers."""
    seeder = _Seeder(spec, seed)
    tables = seeder.tables()
    identifiers = Identifiers(spec.entities, seed)
    for entity in spec.entities:
        if tables[entity.name]:
            identifiers.issue(entity.name, len(tables[entity.name]) - 1)
    singletons = seeder.singletons(tables)
    counters = {entity.name: len(tables[entity.name]) for entity in spec.entities}
    return Database(State(tables, singletons, counters), identifiers)


class _Seeder:
    def __init__(self, spec: EnvSpec, seed: int) -> None:
        self._spec = spec
        self._seed = seed
        self._epoch = datetime.fromisoformat(spec.epoch)

    def _rng(self, *parts: object) -> random.Random:
        return random.Random(stable_int("row", self._spec.name, self._seed, *parts))

    def tables(self) -> dict[str, Table]:
        tables: dict[str, Table] = {entity.name: {} for entity in self._spec.entities}
        for entity in seed_order(self._spec.entities):
            generated = self._rng(entity.name, "population").randint(*entity.population)
            for n in range(len(entity.seed) + generated):
                given = entity.seed[n] if n < len(entity.seed) else {}
                self._add_row(entity, n, given, tables)
        self._fill_late_references(tables)
        return tables

    def _add_row(self, entity: Entity, n: int, given: dict[str, JSON], tables: dict[str, Table]) -> None:
        table = tables[entity.name]
        row: Row = {KEY: row_key(entity.name, n)}
        for field in entity.fields:
            if field.name in given:
                row[field.name] = given[field.name]
            elif field.type == "ref":
                row[field.name] = self._reference(field, (entity.name, n), tables)
            else:
                apart = field.unique or field.name == entity.label_field
                taken = [other[field.name] for other in table.values()] if apart else ()
                if field.unique:
                    taken = [*taken, *(other[field.name] for other in entity.seed[n:] if field.name in other)]
                row[field.name] = self._value(field, (entity.name, n), _person(entity.fields, row), taken)
        table[row[KEY]] = row

    def _reference(self, field: FieldSpec, place: tuple[object, ...], tables: dict[str, Table]) -> JSON:
        candidates = list(tables[field.ref or ""])
        return self._rng(*place, field.name).choice(candidates) if candidates else None

    def _fill_late_references(self, tables: dict[str, Table]) -> None:
        """Draw references that had no row to point to when their own row was made."""
        for entity in self._spec.entities:
            given = {row_key(entity.name, n): row for n, row in enumerate(entity.seed)}
            for field in entity.fields:
                if field.type != "ref" or field.ref == entity.name:
                    continue
                for n, (key, row) in enumerate(tables[entity.name].items()):
                    if row[field.name] is None and field.name not in given.get(key, {}):
                        row[field.name] = self._reference(field, (entity.name, n), tables)

    def _value(
        self, field: FieldSpec, place: tuple[object, ...], person: str | None, taken: Iterable[JSON]
    ) -> JSON:
        rng = self._rng(*place, field.name)
        taken = list(taken)
        value: JSON = None
        for _ in range(UNIQUE_ATTEMPTS):
            value = self._draw(field, rng, person)
            if value not in taken or value is None:
                return value
        if not field.unique:
            return value
        drawn, attempt = value, 0
        while value in taken and attempt <= len(taken):
            attempt += 1
            value = _vary(field, drawn, attempt)
        return value

    def _draw(self, field: FieldSpec, rng: random.Random, person: str | None) -> JSON:
        if field.generator is not None:
            return generate_value(field.generator, rng, self._epoch, field, person)
        if field.enum:
            return generate_value(Choices(values=field.enum), rng, self._epoch, field)
        if field.default is not None or field.nullable:
            return field.default
        return fallback_value(field, rng, self._epoch)

    def singletons(self, tables: dict[str, Table]) -> dict[str, Row]:
        result: dict[str, Row] = {}
        for singleton in self._spec.singletons:
            row: Row = {}
            for field in singleton.fields:
                place = ("singleton", singleton.name)
                if field.type == "ref":
                    row[field.name] = self._reference(field, place, tables)
                elif field.default is not None and field.generator is None:
                    row[field.name] = field.default
                else:
                    row[field.name] = self._value(field, place, _person(singleton.fields, row), ())
            result[singleton.name] = row
        return result


def _vary(field: FieldSpec, value: JSON, attempt: int) -> JSON:
    if isinstance(value, str) and field.type == "date":
        return (date.fromisoformat(value) + timedelta(days=attempt)).isoformat()
    if isinstance(value, str) and field.type == "datetime":
        return (datetime.fromisoformat(value) + timedelta(minutes=15 * attempt)).isoformat()
    return distinct_variant(value, attempt)


def _person(fields: Sequence[FieldSpec], row: Row) -> str | None:
    """Return the first name of a person among the values drawn so far."""
    for field in fields:
        if (
            isinstance(field.generator, ValueKind)
            and field.generator.value == "person"
            and row.get(field.name)
        ):
            return str(row[field.name])
    return None
