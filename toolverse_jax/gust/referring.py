"""Referring expressions: the smallest set of attributes that singles a row out, and the look-ups it takes.

Dale and Reiter's incremental idea with an exact search: attribute sets are tried by size, the row's
label first, and a set counts only if no other row of the scope shares all its values now.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence

from toolverse_jax.environment.session import Session
from toolverse_jax.environment.spec import Operation
from toolverse_jax.gust.graph import ToolDependencyGraph
from toolverse_jax.gust.knowledge import Knowledge
from toolverse_jax.gust.trace import GroundedCall, Reference
from toolverse_jax.gust.wording import Wording
from toolverse_jax.types import JSON, GoldenCall

_MAX_ATTRIBUTES = 2
_ANAPHORA_RATE = 0.8
_KIND_ORDER = {"date": 1, "datetime": 1, "enum": 2, "integer": 3, "number": 3, "string": 4}

Row = Mapping[str, JSON]


def distinguishing_attributes(
    rows: Sequence[Row], target: Row, fields: Sequence[str], *, limit: int = _MAX_ATTRIBUTES
) -> tuple[tuple[str, JSON], ...] | None:
    """Return the smallest set of attributes that only the target has, or None.

    Args:
        rows: all rows in question, the target among them.
        target: the row to single out.
        fields: attributes that may be used, most natural first; ties go to the earlier ones.
        limit: most attributes of a set.
    """
    usable = [name for name in fields if target.get(name) not in (None, "")]
    for size in range(1, limit + 1):
        for names in itertools.combinations(usable, size):
            twins = sum(all(_same(row.get(name), target[name]) for name in names) for row in rows)
            if twins == 1:
                return tuple((name, target[name]) for name in names)
    return None


def _same(left: JSON, right: JSON) -> bool:
    if isinstance(left, str) and isinstance(right, str):
        return left.casefold() == right.casefold()
    return left == right


class Referrer:
    """Finds references to rows, and the look-ups that turn them into identifiers."""

    def __init__(
        self,
        wording: Wording,
        graph: ToolDependencyGraph,
        session: Session,
        knowledge: Knowledge,
        rng: random.Random,
    ) -> None:
        self.wording = wording
        self.graph = graph
        self.session = session
        self.knowledge = knowledge
        self.rng = rng
        self.readers = {name: self._readers(name) for name in wording.entities}

    def resolve(
        self, entity: str, row: Row, turn: int, *, consumer: str = "", parameter: str = "", main: bool = False
    ) -> tuple[Reference, list[GroundedCall]] | None:
        """Return a reference to a row and the look-ups that are needed first; None if there is no way."""
        key = row[self.wording.entities[entity].id_name]
        known = self.knowledge.rows.get((entity, key))
        if key in self.knowledge.sources:
            anaphor = self.knowledge.mention(entity, key, turn, main=main)
            # A row of this turn needs a pronoun: naming it twice in one message sounds wrong.
            here = key in self.knowledge.mentioned_this_turn(entity, turn)
            if anaphor is not None and (here or self.rng.random() < _ANAPHORA_RATE):
                return Reference(entity=entity, id=key, mention=anaphor[0], verb=anaphor[1]), []
            reference = self._describe_known(entity, row, known or {}, turn)
            return None if reference is None else (reference, [])
        return self._look_up(entity, row, turn, consumer, parameter)

    def fields(self, entity: str, allowed: Sequence[str]) -> list[str]:
        """Return the attributes to describe a row by, most natural first."""
        spec = self.wording.entities[entity]
        named = [f for f in spec.fields if f.name in allowed and f.type in _KIND_ORDER]
        named.sort(key=lambda f: (f.name != spec.label_field, _KIND_ORDER[f.type]))
        return [f.name for f in named]

    def _describe_known(self, entity: str, row: Row, known: Row, turn: int) -> Reference | None:
        """Describe a row that was shown, among all rows there are, by what was shown of it."""
        spec = self.wording.entities[entity]
        current = [name for name in self.fields(entity, tuple(known)) if known[name] == row.get(name)]
        label = spec.label_field
        if label is not None and label not in current:
            return None
        rows = self.session.rows(entity)
        key = row[spec.id_name]
        if label is not None:
            found = distinguishing_attributes(rows, row, [label])
            if found:
                return Reference(entity=entity, id=key, attributes=found)
        for field, parent_entity in self.wording.parent_fields(entity).items():
            parent = self._known_parent(parent_entity, row.get(field), turn)
            siblings = [other for other in rows if other.get(field) == row.get(field)]
            found = distinguishing_attributes(siblings, row, current)
            if parent is not None and found:
                return Reference(entity=entity, id=key, attributes=found, parent=parent)
        found = distinguishing_attributes(rows, row, current)
        return Reference(entity=entity, id=key, attributes=found) if found else None

    def _known_parent(self, entity: str, key: JSON, turn: int) -> Reference | None:
        known = self.knowledge.rows.get((entity, key))
        if known is None:
            return None
        anaphor = self.knowledge.mention(entity, key, turn, main=False)
        if anaphor is not None:
            return Reference(entity=entity, id=key, mention=anaphor[0], verb=anaphor[1])
        spec = self.wording.entities[entity]
        rows = self.session.rows(entity)
        row = next((r for r in rows if r[spec.id_name] == key), None)
        if row is None or spec.label_field is None or known.get(spec.label_field) != row[spec.label_field]:
            return None
        found = distinguishing_attributes(rows, row, [spec.label_field])
        return Reference(entity=entity, id=key, attributes=found) if found else None

    # --- look-ups -----------------------------------------------------------------------------

    def _readers(self, entity: str) -> list[Operation]:
        """Return the reads that list rows of an entity, plain lists first."""
        found = [
            op
            for op in self.wording.operations.values()
            if op.verb in ("list", "search")
            and op.output.shape == "list"
            and self.knowledge.output_entity(op) == entity
        ]
        return sorted(found, key=lambda op: op.verb != "list")

    def _look_up(
        self, entity: str, row: Row, turn: int, consumer: str, parameter: str
    ) -> tuple[Reference, list[GroundedCall]] | None:
        producers = {
            edge.producer
            for edge in self.graph.incoming(consumer)
            if edge.parameter == parameter and edge.verdict != "refuted"
        }
        readers = sorted(self.readers[entity], key=lambda op: op.tool not in producers)
        ways = [way for op in readers if (way := self._look_up_by(op, entity, row, turn)) is not None]
        if not ways:
            return None
        reference, calls = ways[0]
        # Another read that would do the same job, at the same place of the chain, is as good.
        others = [way[1][-1].golden() for way in ways[1:] if way[1][:-1] == calls[:-1]]
        if others:
            last = calls[-1]
            calls = [*calls[:-1], _with_alternatives(last, others)]
        return reference, calls

    def _look_up_by(
        self, operation: Operation, entity: str, row: Row, turn: int
    ) -> tuple[Reference, list[GroundedCall]] | None:
        spec = self.wording.entities[entity]
        required = self.wording.required[operation.tool]
        arguments: dict[str, JSON] = {}
        references: dict[str, Reference] = {}
        before: list[GroundedCall] = []
        scope = self.session.rows(entity)
        for parameter in required:
            binding = operation.args.get(parameter)
            if binding is None:
                return None
            parent = self._parent_of(operation, parameter, entity)
            if parent is None:
                return None
            field, parent_entity = parent
            parent_row = self._row(parent_entity, row.get(field))
            if parent_row is None:
                return None
            resolved = self.resolve(
                parent_entity, parent_row, turn, consumer=operation.tool, parameter=parameter
            )
            if resolved is None:
                return None
            references[parameter], calls = resolved
            before += calls
            arguments[parameter] = row[field]
            scope = [other for other in scope if other.get(field) == row[field]]
        visible = self.knowledge.shown_fields(operation)
        attributes = distinguishing_attributes(scope, row, self.fields(entity, visible))
        if attributes is None:
            return None
        parent_reference = next(iter(references.values()), None)
        reference = Reference(
            entity=entity, id=row[spec.id_name], attributes=attributes, parent=parent_reference
        )
        query = self._label_query(operation, attributes)
        plain = GroundedCall(
            tool=operation.tool, arguments=arguments, bindings={}, goal=False, references=references
        )
        if query is None:
            return reference, [*before, plain]
        value = attributes[0][1]
        asked = GroundedCall(
            tool=operation.tool,
            arguments={**arguments, query: value},
            bindings={},
            match={query: "ci"},
            goal=False,
            references=references,
            said={query: value},
            alternatives=(plain.golden(),),
        )
        return reference, [*before, asked]

    def _label_query(self, operation: Operation, attributes: tuple[tuple[str, JSON], ...]) -> str | None:
        """Return the optional parameter that searches by the attribute used, for a description by one."""
        if len(attributes) != 1:
            return None
        for parameter, binding in operation.args.items():
            if binding.role in ("query", "filter") and binding.field == attributes[0][0]:
                if binding.match in ("contains", "ci", "exact") and isinstance(attributes[0][1], str):
                    return parameter if binding.role == "query" or operation.verb == "search" else None
        return None

    def _parent_of(self, operation: Operation, parameter: str, entity: str) -> tuple[str, str] | None:
        """Return the reference field of `entity` that a parameter of its list selects by."""
        binding = operation.args[parameter]
        for field, parent in self.wording.parent_fields(entity).items():
            if binding.field == field or (binding.field is None and binding.entity == parent):
                return field, parent
        return None

    def _row(self, entity: str, key: JSON) -> Row | None:
        name = self.wording.entities[entity].id_name
        return next((row for row in self.session.rows(entity) if row[name] == key), None)


def _with_alternatives(call: GroundedCall, others: list[GoldenCall]) -> GroundedCall:
    return GroundedCall(
        tool=call.tool,
        arguments=call.arguments,
        bindings=call.bindings,
        match=call.match,
        goal=call.goal,
        references=call.references,
        said=call.said,
        alternatives=(*call.alternatives, *others),
    )
