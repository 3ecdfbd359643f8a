from __future__ import annotations

import os
import subprocess
import sys

import pytest

from toolverse_jax.environment import Environment, seed_rows
from toolverse_jax.environment.database import seed_order
from toolverse_jax.environment.spec import Entity, FieldSpec


def test_rows_are_a_pure_function_of_specification_and_seed(boatyard: Environment) -> None:
    assert seed_rows(boatyard.spec, 4) == seed_rows(boatyard.spec, 4)
    assert seed_rows(boatyard.spec, 4) != seed_rows(boatyard.spec, 5)


def test_the_same_seed_gives_the_same_bytes_in_every_process(boatyard_folder) -> None:
    program = (
        "import json, sys; from toolverse_jax.environment import load_environment\n"
        f"s = load_environment({str(boatyard_folder)!r}).session(11)\n"
        "s.call('register_boat', {'name': 'Zed', 'owner': 'Me'})\n"
        "print(json.dumps([s.rows(e) for e in ('boat', 'mooring', 'trip')] + [s.state_hash()]))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(outputs) == 1


def test_seed_rows_come_first_and_generated_rows_follow(boatyard: Environment) -> None:
    for seed in range(20):
        tables = seed_rows(boatyard.spec, seed)
        moorings = list(tables["mooring"].values())
        assert moorings[0]["name"] == "Old wall"
        assert 3 <= len(moorings) <= 4
        assert list(tables["mooring"]) == [f"mooring:{n}" for n in range(len(moorings))]


def test_references_point_to_rows_and_unique_fields_hold_distinct_values(boatyard: Environment) -> None:
    for seed in range(30):
        tables = seed_rows(boatyard.spec, seed)
        assert all(trip["boat_id"] in tables["boat"] for trip in tables["trip"].values())
        assert all(boat["mooring_id"] in tables["mooring"] for boat in tables["boat"].values())
        for entity in ("boat", "mooring"):
            names = [row["name"] for row in tables[entity].values()]
            assert len(set(names)) == len(names)


def test_references_spread_over_the_rows_they_may_point_to(boatyard: Environment) -> None:
    targets = [
        {b["mooring_id"] for b in seed_rows(boatyard.spec, seed)["boat"].values()} for seed in range(10)
    ]
    assert sum(len(each) for each in targets) > 20


def test_a_unique_field_with_too_few_words_still_gets_distinct_values(spec_data, build) -> None:
    boat = spec_data["entities"][1]
    boat["fields"][0]["generator"] = {"kind": "choices", "values": ["Ann"]}
    names = [row["name"] for row in build(spec_data).session(0).rows("boat")]
    assert len(set(names)) == len(names) and names[0] == "Ann"


def entity(name: str, *refs: tuple[str, bool]) -> Entity:
    fields = tuple(FieldSpec(name=f"{r}_id", type="ref", ref=r, nullable=nullable) for r, nullable in refs)
    return Entity(name=name, plural=name + "s", fields=fields)


def test_parents_are_seeded_before_children() -> None:
    order = seed_order([entity("c", ("b", False)), entity("b", ("a", True)), entity("a", ("a", True))])
    assert [each.name for each in order] == ["a", "b", "c"]


def test_a_cycle_through_a_nullable_reference_is_filled_in_afterwards(spec_data, build) -> None:
    spec_data["entities"][0]["fields"].append(
        {"name": "guest_id", "type": "ref", "ref": "boat", "nullable": True}
    )
    session = build(spec_data).session(0)
    boats = {boat["boat_id"] for boat in session.rows("boat")}
    assert {mooring["guest_id"] for mooring in session.rows("mooring")} <= boats


def test_a_cycle_of_references_that_may_not_be_null_is_refused() -> None:
    with pytest.raises(ValueError, match="may not be null"):
        seed_order([entity("a", ("b", False)), entity("b", ("a", False))])
