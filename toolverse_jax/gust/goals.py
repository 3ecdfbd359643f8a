"""Grounds one goal: chooses its rows and values, and finds the look-ups that must come before it."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping

from toolverse_jax.environment.session import Session
from toolverse_jax.environment.spec import Operation, Transition, Update
from toolverse_jax.gust.dataflow import needed_ids
from toolverse_jax.gust.knowledge import Knowledge
from toolverse_jax.gust.questions import Questioner
from toolverse_jax.gust.referring import Referrer
from toolverse_jax.gust.trace import GroundedCall, Reference
from toolverse_jax.gust.user_values import SCALARS, UserValues
from toolverse_jax.gust.wording import Wording
from toolverse_jax.types import JSON

_ROW_TRIES = 6
_OPTIONAL_RATE = 0.3
_MAX_SAID = 4
_SPOKEN_ROLES = ("field", "amount", "natural_key")

Row = Mapping[str, JSON]


class CannotGround(Exception):
    """A goal has no sensible arguments now; the message is the reason that is counted."""


@dataclasses.dataclass(frozen=True)
class Choice:
    """Rows chosen for the identifiers of a goal."""

    rows: dict[str, tuple[str, Row]]
    """Entity and row by parameter."""


class GoalGrounder:
    """Grounds goals of one conversation."""

    def __init__(
        self,
        wording: Wording,
        session: Session,
        knowledge: Knowledge,
        referrer: Referrer,
        rng: random.Random,
    ) -> None:
        self.wording = wording
        self.session = session
        self.knowledge = knowledge
        self.referrer = referrer
        self.rng = rng
        self.values = UserValues(wording, session, rng)
        self.questioner = Questioner(wording, session, knowledge, rng)
        self.changed: set[tuple[JSON, str]] = set()
        """Rows and fields that a user has changed already, and is not asked to change again."""
        self.ended: set[JSON] = set()
        """Rows that were cancelled, closed or the like; few people go on about them."""
        self._ids = {tool: needed_ids(wording.spec, op) for tool, op in wording.operations.items()}

    def candidates(self, tool: str, turn: int) -> list[list[GroundedCall]]:
        """Return ways to ground a goal, best first: look-ups and the goal itself, not yet executed.

        Raises:
            CannotGround: the tool takes something no user says, or no row fits.
        """
        operation = self.wording.operations[tool]
        if operation.verb == "other" or operation.simulated == "none" or operation.entity is None:
            raise CannotGround("unsupported_operation")
        ways: list[list[GroundedCall]] = []
        reason = "no_row"
        for choice in self._choices(operation, turn):
            try:
                ways.append(self._ground(operation, choice, turn))
            except CannotGround as failure:
                reason = str(failure)
            if len(ways) >= _ROW_TRIES:
                break
        if not ways:
            raise CannotGround(reason)
        return ways

    # --- rows ---------------------------------------------------------------------------------

    def _choices(self, operation: Operation, turn: int) -> list[Choice]:
        """Return row choices for the identifier parameters, in random order weighted by coherence."""
        needed = [need for need in self._ids[operation.tool] if need.required]
        optional = [need for need in self._ids[operation.tool] if not need.required]
        if operation.verb in ("list", "search", "aggregate") and optional and self.rng.random() < 0.6:
            needed = [*needed, self.rng.choice(optional)]
        choices = []
        for _ in range(_ROW_TRIES if needed else 2):
            rows: dict[str, tuple[str, Row]] = {}
            # Children first: the row of a parent parameter follows from its child.
            for need in sorted(needed, key=lambda n: -len(self.wording.parent_fields(n.entity))):
                row = self._implied_parent(need.entity, rows) or self._draw_row(
                    operation, need.entity, turn, rows
                )
                if row is None:
                    break
                rows[need.parameter] = (need.entity, row)
            if len(rows) == len(needed):
                choices.append(Choice({need.parameter: rows[need.parameter] for need in needed}))
        return choices

    def _implied_parent(self, entity: str, chosen: dict[str, tuple[str, Row]]) -> Row | None:
        for child, row in chosen.values():
            for field, parent in self.wording.parent_fields(child).items():
                if parent == entity and row.get(field) is not None:
                    name = self.wording.entities[entity].id_name
                    return next((r for r in self.session.rows(entity) if r[name] == row[field]), None)
        return None

    def _draw_row(
        self, operation: Operation, entity: str, turn: int, chosen: dict[str, tuple[str, Row]]
    ) -> Row | None:
        name = self.wording.entities[entity].id_name
        taken = [row[name] for other, row in chosen.values() if other == entity]
        rows = [
            row
            for row in self.session.rows(entity)
            if row[name] not in taken and self._fits(operation, entity, row)
        ]
        if not rows:
            return None
        return self.rng.choices(rows, [self._appeal(entity, row, turn) for row in rows])[0]

    def _fits(self, operation: Operation, entity: str, row: Row) -> bool:
        spec = self.wording.entities[entity]
        if (
            operation.verb == "get"
            and entity == operation.entity
            and not self.questioner.hidden_fields(operation, row)
        ):
            return False
        for step in operation.steps:
            if isinstance(step, Transition) and step.entity == entity and spec.lifecycle is not None:
                sources = spec.lifecycle.transitions.get(step.verb, ((), ""))[0]
                if row.get(spec.lifecycle.field) not in sources:
                    return False
        return True

    def _appeal(self, entity: str, row: Row, turn: int) -> float:
        """Prefer what the conversation is about, then what it has shown, then what lies near."""
        key = row[self.wording.entities[entity].id_name]
        if key in self.ended:
            return 0.2
        if self.knowledge.is_focus(entity, key, turn):
            return 8.0
        if (entity, key) in self.knowledge.rows:
            return 3.0
        for field, parent in self.wording.parent_fields(entity).items():
            if self.knowledge.is_focus(parent, row.get(field), turn):
                return 4.0
        return 1.0

    # --- arguments ----------------------------------------------------------------------------

    def _ground(self, operation: Operation, choice: Choice, turn: int) -> list[GroundedCall]:
        tool = operation.tool
        arguments: dict[str, JSON] = {}
        references: dict[str, Reference] = {}
        lookups: list[GroundedCall] = []
        target = self._target(operation, choice)
        for parameter, (entity, row) in choice.rows.items():
            resolved = self.referrer.resolve(
                entity, row, turn, consumer=tool, parameter=parameter, main=parameter == target
            )
            if resolved is None:
                raise CannotGround("no_reference")
            references[parameter], needed = resolved
            arguments[parameter] = row[self.wording.entities[entity].id_name]
            lookups += [call for call in needed if call not in lookups]
        row = choice.rows[target][1] if target else None
        said, match = self._said(operation, row, arguments)
        question = None
        if operation.verb in ("list", "search", "get", "aggregate"):
            question = self.questioner.prepare(operation, row, references, said)
            if question is None:
                raise CannotGround("already_known")
            said, match = question.said, question.match
        ordered = {
            name: {**arguments, **said}[name]
            for name in self.wording.schemas[tool]
            if name in {**arguments, **said}
        }
        goal = GroundedCall(
            tool=tool,
            arguments=ordered,
            bindings={},
            match=match,
            references=references,
            said=said,
            alternatives=question.alternatives(tool, ordered) if question else (),
        )
        return [*lookups, goal]

    def _target(self, operation: Operation, choice: Choice) -> str | None:
        """Return the parameter of the row that the operation is about."""
        if operation.verb in ("create", "list", "search", "aggregate"):
            return None
        return next((p for p, (entity, _) in choice.rows.items() if entity == operation.entity), None)

    def _said(
        self, operation: Operation, row: Row | None, given: Mapping[str, JSON]
    ) -> tuple[dict[str, JSON], dict[str, str]]:
        """Draw the values a user says outright, optional ones only now and then."""
        tool = operation.tool
        required = self.wording.required[tool]
        said: dict[str, JSON] = {}
        optional = [
            p for p in self.wording.schemas[tool] if p not in required and self._speakable(operation, p)
        ]
        for parameter in required:
            if parameter in given:
                continue
            if operation.verb in ("list", "search", "aggregate"):
                continue
            if not self._speakable(operation, parameter):
                raise CannotGround("unsupported_argument")
            said[parameter] = self._value(operation, parameter, row)
        if operation.verb in ("create", "update", "transition", "adjust"):
            self._say_optional(operation, optional, row, said)
        if len(said) > _MAX_SAID:
            raise CannotGround("too_many_values")
        return said, {}

    def _say_optional(
        self, operation: Operation, optional: list[str], row: Row | None, said: dict[str, JSON]
    ) -> None:
        if operation.verb == "update" and not said:
            if not optional:
                raise CannotGround("unsupported_argument")
            first = self.rng.choice(optional)
            said[first] = self._value(operation, first, row)
            return
        for parameter in optional:
            if len(said) < _MAX_SAID - 1 and self.rng.random() < _OPTIONAL_RATE:
                said[parameter] = self._value(operation, parameter, row)

    def _speakable(self, operation: Operation, parameter: str) -> bool:
        binding = operation.args.get(parameter)
        schema = self.wording.schemas[operation.tool].get(parameter, {})
        if binding is None or binding.role not in _SPOKEN_ROLES or schema.get("type") not in SCALARS:
            return False
        place = self.wording.argument_field(operation.tool, parameter)
        return place is not None and self.wording.entities[place[0]].field(place[1]).type != "ref"

    def _value(self, operation: Operation, parameter: str, row: Row | None) -> JSON:
        place = self.wording.argument_field(operation.tool, parameter)
        current: list[JSON] = []
        if row is not None and place is not None and operation.verb != "adjust":
            key = row[self.wording.entities[operation.entity or ""].id_name]
            if (key, place[1]) in self.changed and any(isinstance(s, Update) for s in operation.steps):
                raise CannotGround("changed_before")
            current = [row.get(place[1])]
        value = self.values.fresh(operation.tool, parameter, avoid=current)
        if value is None:
            raise CannotGround("no_value")
        return value
