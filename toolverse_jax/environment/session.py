"""Session: one live copy of an environment, advanced by tool calls."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from toolverse_jax.environment.database import Database
from toolverse_jax.environment.failures import CallFailure
from toolverse_jax.environment.outputs import compile_row
from toolverse_jax.environment.transaction import KEY, State, Transaction
from toolverse_jax.types import JSON, ToolCall, ToolResult

if TYPE_CHECKING:
    from toolverse_jax.environment.engine import Environment


_RawEntry = tuple[str, dict[str, JSON], JSON, bool, bool]
"""A journal entry before anyone asked for it: of plain values, which the garbage collector skips."""


class JournalEntry(NamedTuple):
    """One call of a session."""

    call: ToolCall
    result: ToolResult
    changed: bool
    """Whether the call changed the state."""


class Snapshot(NamedTuple):
    """A point a session can go back to."""

    state: State
    journal: tuple[_RawEntry, ...]


class Session:
    """One live copy of an environment; sessions never see each other's changes.

    Opening, snapshotting and forking are cheap: states are immutable and share what did not change.
    """

    __slots__ = ("_database", "_journal", "_state", "environment")

    def __init__(self, environment: Environment, database: Database) -> None:
        self.environment = environment
        self._database = database
        self._state = database.state
        self._journal: list[_RawEntry] = []

    @property
    def journal(self) -> list[JournalEntry]:
        """All calls so far with their results, oldest first."""
        return [
            JournalEntry(
                ToolCall(name=name, arguments=arguments), ToolResult(value=value, is_error=is_error), changed
            )
            for name, arguments, value, is_error, changed in self._journal
        ]

    @property
    def now(self) -> str:
        """Logical time, ISO 8601: the epoch plus one minute per changing call."""
        return self.environment.time_at(self._state.clock)

    def call(self, tool: str, arguments: Mapping[str, JSON]) -> ToolResult:
        """Call a tool.

        A call either succeeds as a whole or changes nothing. Whatever the arguments are, the answer
        is a result: errors have the value `{"error": {"code", "message", "param"?}}`.
        """
        state = self._state
        environment = self.environment
        after = state
        plan = environment.plans.get(tool) if isinstance(tool, str) else None
        if plan is None:
            result = CallFailure("unknown_tool", "There is no tool of this name.").to_result()
        else:
            try:
                checked = plan.checker.check(arguments)
                tx = Transaction(state, self._database.identifiers, checked, environment.time_at)
                for run in plan.steps:
                    run(tx)
                result = ToolResult(value=plan.render(tx))
                after = tx.commit()
            except CallFailure as failure:
                result = failure.to_result()
        self._state = after
        made = dict(arguments) if type(arguments) is dict or isinstance(arguments, Mapping) else {}
        name = tool if isinstance(tool, str) else type(tool).__name__
        self._journal.append((name, made, result.value, result.is_error, after is not state))
        return result

    def state_hash(self) -> str:
        """Return a hash of all rows and singletons, 32 hexadecimal digits.

        Rows are named by internal keys, so the hash does not depend on how identifiers look. The
        clock and the number of rows ever created are left out.
        """
        tables = {
            entity: {key: {n: v for n, v in row.items() if n != KEY} for key, row in table.items()}
            for entity, table in self._state.tables.items()
        }
        text = json.dumps(
            {"tables": tables, "singletons": dict(self._state.singletons)},
            sort_keys=True,
            separators=(",", ":"),
        )
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def snapshot(self) -> Snapshot:
        """Return the present point."""
        return Snapshot(self._state, tuple(self._journal))

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a point of this session or of one with the same environment and seed."""
        self._state = snapshot.state
        self._journal = list(snapshot.journal)

    def fork(self) -> Session:
        """Return an independent copy of this session, with its journal."""
        copy = Session(self.environment, self._database)
        copy.restore(self.snapshot())
        return copy

    def rows(self, entity: str) -> list[dict[str, JSON]]:
        """Return the current rows of an entity in order of creation, all fields, as callers would see them.

        Raises:
            KeyError: there is no such entity.
        """
        render = self.environment.row_renderers[entity]
        return [render(row, self._database.identifiers) for row in self._state.tables[entity].values()]

    def singleton(self, name: str) -> dict[str, JSON]:
        """Return the current fields of a singleton, as callers would see them.

        Raises:
            KeyError: there is no such singleton.
        """
        spec = next((each for each in self.environment.spec.singletons if each.name == name), None)
        if spec is None:
            raise KeyError(name)
        return compile_row(spec.fields, None)(self._state.singletons[name], self._database.identifiers)
