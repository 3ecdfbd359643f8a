"""A small hand-made environment for the tests of graphs, sampling and verification."""

from __future__ import annotations

import pytest

from toolverse_jax.environment.spec import EnvSpec


def _tool(name: str, description: str, required: dict, optional: dict | None = None) -> dict:
    return {
        "name": name,
        "description": description,
        "input_schema": {
            "type": "object",
            "properties": {**required, **(optional or {})},
            "required": list(required),
            "additionalProperties": False,
        },
    }


_TEXT = {"type": "string"}


def _by_id(tool: str, verb: str, entity: str, steps: list, shape: str = "record", **extra) -> dict:
    arg = f"{entity}_id"
    return {
        "tool": tool,
        "verb": verb,
        "entity": entity,
        "args": {arg: {"role": "id", "entity": entity}, **extra.pop("args", {})},
        "steps": [{"op": "lookup", "entity": entity, "arg": arg}, *steps],
        "output": {"shape": shape, "entity": entity},
        **extra,
    }


SHED = {
    "name": "tool_shed",
    "author": "manual",
    "description": "Lends garden tools to neighbours.",
    "entities": [
        {
            "name": "shed",
            "plural": "sheds",
            "label_field": "name",
            "id_scheme": {"prefix": "sh", "length": 3},
            "fields": [
                {
                    "name": "name",
                    "unique": True,
                    "generator": {"kind": "choices", "values": ["Oak", "Elm", "Ash", "Yew", "Fir", "Bay"]},
                }
            ],
        },
        {
            "name": "item",
            "plural": "items",
            "label_field": "title",
            "id_scheme": {"prefix": "it", "length": 4},
            "lifecycle": {
                "field": "status",
                "transitions": {
                    "lend": [["free"], "lent"],
                    "return": [["lent"], "free"],
                    "scrap": [["free"], "scrapped"],
                },
            },
            "fields": [
                {
                    "name": "title",
                    "unique": True,
                    "generator": {
                        "kind": "compose",
                        "parts": [["Old", "New", "Red", "Big"], ["rake", "spade", "saw", "hoe", "fork"]],
                    },
                },
                {"name": "status", "type": "enum", "enum": ["free", "lent", "scrapped"], "default": "free"},
                {"name": "shed_id", "type": "ref", "ref": "shed"},
                {
                    "name": "note",
                    "default": "",
                    "visible_in": ["detail"],
                    "generator": {"kind": "choices", "values": ["rusty", "sharp", "heavy"]},
                },
            ],
        },
        {
            "name": "neighbour",
            "plural": "neighbours",
            "label_field": "name",
            "id_scheme": {"prefix": "nb", "length": 4},
            "fields": [
                {"name": "name", "unique": True, "generator": {"kind": "value", "value": "person"}},
                {"name": "email", "unique": True, "generator": {"kind": "value", "value": "email"}},
            ],
        },
        {
            "name": "message",
            "plural": "messages",
            "label_field": "text",
            "id_scheme": {"prefix": "ms", "length": 4},
            "fields": [
                {"name": "to", "generator": {"kind": "value", "value": "email"}},
                {"name": "text", "generator": {"kind": "value", "value": "sentence"}},
            ],
        },
    ],
    "tools": [
        _tool("list_sheds", "List all sheds.", {}),
        _tool("add_shed", "Add a shed.", {"name": _TEXT}),
        _tool("remove_shed", "Remove an empty shed.", {"shed_id": _TEXT}),
        _tool("list_items", "List items, of one shed or of all.", {}, {"shed_id": _TEXT}),
        _tool("get_item", "Show one item.", {"item_id": _TEXT}),
        _tool("add_item", "Put a new item into a shed.", {"shed_id": _TEXT, "title": _TEXT}),
        _tool("note_item", "Write a note on an item.", {"item_id": _TEXT, "note": _TEXT}),
        _tool("lend_item", "Lend an item that is free.", {"item_id": _TEXT}),
        _tool("return_item", "Take a lent item back.", {"item_id": _TEXT}),
        _tool("scrap_item", "Scrap an item for good.", {"item_id": _TEXT}),
        _tool("delete_item", "Delete an item.", {"item_id": _TEXT}),
        _tool("list_neighbours", "List the neighbours.", {}),
        _tool("send_message", "Send a message.", {"to": _TEXT, "text": _TEXT}),
    ],
    "operations": [
        {
            "tool": "list_sheds",
            "verb": "list",
            "entity": "shed",
            "steps": [{"op": "query", "entity": "shed"}],
            "output": {"shape": "list", "source": "rows", "entity": "shed"},
        },
        {
            "tool": "add_shed",
            "verb": "create",
            "entity": "shed",
            "args": {"name": {"role": "field", "entity": "shed", "field": "name"}},
            "steps": [{"op": "insert", "entity": "shed", "values": {"name": ["arg", "name"]}}],
            "output": {"shape": "record", "entity": "shed"},
        },
        _by_id("remove_shed", "delete", "shed", [{"op": "delete", "entity": "shed"}]),
        {
            "tool": "list_items",
            "verb": "list",
            "entity": "item",
            "args": {"shed_id": {"role": "filter", "entity": "item", "field": "shed_id"}},
            "steps": [{"op": "query", "entity": "item", "filters": [{"arg": "shed_id", "field": "shed_id"}]}],
            "output": {"shape": "list", "source": "rows", "entity": "item"},
        },
        _by_id("get_item", "get", "item", []),
        {
            "tool": "add_item",
            "verb": "create",
            "entity": "item",
            "args": {
                "shed_id": {"role": "id", "entity": "shed"},
                "title": {"role": "field", "entity": "item", "field": "title"},
            },
            "steps": [
                {"op": "lookup", "entity": "shed", "arg": "shed_id", "bind": "shed"},
                {
                    "op": "insert",
                    "entity": "item",
                    "values": {"title": ["arg", "title"], "shed_id": ["id", "shed"]},
                },
            ],
            "output": {"shape": "record", "entity": "item"},
        },
        _by_id(
            "note_item",
            "update",
            "item",
            [{"op": "update", "entity": "item", "values": {"note": ["arg", "note"]}}],
            args={"note": {"role": "field", "entity": "item", "field": "note"}},
        ),
        _by_id("lend_item", "transition", "item", [{"op": "transition", "entity": "item", "verb": "lend"}]),
        _by_id(
            "return_item", "transition", "item", [{"op": "transition", "entity": "item", "verb": "return"}]
        ),
        _by_id("scrap_item", "transition", "item", [{"op": "transition", "entity": "item", "verb": "scrap"}]),
        _by_id("delete_item", "delete", "item", [{"op": "delete", "entity": "item"}]),
        {
            "tool": "list_neighbours",
            "verb": "list",
            "entity": "neighbour",
            "steps": [{"op": "query", "entity": "neighbour"}],
            "output": {"shape": "list", "source": "rows", "entity": "neighbour"},
        },
        {
            "tool": "send_message",
            "verb": "create",
            "entity": "message",
            "args": {
                "to": {"role": "field", "entity": "message", "field": "to"},
                "text": {"role": "field", "entity": "message", "field": "text"},
            },
            "steps": [
                {
                    "op": "insert",
                    "entity": "message",
                    "values": {"to": ["arg", "to"], "text": ["arg", "text"]},
                }
            ],
            "output": {"shape": "record", "entity": "message"},
        },
    ],
}


@pytest.fixture(scope="session")
def shed_spec() -> EnvSpec:
    """Thirteen tools: lists, creation, a lifecycle, deletion, and a link by email address."""
    return EnvSpec.model_validate(SHED)
