"""Last pass of the rules author: tool drafts become operations of the specification."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolverse_jax.environment.spec import (
    Adjust,
    ArgBinding,
    Delete,
    Entity,
    Expr,
    Filter,
    Guard,
    Insert,
    Lookup,
    Operation,
    Output,
    Query,
    SetSingleton,
    Singleton,
    Step,
    Transition,
    Update,
)
from toolverse_jax.synthesis.lexicon import ADJUSTMENTS, split_name
from toolverse_jax.synthesis.rules_drafts import NAME_WORDS, EntityDraft, ToolDraft, normal
from toolverse_jax.synthesis.rules_entities import CREATED_AT, BuiltEntity
from toolverse_jax.synthesis.rules_fields import find_field

_MOST_SHOWN = 5
"""A changed row is shown whole up to this many fields; larger ones show what matters."""
_AMOUNT_FIELDS = ("stock", "balance", "quantity", "amount", "count", "level", "credits", "points")


class OperationBuilder:
    """Builds the operation of each tool over the built entities."""

    def __init__(self, built: dict[str, BuiltEntity], singletons: dict[str, Singleton]) -> None:
        self.built = built
        self.singletons = singletons
        self._by_verb: dict[str, Callable[[ToolDraft], Operation]] = {
            "list": self._list,
            "search": self._list,
            "get": self._get,
            "create": self._create,
            "update": self._update,
            "delete": self._delete,
            "transition": self._transition,
            "adjust": self._adjust,
            "aggregate": self._aggregate,
            "settings": self._settings,
        }

    def build(self, draft: ToolDraft) -> Operation:
        """Return the operation of a tool; one that always refuses where the tool has a problem."""
        if draft.problem is None:
            operation = self._by_verb[draft.verb](draft)
            if draft.problem is None:
                return operation
        return unsupported(draft)

    # --- parts --------------------------------------------------------------------------------

    def _entity(self, draft: ToolDraft) -> Entity:
        assert draft.entity is not None
        return self.built[draft.entity.name].entity

    def _own_lookup(self, draft: ToolDraft) -> Lookup:
        entity = self._entity(draft)
        assert draft.own is not None
        field = self._key_field(draft) if draft.own_is_key else None
        return Lookup(entity=entity.name, arg=draft.own, field=field)

    def _key_field(self, draft: ToolDraft) -> str:
        """Return the field that a natural key is compared with: the entity's key, or its label."""
        entity = self._entity(draft)
        assert draft.own is not None and draft.entity is not None
        found = find_field(draft.entity, draft.own)
        names = {field.name for field in entity.fields}
        if found is not None and found.name in names:
            return found.name
        if draft.entity.natural_key in names:
            return str(draft.entity.natural_key)
        words = split_name(draft.own)
        plain = words == draft.entity.key or words[-1] in NAME_WORDS
        if entity.label_field is None or not plain:
            draft.fail("unknown_argument", f"no property of the {entity.name} is its '{draft.own}'")
        return entity.label_field or ""

    def _own_binding(self, draft: ToolDraft) -> dict[str, ArgBinding]:
        if draft.own is None:
            return {}
        name = self._entity(draft).name
        if draft.own_is_key:
            return {draft.own: ArgBinding(role="natural_key", entity=name, field=self._key_field(draft))}
        return {draft.own: ArgBinding(role="id", entity=name)}

    def _lookups(self, draft: ToolDraft) -> tuple[list[Lookup], dict[str, str]]:
        """Return lookups of the rows of other entities, and parameter -> binding."""
        lookups, binds = [], {}
        for name, target in draft.references.items():
            if name not in draft.args or draft.args[name].role != "id":
                continue
            bind = target.name if target.name not in binds.values() and target.name != "row" else normal(name)
            binds[name] = bind
            required = name in draft.reading.tool.required
            lookups.append(Lookup(entity=target.name, arg=name, bind=bind, optional=not required))
        return lookups, binds

    def _scope_guards(self, draft: ToolDraft, binds: dict[str, str]) -> list[Guard]:
        """Check that every row of an address lies in the row before it."""
        guards = []
        for name in draft.scopes:
            parent = draft.references[name]
            children = [
                (other, binds[n]) for n, other in draft.references.items() if n != name and n in binds
            ]
            if draft.own is not None and draft.verb != "create" and draft.entity is not None:
                children.insert(0, (draft.entity, "row"))
            for child, bind in children:
                field = next((f for f in self.built[child.name].entity.fields if f.ref == parent.name), None)
                if field is not None:
                    guards.append(
                        Guard(
                            condition=["eq", ["field", bind, field.name], ["id", binds[name]]],
                            code="not_found",
                            message=f"The {_words(parent)} has no such {_words(child)}.",
                        )
                    )
                    break
        return guards

    def _alive_guards(self, draft: ToolDraft, binds: dict[str, str]) -> list[Guard]:
        """Refuse new parts of things that are closed for good."""
        guards = []
        for name, bind in binds.items():
            built = self.built[draft.references[name].name]
            if name in draft.scopes or built.lifecycle is None or built.entity.lifecycle is None:
                continue
            closed = list(built.lifecycle.closed)
            if closed:
                noun = _words(draft.references[name])
                guards.append(
                    Guard(
                        condition=["not", ["in", ["field", bind, built.entity.lifecycle.field], closed]],
                        message=f"The {noun} is {' or '.join(closed)} and takes nothing new.",
                    )
                )
        return guards

    def _changeable_guards(self, draft: ToolDraft) -> list[Guard]:
        """Refuse to change a thing that is closed for good."""
        assert draft.entity is not None
        built = self.built[draft.entity.name]
        lifecycle = built.entity.lifecycle
        written = {binding.field for binding in draft.args.values() if binding.role == "field"}
        if lifecycle is None or built.lifecycle is None or lifecycle.field in written:
            return []
        settable = draft.entity.fields.get(lifecycle.field)
        final = list(built.lifecycle.final)
        if not final or (settable is not None and settable.updated):
            return []
        message = f"The {_words(draft.entity)} is {' or '.join(final)} and can no longer be changed."
        return [Guard(condition=["not", ["in", ["field", "row", lifecycle.field], final]], message=message)]

    def _page_guards(self, draft: ToolDraft) -> list[Guard]:
        """Everything fits on the first page; a later one is refused rather than made up."""
        guards = []
        for name in draft.pages:
            if draft.properties[name].get("type") not in ("integer", "number"):
                continue  # a cursor comes from an earlier answer, and no answer holds one
            condition = ["or", ["eq", ["arg", name], None], ["le", ["arg", name], 1]]
            guards.append(Guard(condition=condition, code="unsupported", message="There is only one page."))
        return guards

    def _row_output(self, draft: ToolDraft, entity: Entity) -> Output:
        """Show a changed row: whole where it is small, else what names it and what was said."""
        if len(entity.fields) <= _MOST_SHOWN:
            return Output(shape="record", entity=entity.name, fields=tuple(f.name for f in entity.fields))
        said = {binding.field for binding in draft.args.values()} | set(draft.columns.values())
        state = entity.lifecycle.field if entity.lifecycle else None
        shown = [
            field.name
            for field in entity.fields
            if field.name in (entity.label_field, state) or field.type == "ref" or field.name in said
        ]
        return Output(shape="record", entity=entity.name, fields=tuple(shown))

    def _operation(self, draft: ToolDraft, **parts: Any) -> Operation:
        args = {**self._own_binding(draft), **draft.args} if draft.verb != "create" else draft.args
        ordered = {name: args[name] for name in draft.properties if name in args}
        entity = (
            self._entity(draft).name if draft.entity is not None and draft.entity.name in self.built else None
        )
        return Operation(tool=draft.name, verb=draft.verb, entity=entity, args=ordered, **parts)

    # --- verbs --------------------------------------------------------------------------------

    def _query(self, draft: ToolDraft, entity: Entity, bind: str = "rows") -> Query:
        filters = [
            Filter(arg=name, field=draft.columns.get(name) or str(binding.field), match=binding.match)
            for name, binding in draft.args.items()
            if name in draft.columns or (binding.field is not None and binding.role in ("filter", "query"))
        ]
        paging = {binding.role: name for name, binding in draft.args.items()}
        latest = bool({"recent", "latest", "last"} & set(draft.reading.modifiers))
        dated = next((f.name for f in entity.fields if f.type in ("date", "datetime")), None)
        if latest and dated is None:
            draft.fail("unknown_meaning", f"nothing tells which {entity.plural} are recent")
        return Query(
            entity=entity.name,
            filters=tuple(filters),
            limit_arg=paging.get("limit"),
            offset_arg=paging.get("offset"),
            sort_field=dated if latest else None,
            descending=latest,
            bind=bind,
        )

    def _list(self, draft: ToolDraft) -> Operation:
        entity = self._entity(draft)
        lookups, binds = self._lookups(draft)
        return self._operation(
            draft,
            guards=(*self._scope_guards(draft, binds), *self._page_guards(draft)),
            steps=(*lookups, self._query(draft, entity)),
            output=Output(shape="list", source="rows", entity=entity.name),
        )

    def _get(self, draft: ToolDraft) -> Operation:
        lookups, binds = self._lookups(draft)
        return self._operation(
            draft,
            guards=tuple(self._scope_guards(draft, binds)),
            steps=(*lookups, self._own_lookup(draft)),
            output=Output(shape="record", entity=self._entity(draft).name),
        )

    def _values(self, draft: ToolDraft, binds: dict[str, str]) -> dict[str, Expr]:
        values: dict[str, Expr] = {}
        for name, binding in draft.args.items():
            if binding.role == "field" and binding.field is not None:
                values[binding.field] = ["arg", name]
            elif name in draft.columns:
                values[draft.columns[name]] = ["id", binds[name]]
        return values

    def _create(self, draft: ToolDraft) -> Operation:
        entity = self._entity(draft)
        lookups, binds = self._lookups(draft)
        values = self._values(draft, binds)
        if any(field.name == CREATED_AT and field.type == "datetime" for field in entity.fields):
            values.setdefault(CREATED_AT, ["now"])
        if not values:
            draft.fail("unknown_meaning", "it creates something without saying what")
        return self._operation(
            draft,
            guards=(*self._scope_guards(draft, binds), *self._alive_guards(draft, binds)),
            steps=(*lookups, Insert(entity=entity.name, values=values)),
            output=self._row_output(draft, entity),
        )

    def _update(self, draft: ToolDraft) -> Operation:
        entity = self._entity(draft)
        lookups, binds = self._lookups(draft)
        values = self._values(draft, binds)
        return self._operation(
            draft,
            guards=(*self._scope_guards(draft, binds), *self._changeable_guards(draft)),
            steps=(*lookups, self._own_lookup(draft), Update(entity=entity.name, values=values)),
            output=self._row_output(draft, entity),
        )

    def _delete(self, draft: ToolDraft) -> Operation:
        entity = self._entity(draft)
        lookups, binds = self._lookups(draft)
        return self._operation(
            draft,
            guards=tuple(self._scope_guards(draft, binds)),
            steps=(*lookups, self._own_lookup(draft), Delete(entity=entity.name)),
            output=Output(shape="record", entity=entity.name, fields=(), extra={"deleted": True}),
        )

    def _transition(self, draft: ToolDraft) -> Operation:
        assert draft.entity is not None
        built, verb = self.built[draft.entity.name], draft.reading.verb
        lookups, binds = self._lookups(draft)
        if draft.own is None:
            draft.fail("unknown_meaning", "it does not say which row it changes")
            return unsupported(draft)
        guards = self._scope_guards(draft, binds)
        change: Step
        if verb in built.toggles:
            field, value = built.toggles[verb]
            state = field if value else f"not {field}"
            message = f"The {_words(draft.entity)} is {state} already."
            guards.append(Guard(condition=["ne", ["field", "row", field], value], message=message))
            change = Update(entity=built.entity.name, values={field: value})
        else:
            change = Transition(entity=built.entity.name, verb=verb)
        return self._operation(
            draft,
            guards=tuple(guards),
            steps=(*lookups, self._own_lookup(draft), change),
            output=self._row_output(draft, built.entity),
        )

    def _adjust(self, draft: ToolDraft) -> Operation:
        entity = self._entity(draft)
        amounts = [name for name, binding in draft.args.items() if binding.role == "amount"]
        field = _adjusted_field(draft, entity)
        if len(amounts) != 1 or field is None:
            draft.fail("unknown_meaning", f"which number '{draft.reading.verb}' changes is not known")
            return unsupported(draft)
        draft.args[amounts[0]] = ArgBinding(role="amount", entity=entity.name, field=field)
        assert draft.entity is not None
        bounds = draft.entity.fields[field].schema
        amount: Expr = ["arg", amounts[0]]
        if ADJUSTMENTS[draft.reading.verb] < 0:
            amount = ["mul", amount, -1]
        lookups, binds = self._lookups(draft)
        step = Adjust(
            entity=entity.name,
            field=field,
            amount=amount,
            minimum=bounds.get("minimum", 0),
            maximum=bounds.get("maximum"),
        )
        return self._operation(
            draft,
            guards=(*self._scope_guards(draft, binds), *self._changeable_guards(draft)),
            steps=(*lookups, self._own_lookup(draft), step),
            output=self._row_output(draft, entity),
        )

    def _aggregate(self, draft: ToolDraft) -> Operation:
        if draft.own is not None:
            draft.fail("unknown_meaning", "statistics of a single row have no known meaning")
            return unsupported(draft)
        if draft.entity is not None and draft.entity.name in self.built:
            if draft.reading.verb not in ("count", "total"):
                draft.fail("unknown_meaning", "which statistics it gives is not known")
                return unsupported(draft)
            entity = self._entity(draft)
            lookups, binds = self._lookups(draft)
            return self._operation(
                draft,
                guards=tuple(self._scope_guards(draft, binds)),
                steps=(*lookups, self._query(draft, entity)),
                output=Output(shape="scalar", extra={"count": ["count", "rows"]}),
            )
        steps = [Query(entity=name, bind=f"all_{name}") for name in self.built]
        counts = {self.built[name].entity.plural: ["count", f"all_{name}"] for name in self.built}
        return self._operation(draft, steps=tuple(steps), output=Output(shape="scalar", extra=counts))

    def _settings(self, draft: ToolDraft) -> Operation:
        assert draft.entity is not None
        singleton = self.singletons[draft.entity.name]
        draft.args = {name: b.model_copy(update={"entity": None}) for name, b in draft.args.items()}
        output = Output(shape="singleton", source=singleton.name)
        values: dict[str, Expr] = {
            str(binding.field): ["arg", name]
            for name, binding in draft.args.items()
            if binding.role == "field"
        }
        if not values:
            return self._operation(draft, output=output)
        return self._operation(
            draft, steps=(SetSingleton(singleton=singleton.name, values=values),), output=output
        )


def unsupported(draft: ToolDraft) -> Operation:
    """Return an operation that always refuses: better than an invented answer."""
    return Operation(
        tool=draft.name,
        verb="other",
        args={name: ArgBinding(role="ignored") for name in draft.properties},
        guards=(
            Guard(condition=False, code="unsupported", message="This tool does nothing in this environment."),
        ),
        output=Output(shape="scalar"),
        simulated="none",
    )


def _adjusted_field(draft: ToolDraft, entity: Entity) -> str | None:
    """Return the numeric field that an amount is added to."""
    assert draft.entity is not None
    names = [
        f.name for f in entity.fields if f.type in ("integer", "number") and f.name in draft.entity.fields
    ]
    text = set(split_name(draft.reading.tool.description))
    told = [name for name in names if text & set(split_name(name))]
    usual = [name for name in names if normal(name) in _AMOUNT_FIELDS]
    for found in (told, usual, names):
        if len(found) == 1:
            return found[0]
    return None


def _words(entity: EntityDraft) -> str:
    return " ".join(entity.key)
