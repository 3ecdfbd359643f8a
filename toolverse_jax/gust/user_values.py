"""Values that a user says outright: fresh, plausible, and never those of a row that exists."""

from __future__ import annotations

import datetime
import random
from collections.abc import Mapping, Sequence

from toolverse_jax.environment.session import Session
from toolverse_jax.environment.spec import DateRange, Entity, FieldSpec
from toolverse_jax.environment.values import distinct_variant, fallback_value, generate_value
from toolverse_jax.gust.wording import Wording
from toolverse_jax.types import JSON

_ATTEMPTS = 12
_NEAREST_DAY = 2
_FARTHEST_DAY = 60
SCALARS = ("string", "integer", "number", "boolean")


class UserValues:
    """Draws the values of one conversation."""

    def __init__(self, wording: Wording, session: Session, rng: random.Random) -> None:
        self.wording = wording
        self.session = session
        self.rng = rng
        self.epoch = datetime.datetime.fromisoformat(wording.spec.epoch)

    def fresh(self, tool: str, parameter: str, *, avoid: Sequence[JSON] = ()) -> JSON:
        """Draw a value for an argument; None where there is no sensible one.

        Args:
            tool: the tool.
            parameter: its parameter, which stands for a field.
            avoid: values that would make the call pointless, such as the present one.
        """
        place = self.wording.argument_field(tool, parameter)
        schema = self.wording.schemas[tool].get(parameter, {})
        if place is None or schema.get("type", "string") not in SCALARS:
            return None
        entity = self.wording.entities[place[0]]
        field = entity.field(place[1])
        taken = {_fold(value) for value in avoid}
        if field.unique or field.name == entity.label_field:
            taken |= {_fold(row.get(field.name)) for row in self.session.rows(entity.name)}
        if field.name == entity.label_field:
            taken |= self._labels()
        candidate: JSON = None
        for attempt in range(_ATTEMPTS):
            candidate = self._draw(entity, field, schema)
            if candidate is None:
                return None
            if _fold(candidate) not in taken:
                return candidate
            if attempt > _ATTEMPTS // 2 and field.type == "string" and field.enum is None:
                candidate = distinct_variant(candidate, attempt)
                if _fold(candidate) not in taken:
                    return candidate
        return None

    def _labels(self) -> set[JSON]:
        return {
            _fold(row[entity.label_field])
            for entity in self.wording.entities.values()
            if entity.label_field is not None
            for row in self.session.rows(entity.name)
        }

    def _draw(self, entity: Entity, field: FieldSpec, schema: Mapping[str, JSON]) -> JSON:
        choices = schema.get("enum") or field.enum
        if choices:
            options = [value for value in choices if value is not None]
            return self.rng.choice(options) if options else None
        if field.type in ("date", "datetime"):
            return self._date(field)
        if schema.get("examples"):
            return self.rng.choice(schema["examples"])
        if field.type == "boolean":
            return self.rng.random() < 0.5
        if field.generator is not None:
            value = generate_value(field.generator, self.rng, self.epoch, field)
        else:
            value = fallback_value(field, self.rng, self.epoch)
        if field.type in ("integer", "number") and isinstance(value, int | float):
            return _clamp(value, schema)
        return value

    def _date(self, field: FieldSpec) -> str:
        # What a user plans lies ahead, whatever the range of dates in the rows.
        ahead = DateRange(low_days=_NEAREST_DAY, high_days=_FARTHEST_DAY)
        return str(generate_value(ahead, self.rng, self.epoch, field))


def _clamp(value: float, schema: Mapping[str, JSON]) -> float:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None:
        value = max(value, low)
    if high is not None:
        value = min(value, high)
    return value


def _fold(value: JSON) -> JSON:
    return value.casefold() if isinstance(value, str) else value
