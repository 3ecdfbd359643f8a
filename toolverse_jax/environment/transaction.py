"""State of a session, and the copy-on-write transaction that one tool call runs in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from toolverse_jax.environment.identifiers import Identifiers
from toolverse_jax.types import JSON

KEY = "$key"
"""Member of a row that holds its internal key; not a field."""

Row = dict[str, Any]
Table = dict[str, Row]


class State:
    """One immutable version of the data: successors share every table they did not change."""

    __slots__ = ("clock", "counters", "singletons", "tables")

    def __init__(
        self,
        tables: Mapping[str, Table],
        singletons: Mapping[str, Row],
        counters: Mapping[str, int],
        clock: int = 0,
    ) -> None:
        self.tables = tables
        """Entity -> internal key -> row, in order of creation."""
        self.singletons = singletons
        self.counters = counters
        """Entity -> number of rows ever created, so that keys are never used twice."""
        self.clock = clock
        """Number of changing calls so far."""


class Transaction:
    """The data as one running call sees it; dropping the transaction undoes the call."""

    __slots__ = (
        "_base",
        "_copied",
        "_time_at",
        "arguments",
        "bound",
        "counters",
        "identifiers",
        "singletons",
        "tables",
    )

    def __init__(
        self,
        state: State,
        identifiers: Identifiers,
        arguments: Mapping[str, JSON],
        time_at: Callable[[int], str],
    ) -> None:
        self._base = state
        self._copied: set[str] | None = None
        self.tables: Mapping[str, Table] = state.tables
        self.singletons: Mapping[str, Row] = state.singletons
        self.counters: Mapping[str, int] = state.counters
        self.identifiers = identifiers
        self.arguments = arguments
        self._time_at = time_at
        self.bound: dict[str, Any] = {}

    @property
    def now(self) -> str:
        """Logical time of the call."""
        return self._time_at(self._base.clock)

    def _writable(self, entity: str) -> Table:
        copied = self._copied
        if copied is None:
            copied = self._copied = set()
            self.tables = dict(self.tables)
        tables: dict[str, Table] = self.tables  # type: ignore[assignment]
        if entity not in copied:
            copied.add(entity)
            tables[entity] = dict(tables[entity])
        return tables[entity]

    def current(self, entity: str, row: Row) -> Row | None:
        """Return the newest version of a row, None when it was deleted."""
        return self.tables[entity].get(row[KEY])

    def insert(self, entity: str, values: Row) -> Row:
        """Add a row under the next key of its entity."""
        n = self.counters[entity]
        key = self.identifiers.issue(entity, n)
        self.counters = {**self.counters, entity: n + 1}
        row = {KEY: key, **values}
        self._writable(entity)[key] = row
        return row

    def replace(self, entity: str, old: Row, changes: Row) -> Row:
        """Put a new version of a row in place of the old one, in every binding too."""
        row = {**old, **changes}
        self._writable(entity)[row[KEY]] = row
        for name, value in self.bound.items():
            if value is old:
                self.bound[name] = row
        return row

    def delete(self, entity: str, key: str) -> None:
        """Remove a row."""
        del self._writable(entity)[key]

    def set_singleton(self, name: str, changes: Row) -> None:
        """Replace fields of a singleton."""
        self.singletons = {**self.singletons, name: {**self.singletons[name], **changes}}

    def commit(self) -> State:
        """Return the state after the call: the same object when nothing changed."""
        base = self._base
        if self.tables is base.tables and self.singletons is base.singletons:
            return base
        return State(self.tables, self.singletons, self.counters, base.clock + 1)
