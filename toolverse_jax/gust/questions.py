"""Chooses what a user asks of a read, so that the read is needed to answer."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping, Sequence

from toolverse_jax.environment.session import Session
from toolverse_jax.environment.spec import Operation
from toolverse_jax.gust.knowledge import Knowledge, call_key
from toolverse_jax.gust.referring import Row, distinguishing_attributes
from toolverse_jax.gust.trace import Ask, AskKind, GroundedCall, Reference
from toolverse_jax.gust.wording import Wording
from toolverse_jax.types import JSON, GoldenCall

_FILTER_RATE = 0.5
_MAX_ANSWER_WORDS = 10
_ASKABLE = ("string", "integer", "number", "date", "datetime", "enum")


@dataclasses.dataclass(frozen=True)
class Question:
    """A planned read: the values its user says, and whether it can do without them."""

    said: dict[str, JSON]
    match: dict[str, str]
    field: str = ""
    optional: tuple[str, ...] = ()
    """Said parameters that a call may leave out and still answer."""

    lists: tuple[str, ...] = ()
    """Other tools that answer with the same arguments: a list serves to count."""

    def alternatives(self, tool: str, arguments: Mapping[str, JSON]) -> tuple[GoldenCall, ...]:
        """Return other calls that answer as well."""
        others = [GoldenCall(tool=name, arguments=dict(arguments)) for name in self.lists]
        if self.optional:
            rest = {name: value for name, value in arguments.items() if name not in self.optional}
            others.append(GoldenCall(tool=tool, arguments=rest))
        return tuple(others)


class Questioner:
    """Plans and settles questions of one conversation."""

    def __init__(self, wording: Wording, session: Session, knowledge: Knowledge, rng: random.Random) -> None:
        self.wording = wording
        self.session = session
        self.knowledge = knowledge
        self.rng = rng

    # --- before the call ----------------------------------------------------------------------

    def prepare(
        self,
        operation: Operation,
        row: Row | None,
        references: Mapping[str, Reference],
        said: dict[str, JSON],
    ) -> Question | None:
        """Return a question that makes the read necessary; None where all of it is known or unsayable."""
        identifiers = {name: reference.id for name, reference in references.items()}
        # All that belongs to a row made in this conversation was made in it too.
        if any(self.knowledge.was_made(key) for key in identifiers.values()):
            return None
        if operation.verb == "get":
            field = self._hidden_field(operation, row)
            return Question(said, {}, field=field) if field else None
        planned = self._filters(operation, identifiers)
        if planned is None:
            return None
        arguments = {**identifiers, **planned.said}
        if call_key(operation.tool, arguments) in self.knowledge.calls:
            return None
        if planned.said and call_key(operation.tool, identifiers) in self.knowledge.calls:
            return None
        if (operation.entity, tuple(identifiers.values())) in self.knowledge.listed:
            return None
        return planned

    def _hidden_field(self, operation: Operation, row: Row | None) -> str:
        """Return a field that only this read shows and that was not shown yet."""
        if row is None or operation.entity is None:
            return ""
        options = self.hidden_fields(operation, row)
        return self.rng.choice(options) if options else ""

    def hidden_fields(self, operation: Operation, row: Row) -> list[str]:
        """Return the fields of a row that only this read shows and that were not shown yet."""
        spec = self.wording.entities[operation.entity or ""]
        known = self.knowledge.rows.get((spec.name, row[spec.id_name]), {})
        listed = {f.name for f in spec.fields if "list" in f.visible_in}
        return [
            name
            for name in self.knowledge.shown_fields(operation)
            if name not in listed
            and name not in known
            and row.get(name) not in (None, "")
            and spec.field(name).type in _ASKABLE
        ]

    def _filters(self, operation: Operation, identifiers: Mapping[str, JSON]) -> Question | None:
        tool = operation.tool
        required = [p for p in self.wording.required[tool] if p not in identifiers]
        choices, queries = self._filter_parameters(operation)
        if any(p not in choices and p not in queries for p in required):
            return None
        said: dict[str, JSON] = {}
        for parameter in choices:
            if parameter in required or (not said and self.rng.random() < _FILTER_RATE):
                value = self._present_value(operation, parameter)
                if value is None and parameter in required:
                    return None
                if value is not None:
                    said[parameter] = value
        query = next((p for p in queries if p in required), None)
        if query is None and queries and not said and operation.verb == "search":
            query = self.rng.choice(queries)
        if query is None:
            return Question(said, {}, lists=self._lists(operation, (*identifiers, *said)))
        label = self._unknown_label(operation, query)
        if label is None:
            return None if query in required else Question(said, {})
        return Question({query: label}, {query: "ci"}, optional=() if query in required else (query,))

    def _lists(self, operation: Operation, parameters: Sequence[str]) -> tuple[str, ...]:
        """Return the lists that take the same arguments as an aggregate over the same rows."""
        if operation.verb != "aggregate":
            return ()
        return tuple(
            other.tool
            for other in self.wording.operations.values()
            if other.verb == "list"
            and other.entity == operation.entity
            and set(self.wording.required[other.tool])
            <= set(parameters)
            <= set(self.wording.schemas[other.tool])
        )

    def _filter_parameters(self, operation: Operation) -> tuple[list[str], list[str]]:
        """Return the parameters that filter by an enumeration, and those that search by the label."""
        choices, queries = [], []
        for parameter, binding in operation.args.items():
            place = self.wording.argument_field(operation.tool, parameter)
            if place is None or binding.role not in ("filter", "query"):
                continue
            spec = self.wording.entities[place[0]]
            field = spec.field(place[1])
            if field.type == "ref":
                continue
            schema = self.wording.schemas[operation.tool].get(parameter, {})
            if binding.match in ("exact", "ci") and (field.enum or schema.get("enum")):
                choices.append(parameter)
            elif field.name == spec.label_field and schema.get("type") == "string":
                queries.append(parameter)
        return choices, queries

    def _present_value(self, operation: Operation, parameter: str) -> JSON:
        """Draw a filter value that some row has, so that the answer is rarely empty."""
        place = self.wording.argument_field(operation.tool, parameter)
        if place is None:
            return None
        allowed = self.wording.schemas[operation.tool][parameter].get("enum")
        values = [row.get(place[1]) for row in self.session.rows(place[0])]
        values = [v for v in values if v is not None and (allowed is None or v in allowed)]
        return self.rng.choice(values) if values else None

    def _unknown_label(self, operation: Operation, parameter: str) -> JSON:
        place = self.wording.argument_field(operation.tool, parameter)
        if place is None:
            return None
        spec = self.wording.entities[place[0]]
        rows = self.session.rows(place[0])
        options = [
            row[place[1]]
            for row in rows
            if (place[0], row[spec.id_name]) not in self.knowledge.rows
            and distinguishing_attributes(rows, row, [place[1]], limit=1)
        ]
        return self.rng.choice(options) if options else None

    # --- after the call -----------------------------------------------------------------------

    def settle(self, call: GroundedCall) -> Ask | None:
        """Choose what the user asks of an executed read; None where the answer was known already."""
        operation = self.wording.operations[call.tool]
        entity = operation.entity or ""
        if operation.verb == "get":
            return self._settle_get(operation, call, entity)
        if operation.output.shape == "scalar":
            values = [v for v in call.result.values() if isinstance(v, int | float)] if call.result else []
            return Ask(kind="total", entity=entity, answer=(values[0],)) if values else None
        if operation.output.shape != "list":
            return None
        spec = self.wording.entities[entity]
        rows = call.result[spec.plural]
        fresh = [row for row in rows if (entity, row[spec.id_name]) not in self.knowledge.rows]
        if rows and not fresh:
            return None
        if any(self.wording.operations[call.tool].args[p].role == "query" for p in call.said) or call.match:
            return self._ask_value(operation, call, rows, fresh)
        options: list[tuple[float, Ask]] = []
        labels = tuple(row.get(spec.label_field) for row in rows) if spec.label_field else ()
        words = sum(len(str(label).split()) for label in labels)
        if (
            labels
            and len(labels) <= 4
            and words <= _MAX_ANSWER_WORDS
            and all(isinstance(v, str) for v in labels)
        ):
            options.append((3.0, Ask(kind="labels", entity=entity, answer=labels)))
        counted = any(
            op.verb == "aggregate" and op.entity == entity for op in self.wording.operations.values()
        )
        if not counted or not options:
            options.append((1.0 if rows else 0.5, Ask(kind="count", entity=entity, answer=(len(rows),))))
        value = None if call.said else self._ask_value(operation, call, rows, fresh)
        if value is not None:
            options.append((2.5, value))
        return self.rng.choices([ask for _, ask in options], [weight for weight, _ in options])[0]

    def _settle_get(self, operation: Operation, call: GroundedCall, entity: str) -> Ask | None:
        spec = self.wording.entities[entity]
        row = call.result
        field = self._hidden_field(operation, row)
        if not field:
            return None
        reference = next((r for r in call.references.values() if r.id == row[spec.id_name]), None)
        return Ask(kind="value", entity=entity, field=field, row=reference, answer=(row[field],))

    def _ask_value(
        self, operation: Operation, call: GroundedCall, rows: Sequence[Row], fresh: Sequence[Row]
    ) -> Ask | None:
        """Ask for one field of one listed row, named by its label."""
        entity = operation.entity or ""
        spec = self.wording.entities[entity]
        if spec.label_field is None or not fresh:
            return None
        row = self.rng.choice(fresh)
        attributes = distinguishing_attributes(rows, row, [spec.label_field], limit=1)
        fields = [
            name
            for name in self.knowledge.shown_fields(operation)
            if name != spec.label_field
            and row.get(name) not in (None, "")
            and spec.field(name).type in _ASKABLE
        ]
        if attributes is None or not fields:
            return None
        field = self.rng.choice(fields)
        parent = next(iter(call.references.values()), None)
        reference = Reference(entity=entity, id=row[spec.id_name], attributes=attributes, parent=parent)
        kind: AskKind = "find" if call.said else "value"
        return Ask(kind=kind, entity=entity, field=field, row=reference, answer=(row[field],))
