"""What the conversation has shown so far: identifiers, rows, listings, and which rows were spoken of."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Mapping, Sequence

from toolverse_jax.environment.spec import Operation
from toolverse_jax.gust.dataflow import shown_values
from toolverse_jax.gust.trace import GroundedCall, Mention, Reference
from toolverse_jax.gust.wording import Wording
from toolverse_jax.types import JSON

Place = tuple[int, int, tuple[str | int, ...]]
"""Turn, call inside the turn, path inside the result."""


class Knowledge:
    """Facts an attentive assistant has after the calls so far; grows call by call."""

    def __init__(self, wording: Wording) -> None:
        self.wording = wording
        self.sources: dict[JSON, Place] = {}
        """Where each identifier was shown first."""
        self.rows: dict[tuple[str, JSON], dict[str, JSON]] = {}
        """Last shown values of each row, by entity and identifier."""
        self.calls: set[str] = set()
        """Calls made, as canonical text."""
        self.listed: set[tuple[str | None, tuple[JSON, ...]]] = set()
        """Entity and identifiers of the reads that showed, or counted, all rows under these."""
        self.year: int | None = None
        """Year of the dates shown or said so far."""
        self._mentions: dict[int, dict[str, list[JSON]]] = {}
        self._made: dict[JSON, tuple[int, str]] = {}
        """Turn and verb by which a row was made."""
        self.main: tuple[int, str, JSON] | None = None
        """Turn, entity and identifier of the row that the last goal was about."""
        self._shown = {tool: shown_values(wording.spec, op) for tool, op in wording.operations.items()}

    # --- outputs ------------------------------------------------------------------------------

    def observe(self, call: GroundedCall, turn: int, index: int) -> None:
        """Take in the result of a call and the rows that the user mentioned for it."""
        operation = self.wording.operations[call.tool]
        self.calls.add(call_key(call.tool, call.arguments))
        if operation.verb in ("list", "search", "aggregate") and not call.said:
            self.listed.add((operation.entity, tuple(reference.id for reference in call.references.values())))
        for path, row in self.result_rows(operation, call.result):
            self._observe_row(operation, row, (turn, index, path))
        for reference in call.references.values():
            self._mention(reference, turn)
        if call.ask is not None and call.ask.row is not None:
            self._mention(call.ask.row, turn)
        if call.goal:
            self._settle_main(operation, call, turn)

    def note_years(self, calls: Sequence[GroundedCall]) -> None:
        """Take in the year of the dates that the calls of a turn showed or were given."""
        values = [value for call in calls for value in (*_leaves(call.result), *call.said.values())]
        years = sorted(year for value in values if (year := _year(value)) is not None)
        if years:
            self.year = years[0]

    def result_rows(
        self, operation: Operation, result: JSON
    ) -> Iterator[tuple[tuple[str | int, ...], Mapping[str, JSON]]]:
        """Yield the rows of a result with their paths."""
        if not isinstance(result, Mapping):
            return
        if operation.output.shape == "list":
            entity = self.output_entity(operation)
            if entity is not None:
                plural = self.wording.entities[entity].plural
                for number, row in enumerate(result.get(plural, ())):
                    yield (plural, number), row
        yield (), result

    def output_entity(self, operation: Operation) -> str | None:
        """Return the entity whose rows a result shows."""
        shown = self._shown[operation.tool]
        entity = operation.output.entity or operation.entity
        if operation.output.shape in ("list", "record"):
            own = next((s.entity for s in shown if s.field is None), None)
            return own or entity
        return None

    def shown_fields(self, operation: Operation) -> tuple[str, ...]:
        """Return the plain fields that a result shows of its rows."""
        return tuple(
            s.field.name for s in self._shown[operation.tool] if s.field is not None and s.field.type != "ref"
        )

    def _observe_row(self, operation: Operation, row: Mapping[str, JSON], place: Place) -> None:
        turn, index, path = place
        for shown in self._shown[operation.tool]:
            value = row.get(shown.output)
            if shown.is_id and value is not None and not isinstance(value, list | dict):
                self.sources.setdefault(value, (turn, index, (*path, shown.output)))
        entity = self.output_entity(operation)
        if entity is None:
            return
        key = row.get(self.wording.entities[entity].id_name)
        if key is not None:
            known = self.rows.setdefault((entity, key), {})
            known.update({name: value for name, value in row.items() if not isinstance(value, list | dict)})

    def _settle_main(self, operation: Operation, call: GroundedCall, turn: int) -> None:
        entity = operation.entity
        if entity is None or entity not in self.wording.entities or not isinstance(call.result, Mapping):
            self.main = None
            return
        key = call.result.get(self.wording.entities[entity].id_name)
        if operation.output.shape != "record" or key is None or operation.verb == "delete":
            self.main = None
            return
        self.main = (turn, entity, key)
        self._mentions.setdefault(turn, {}).setdefault(entity, [])
        if key not in self._mentions[turn][entity]:
            self._mentions[turn][entity].append(key)
        if operation.verb == "create":
            self._made[key] = (turn, self.wording.verbs[call.tool])

    # --- mentions -----------------------------------------------------------------------------

    def mention(self, entity: str, key: JSON, turn: int, *, main: bool) -> tuple[Mention, str] | None:
        """Return how anaphora can name a row without doubt, and the verb that made it; None if not.

        A row can be named so where it is the only one of its entity spoken of in this turn, or in
        the turn before and none in this turn.
        """
        if key not in self.sources or self.wording.is_person(entity):
            allow_pronoun = False
        else:
            allow_pronoun = True
        here = self._mentions.get(turn, {}).get(entity, [])
        before = self._mentions.get(turn - 1, {}).get(entity, [])
        spoken = here or before
        if spoken != [key]:
            return None
        recent = turn if here else turn - 1
        is_main = self.main is not None and self.main[1:] == (entity, key) and self.main[0] == recent
        if main and allow_pronoun and is_main and (here or not self._mentions.get(turn)):
            return "it", ""
        made = self._made.get(key)
        if made is not None and made[0] == turn - 1 and not here:
            return "new", made[1]
        return "that", ""

    def was_made(self, key: JSON) -> bool:
        """Return whether the row was made in this conversation."""
        return key in self._made

    def is_focus(self, entity: str, key: JSON, turn: int) -> bool:
        """Return whether the row was spoken of in this turn or the one before."""
        return any(key in self._mentions.get(t, {}).get(entity, []) for t in (turn, turn - 1))

    def mentioned_this_turn(self, entity: str, turn: int) -> list[JSON]:
        return self._mentions.get(turn, {}).get(entity, [])

    def _mention(self, reference: Reference, turn: int) -> None:
        spoken = self._mentions.setdefault(turn, {}).setdefault(reference.entity, [])
        if reference.id not in spoken:
            spoken.append(reference.id)
        if reference.parent is not None:
            self._mention(reference.parent, turn)


def call_key(tool: str, arguments: Mapping[str, JSON]) -> str:
    """Return a call as canonical text."""
    return f"{tool} {json.dumps(dict(arguments), sort_keys=True)}"


def _leaves(value: JSON) -> list[JSON]:
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in _leaves(item)]
    if isinstance(value, list):
        return [leaf for item in value for leaf in _leaves(item)]
    return [value]


def _year(value: JSON) -> int | None:
    if not isinstance(value, str) or len(value) < 10 or value[4:5] != "-":
        return None
    try:
        return datetime.date.fromisoformat(value[:10]).year
    except ValueError:
        return None
