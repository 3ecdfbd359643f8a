"""A small hand-made specification that has one of everything the laws look at."""

from __future__ import annotations

import pytest

from toolverse_jax.environment.spec import (
    Adjust,
    ArgBinding,
    Choices,
    Delete,
    Entity,
    EnvSpec,
    FieldSpec,
    Filter,
    Guard,
    IdScheme,
    Insert,
    Lifecycle,
    Lookup,
    NumberRange,
    Operation,
    Output,
    Query,
    ToolInterface,
    Transition,
    Update,
)
from toolverse_jax.types import JSON

TITLES = (
    "Grey Tides",
    "The Ninth Oar",
    "Salt and Fern",
    "A Long Ladder",
    "Owl Hour",
    "Paper Boats",
    "Low Suns",
)


def _tool(name: str, required: dict[str, JSON], optional: dict[str, JSON] | None = None) -> ToolInterface:
    schema: dict[str, JSON] = {"type": "object", "properties": {**required, **(optional or {})}}
    if required:
        schema["required"] = list(required)
    schema["additionalProperties"] = False
    return ToolInterface(
        name=name, description=name.replace("_", " ").capitalize() + ".", input_schema=schema
    )


TEXT = {"type": "string"}
KIND = {"type": "string", "enum": ["novel", "atlas"]}
TITLE = {"type": "string", "examples": list(TITLES)}
COPIES = {"type": "integer", "minimum": 1, "maximum": 9}

SHELF = Entity(
    name="shelf",
    plural="shelves",
    id_name="shelf_id",
    id_scheme=IdScheme(prefix="sh_", length=4),
    label_field="name",
    fields=(
        FieldSpec(
            name="name",
            generator=Choices(values=("North", "South", "East", "West", "Attic", "Cellar")),
            unique=True,
        ),
        FieldSpec(name="room", type="enum", enum=("hall", "study")),
    ),
)
BOOK = Entity(
    name="book",
    plural="books",
    id_name="book_id",
    id_scheme=IdScheme(prefix="bk_", length=4),
    label_field="title",
    fields=(
        FieldSpec(name="shelf_id", type="ref", ref="shelf"),
        FieldSpec(name="title", generator=Choices(values=TITLES)),
        FieldSpec(name="kind", type="enum", enum=("novel", "atlas")),
        FieldSpec(
            name="copies",
            type="integer",
            default=1,
            generator=NumberRange(low=1, high=6),
            visible_in=("detail",),
        ),
        FieldSpec(name="status", type="enum", enum=("on loan", "in"), default="in"),
    ),
    lifecycle=Lifecycle(
        field="status", transitions={"lend": (("in",), "on loan"), "return": (("on loan",), "in")}
    ),
    population=(5, 7),
)
LOOKUP_BOOK = Lookup(entity="book", arg="book_id")
BOOK_ARG = {"book_id": ArgBinding(role="id", entity="book")}
RECORD = Output(shape="record", entity="book")

OPERATIONS = (
    Operation(
        tool="list_shelves",
        verb="list",
        entity="shelf",
        args={"room": ArgBinding(role="filter", entity="shelf", field="room")},
        steps=(Query(entity="shelf", filters=(Filter(arg="room", field="room"),)),),
        output=Output(shape="list", source="rows", entity="shelf"),
    ),
    Operation(
        tool="list_books",
        verb="list",
        entity="book",
        args={
            "shelf_id": ArgBinding(role="id", entity="shelf"),
            "title": ArgBinding(role="query", entity="book", field="title", match="contains"),
        },
        steps=(
            Lookup(entity="shelf", arg="shelf_id", bind="shelf"),
            Query(
                entity="book",
                filters=(Filter(arg="title", field="title", match="contains"),),
                where=["eq", ["field", "row", "shelf_id"], ["id", "shelf"]],
            ),
        ),
        output=Output(shape="list", source="rows", entity="book"),
    ),
    Operation(
        tool="count_books",
        verb="aggregate",
        entity="book",
        args={"kind": ArgBinding(role="filter", entity="book", field="kind")},
        steps=(Query(entity="book", filters=(Filter(arg="kind", field="kind"),)),),
        output=Output(shape="scalar", extra={"count": ["count", "rows"]}),
    ),
    Operation(tool="get_book", verb="get", entity="book", args=BOOK_ARG, steps=(LOOKUP_BOOK,), output=RECORD),
    Operation(
        tool="add_book",
        verb="create",
        entity="book",
        args={
            "shelf_id": ArgBinding(role="id", entity="shelf"),
            "title": ArgBinding(role="field", entity="book", field="title"),
            "kind": ArgBinding(role="field", entity="book", field="kind"),
            "copies": ArgBinding(role="field", entity="book", field="copies"),
        },
        steps=(
            Lookup(entity="shelf", arg="shelf_id", bind="shelf"),
            Insert(
                entity="book",
                values={
                    "shelf_id": ["id", "shelf"],
                    "title": ["arg", "title"],
                    "kind": ["arg", "kind"],
                    "copies": ["arg", "copies"],
                },
            ),
        ),
        output=RECORD,
    ),
    Operation(
        tool="update_book",
        verb="update",
        entity="book",
        args={
            **BOOK_ARG,
            "title": ArgBinding(role="field", entity="book", field="title"),
            "kind": ArgBinding(role="field", entity="book", field="kind"),
        },
        guards=(
            Guard(
                condition=["eq", ["field", "row", "status"], "in"],
                message="A book on loan cannot be changed.",
            ),
        ),
        steps=(
            LOOKUP_BOOK,
            Update(entity="book", values={"title": ["arg", "title"], "kind": ["arg", "kind"]}),
        ),
        output=RECORD,
    ),
    Operation(
        tool="restock_book",
        verb="adjust",
        entity="book",
        args={**BOOK_ARG, "amount": ArgBinding(role="amount", entity="book", field="copies")},
        steps=(LOOKUP_BOOK, Adjust(entity="book", field="copies", amount=["arg", "amount"], maximum=9)),
        output=RECORD,
    ),
    Operation(
        tool="lend_book",
        verb="transition",
        entity="book",
        args=BOOK_ARG,
        steps=(LOOKUP_BOOK, Transition(entity="book", verb="lend")),
        output=RECORD,
    ),
    Operation(
        tool="remove_shelf",
        verb="delete",
        entity="shelf",
        args={"shelf_id": ArgBinding(role="id", entity="shelf")},
        steps=(Lookup(entity="shelf", arg="shelf_id"), Delete(entity="shelf")),
        output=Output(shape="scalar", extra={"removed": ["id", "row"]}),
    ),
)


@pytest.fixture(scope="session")
def spec() -> EnvSpec:
    """A library of shelves and books."""
    return EnvSpec(
        name="library",
        author="manual",
        entities=(SHELF, BOOK),
        tools=(
            _tool("list_shelves", {}, {"room": {"type": "string", "enum": ["hall", "study"]}}),
            _tool("list_books", {"shelf_id": TEXT}, {"title": TEXT}),
            _tool("count_books", {}, {"kind": KIND}),
            _tool("get_book", {"book_id": TEXT}),
            _tool("add_book", {"shelf_id": TEXT, "title": TITLE, "kind": KIND}, {"copies": COPIES}),
            _tool("update_book", {"book_id": TEXT}, {"title": TITLE, "kind": KIND}),
            _tool("restock_book", {"book_id": TEXT, "amount": COPIES}),
            _tool("lend_book", {"book_id": TEXT}),
            _tool("remove_shelf", {"shelf_id": TEXT}),
        ),
        operations=OPERATIONS,
    )
