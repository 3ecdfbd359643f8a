"""A small real environment, a task in it and a small real tokenizer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from toolverse_jax.environment import Environment, EnvSpec
from toolverse_jax.rollout import Renderer, train_tokenizer
from toolverse_jax.types import GoldenCall, Task, TaskTurn


def _tool(name: str, required: tuple[str, ...], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {key: {"type": "string"} for key in (*required, *optional)},
        "required": list(required),
    }
    return {"name": name, "description": f"Tool {name} of the slipway.", "input_schema": schema}


SPEC = {
    "name": "slipway",
    "author": "manual",
    "entities": [
        {
            "name": "boat",
            "plural": "boats",
            "id_name": "boat_id",
            "id_scheme": {"prefix": "bt_", "length": 3},
            "label_field": "name",
            "fields": [
                {
                    "name": "name",
                    "unique": True,
                    "generator": {"kind": "compose", "parts": [["Blue", "Red"], ["Gull", "Heron", "Tern"]]},
                },
                {"name": "status", "type": "enum", "enum": ["afloat", "ashore"], "default": "afloat"},
                {"name": "note", "default": "none", "visible_in": ["detail"]},
            ],
        }
    ],
    "tools": [
        _tool("list_boats", (), ("status",)),
        _tool("get_boat", ("boat_id",)),
        _tool("set_note", ("boat_id", "note")),
    ],
    "operations": [
        {
            "tool": "list_boats",
            "verb": "list",
            "entity": "boat",
            "args": {"status": {"role": "filter", "entity": "boat", "field": "status"}},
            "steps": [{"op": "query", "entity": "boat", "filters": [{"arg": "status", "field": "status"}]}],
            "output": {"shape": "list", "source": "rows", "entity": "boat"},
        },
        {
            "tool": "get_boat",
            "verb": "get",
            "entity": "boat",
            "args": {"boat_id": {"role": "id", "entity": "boat"}},
            "steps": [{"op": "lookup", "entity": "boat", "arg": "boat_id"}],
            "output": {"shape": "record", "source": "row", "entity": "boat"},
        },
        {
            "tool": "set_note",
            "verb": "update",
            "entity": "boat",
            "args": {
                "boat_id": {"role": "id", "entity": "boat"},
                "note": {"role": "field", "entity": "boat", "field": "note"},
            },
            "steps": [
                {"op": "lookup", "entity": "boat", "arg": "boat_id"},
                {"op": "update", "entity": "boat", "values": {"note": ["arg", "note"]}},
            ],
            "output": {"shape": "record", "source": "row", "entity": "boat"},
        },
    ],
}


@pytest.fixture(scope="session")
def environment() -> Environment:
    return Environment(EnvSpec.model_validate(SPEC))


@pytest.fixture(scope="session")
def task(environment: Environment) -> Task:
    session = environment.session(5)
    boat = session.rows("boat")[0]
    note = {"boat_id": boat["boat_id"], "note": "paint the keel"}
    turns = (
        TaskTurn(
            user="Which boats are there?",
            golden=(GoldenCall(tool="list_boats", arguments={}),),
            answer="Here.",
        ),
        TaskTurn(
            user=f"Look at {boat['name']} and note: paint the keel.",
            golden=(
                GoldenCall(tool="get_boat", arguments={"boat_id": boat["boat_id"]}),
                GoldenCall(tool="set_note", arguments=note),
            ),
            answer="Noted.",
        ),
        TaskTurn(
            user="Show it again, please.",
            golden=(GoldenCall(tool="get_boat", arguments={"boat_id": boat["boat_id"]}),),
        ),
    )
    session.call("set_note", note)
    return Task(
        id="slipway-1", environment="slipway", seed=5, turns=turns, final_state_hash=session.state_hash()
    )


@pytest.fixture(scope="session")
def texts(environment: Environment, task: Task) -> list[str]:
    words = [turn.user for turn in task.turns] + ["Here.", "Noted.", "Done."]
    session = environment.session(5)
    outputs = [session.call(c.tool, c.arguments).content for turn in task.turns for c in turn.golden]
    calls = [
        '{"name": "get_boat", "arguments": {"boat_id": "bt_abc"}}',
        '{"name": "list_boats", "arguments": {}}',
    ]
    return (words + outputs + calls) * 3


@pytest.fixture(scope="session")
def tokenizer(texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> Any:
    return train_tokenizer(texts, 420, tmp_path_factory.mktemp("tokenizer"))


@pytest.fixture(scope="session")
def renderer(tokenizer: Any) -> Renderer:
    return Renderer(tokenizer)


@pytest.fixture(scope="session")
def say(renderer: Renderer) -> Callable[[str], list[int]]:
    """Encode what a policy samples: markers of calls as tokens, then the stop token."""

    def encode(text: str, stop: bool = True) -> list[int]:
        ids = renderer.tokenizer.encode(text, add_special_tokens=False)
        return [*ids, renderer.end_id] if stop else ids

    return encode
