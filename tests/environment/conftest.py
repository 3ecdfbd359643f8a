"""A small hand-made environment: boats, moorings, trips and the settings of a harbour."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolverse_jax.environment import Environment, EnvSpec, load_environment

BOATYARD = Path(__file__).parent / "boatyard"


@pytest.fixture(scope="session")
def boatyard() -> Environment:
    return load_environment(BOATYARD)


@pytest.fixture(scope="session")
def boatyard_folder() -> Path:
    return BOATYARD


@pytest.fixture
def spec_data() -> dict[str, Any]:
    """The specification as plain data, free to be changed."""
    return json.loads((BOATYARD / "env.json").read_text())


@pytest.fixture
def build() -> Callable[[dict[str, Any]], Environment]:
    def build(data: dict[str, Any]) -> Environment:
        return Environment(EnvSpec.model_validate(copy.deepcopy(data)))

    return build


Scripted = list[tuple[str, dict[str, Any]]]


@pytest.fixture
def failing_calls() -> Callable[[Any], Scripted]:
    """Calls that fail in a fresh session, one for every kind of failure."""

    def calls(session: Any) -> Scripted:
        boats = session.rows("boat")
        ashore = next(boat for boat in boats if boat["status"] == "ashore")
        taken = next(boat["mooring_id"] for boat in boats)
        plan = {"boat_id": ashore["boat_id"], "starts_at": "2031-05-01T10:00:00", "seats": 3}
        return [
            ("no_such_tool", {}),
            ("get_boat", {}),
            ("get_boat", {"boat_id": 7}),
            ("get_boat", {"boat_id": "bt_zzzzz"}),
            ("get_boat", {"boat_id": ashore["boat_id"], "extra": 1}),
            ("register_boat", {"name": ashore["name"], "owner": "Nobody"}),
            ("register_boat", {"name": "New", "owner": "Nobody", "mooring_id": "MO-none"}),
            (
                "update_boat",
                {"boat_id": ashore["boat_id"], "name": boats[-1]["name"]} if ashore != boats[-1] else {},
            ),
            ("haul_out", {"boat_id": ashore["boat_id"]}),
            ("add_fuel", {"boat_id": ashore["boat_id"], "litres": 500}),
            ("add_fuel", {"boat_id": ashore["boat_id"], "litres": -500}),
            ("plan_trip", {**plan, "litres": 500}),
            ("remove_mooring", {"mooring_id": taken}),
            ("set_harbour", {"gate": "ajar"}),
            ("set_harbour", {"fee": True}),
        ]

    return calls
