from __future__ import annotations

import json

import pytest

from toolverse_jax.environment import load_environment
from toolverse_jax.errors import EnvironmentSpecError


def at(data, *path):
    for part in path:
        data = data[part]
    return data


MOORING, BOAT, TRIP = (("entities", n) for n in range(3))
REGISTER, GET = ("operations", 4), ("operations", 2)

BROKEN = [
    ((), "epoch", "yesterday", "epoch: 'yesterday' is not an ISO 8601"),
    (BOAT, "name", "mooring", "entities: the name 'mooring' is used 2 times"),
    (BOAT, "label_field", "title", "entity 'boat': label field 'title' does not exist"),
    (BOAT, "population", [5, 4], "population"),
    (BOAT, "id_name", "name", "is also the name of a field"),
    ((*BOAT, "fields", 0), "generator", {"kind": "value", "value": "poem"}, "unknown kind of value 'poem'"),
    ((*BOAT, "fields", 0), "generator", {"kind": "choices", "values": [3]}, "the choice 3 does not fit"),
    ((*BOAT, "fields", 0), "name", "owner", "the name 'owner' is used 2 times"),
    ((*BOAT, "fields", 3), "enum", None, "an enum field needs a list of values"),
    ((*BOAT, "fields", 3), "default", "sunk", "the default 'sunk' does not fit"),
    ((*BOAT, "fields", 3), "unique", True, "unique with 2 possible values"),
    ((*BOAT, "fields", 4), "ref", "pier", "refers to entity 'pier', which does not exist"),
    ((*BOAT, "fields", 4), "ref", None, "`ref` exactly when"),
    ((*BOAT, "fields", 5, "generator"), "step", 0, "positive step"),
    ((*BOAT, "lifecycle"), "field", "name", "lifecycle: 'name' is not an enum field"),
    ((*BOAT, "lifecycle", "transitions"), "launch", [["ashore"], "sunk"], "names state 'sunk'"),
    (MOORING, "seed", [{"colour": "red"}], "seed row 0: there is no field 'colour'"),
    (MOORING, "seed", [{"depth_m": "deep"}], "does not fit"),
    (MOORING, "seed", [{"name": "A"}, {"name": "A"}], "seed rows share a value of the unique field 'name'"),
    (BOAT, "seed", [{"mooring_id": "mooring:9"}], "must be the key of a row such as 'mooring:0'"),
    (BOAT, "on_delete", "nullify", "on_delete 'nullify', so references to it must be nullable"),
    (GET, "tool", "fetch", "tool 'get_boat': it has no operation"),
    (GET, "entity", "ship", "tool 'get_boat': entity 'ship' does not exist"),
    (GET, "args", {"ship": {"role": "id"}}, "argument 'ship': it is not in the input schema"),
    (GET, "args", {"boat_id": {"role": "id", "entity": "boat", "field": "keel"}}, "has no field 'keel'"),
    (GET, "guards", [{"condition": "always", "message": ""}], "guard 1: the condition is not an expression"),
    ((*GET, "steps", 0), "entity", "ship", "step 1 (lookup): entity 'ship' does not exist"),
    ((*GET, "steps", 0), "arg", "ship_id", "step 1 (lookup): argument 'ship_id' is not in the input schema"),
    ((*GET, "output"), "source", "boat", "output: binding 'boat' does not exist"),
    ((*GET, "output"), "shape", "list", "output: binding 'row' is one row"),
    ((*GET, "output"), "fields", ["keel"], "shows field 'keel', which does not exist"),
    ((*GET, "output"), "extra", {"name": 1}, "output member 'name' is given twice"),
    ((*REGISTER, "steps", 1, "values"), "keel", 1, "there is no field 'keel' to write"),
    ((*REGISTER, "steps", 1, "values"), "status", "sunk", "does not fit field 'status'"),
    ((*REGISTER, "steps", 1, "values"), "owner", ["ARG", "owner"], "unknown operator 'ARG'"),
    ((*REGISTER, "steps", 1, "values"), "mooring_id", ["arg", "mooring_id"], "look it up and write"),
    ((*REGISTER, "steps", 1, "values"), "owner", ["id", "spot"], "cannot hold a reference"),
    ((*REGISTER, "steps", 1), "values", {"name": "x"}, "gets no value"),
    (("operations", 8, "steps", 1), "verb", "sink", "no lifecycle transition 'sink'"),
    (("operations", 10, "steps", 1), "field", "name", "cannot adjust field 'name'"),
    (("operations", 10, "steps", 1), "entity", "mooring", "holds a row of 'boat'"),
    (("operations", 0, "steps", 0), "sort_field", "tags", "its values have no order"),
    (("operations", 0, "steps", 0, "filters", 1), "match", "contains", "only be filtered with match 'exact'"),
    (("operations", 15, "steps", 0), "singleton", "sea", "singleton 'sea' does not exist"),
    (
        ("tools", 2, "input_schema", "properties", "boat_id"),
        "type",
        "integer",
        "identifiers of 'boat' are of type",
    ),
    (("tools", 2, "input_schema"), "type", "array", "must have type 'object'"),
]


@pytest.mark.parametrize(("place", "name", "value", "problem"), BROKEN, ids=[case[3][:40] for case in BROKEN])
def test_a_broken_specification_is_refused_with_the_place_named(
    spec_data, build, place, name, value, problem
) -> None:
    at(spec_data, *place)[name] = value
    with pytest.raises(EnvironmentSpecError, match="environment 'boatyard', ") as error:
        build(spec_data)
    assert problem in str(error.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "not readable JSON"),
        ("[]", "must hold a JSON object"),
        ('{"version": 99}', "has version 99"),
        ('{"name": "x"}', "not a valid specification at author"),
        ('{"name": "x", "author": "manual", "tools": [], "operations": [], "colour": 1}', "at colour"),
    ],
)
def test_a_file_that_holds_no_specification_is_refused(tmp_path, text: str, problem: str) -> None:
    (tmp_path / "env.json").write_text(text)
    with pytest.raises(EnvironmentSpecError, match=problem):
        load_environment(tmp_path)


def test_a_missing_file_is_refused(tmp_path) -> None:
    with pytest.raises(EnvironmentSpecError, match="does not exist"):
        load_environment(tmp_path)


def test_folder_and_file_load_alike(boatyard_folder) -> None:
    folder, file = load_environment(boatyard_folder), load_environment(boatyard_folder / "env.json")
    assert folder.spec == file.spec
    assert json.loads((boatyard_folder / "env.json").read_text())["name"] == folder.name
