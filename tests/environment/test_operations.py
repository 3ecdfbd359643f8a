from __future__ import annotations

import jsonschema
import pytest

from toolverse_jax.environment import Annotations, Environment, Session, output_schema


@pytest.fixture
def session(boatyard: Environment) -> Session:
    return boatyard.session(3)


def ok(session: Session, tool: str, **arguments):
    result = session.call(tool, arguments)
    assert not result.is_error, result.content
    jsonschema.validate(result.value, session.environment.plans[tool].output_schema)
    return result.value


def code(session: Session, tool: str, **arguments) -> str:
    result = session.call(tool, arguments)
    assert result.is_error
    return result.value["error"]["code"]


def test_list_shows_rows_under_the_plural_without_detail_fields(session: Session) -> None:
    boats = ok(session, "list_boats")["boats"]
    assert list(boats[0]) == ["boat_id", "name", "owner", "status", "mooring_id", "fuel_l"]
    assert [b["boat_id"] for b in boats] == [b["boat_id"] for b in session.rows("boat")]


def test_filters_split_the_list_exactly(session: Session) -> None:
    everything = ok(session, "list_boats")["boats"]
    parts = [ok(session, "list_boats", status=s)["boats"] for s in ("ashore", "afloat")]
    assert all(b["status"] == s for part, s in zip(parts, ("ashore", "afloat"), strict=True) for b in part)
    assert sorted(b["boat_id"] for part in parts for b in part) == sorted(b["boat_id"] for b in everything)
    spot = everything[0]["mooring_id"]
    there = ok(session, "list_boats", mooring_id=spot)["boats"]
    assert there == [b for b in everything if b["mooring_id"] == spot]
    ok(session, "register_boat", name="Adrift", owner="Me")
    assert ok(session, "list_boats", mooring_id="MO-none")["boats"] == []


def test_pages_join_to_the_whole_list(session: Session) -> None:
    everything = ok(session, "list_boats")["boats"]
    pages = [ok(session, "list_boats", limit=2, offset=at)["boats"] for at in range(0, len(everything), 2)]
    assert [b for page in pages for b in page] == everything
    assert ok(session, "list_boats", offset=100)["boats"] == []


def test_search_ignores_case_sorts_and_counts(session: Session) -> None:
    boats = session.rows("boat")
    found = ok(session, "search_boats", text=boats[0]["name"][:4].upper())
    names = [b["name"] for b in found["boats"]]
    expected = [b["name"] for b in boats if boats[0]["name"][:4].lower() in b["name"].lower()]
    assert names == sorted(expected) and found["found"] == len(names)
    assert ok(session, "search_boats", owner=boats[0]["owner"].upper())["found"] >= 1
    rich = ok(session, "search_boats", min_fuel=50)
    assert rich["found"] == sum(b["fuel_l"] >= 50 for b in boats)


def test_get_shows_every_field_of_the_row(session: Session) -> None:
    row = session.rows("boat")[1]
    assert ok(session, "get_boat", boat_id=row["boat_id"]) == row
    assert code(session, "get_boat", boat_id="bt_00000") == "not_found"


def test_a_natural_key_finds_the_row_whatever_its_case(session: Session) -> None:
    found = ok(session, "get-mooring", name="OLD wall")
    assert found["name"] == "Old wall"
    assert found["boats"] == sum(b["mooring_id"] == found["mooring_id"] for b in session.rows("boat"))


def test_several_rows_of_one_natural_key_are_a_conflict(spec_data, build) -> None:
    lookup = spec_data["operations"][3]["steps"][0]
    lookup["field"] = "lit"
    spec_data["tools"][3]["input_schema"]["properties"]["name"] = {"type": "boolean"}
    session = build(spec_data).session(3)
    assert code(session, "get-mooring", name=True) == "conflict"


def test_create_adds_one_row_with_defaults_and_a_fresh_identifier(session: Session) -> None:
    before = session.rows("boat")
    made = ok(
        session, "register_boat", name="Zed", owner="Me", tags=["a"], mooring_id=before[0]["mooring_id"]
    )
    assert session.rows("boat") == [*before, made]
    assert made["boat_id"] not in {b["boat_id"] for b in before}
    assert (made["tags"], made["built"], made["updated_at"]) == (["a"], "2031-01-01", "2031-03-03T09:00:00")
    assert ok(session, "register_boat", name="Yot", owner="Me")["mooring_id"] is None
    assert code(session, "register_boat", name="Zed", owner="Me") == "already_exists"


def test_update_changes_the_named_fields_of_one_row_only(session: Session) -> None:
    before = session.rows("boat")
    after = ok(session, "update_boat", boat_id=before[1]["boat_id"], owner="New Owner")
    assert after == {**before[1], "owner": "New Owner"}
    assert session.rows("boat") == [before[0], after, *before[2:]]


def test_an_update_to_the_same_values_changes_nothing(session: Session) -> None:
    boat = session.rows("boat")[0]
    ok(session, "update_boat", boat_id=boat["boat_id"], name=boat["name"], owner=None)
    assert not session.journal[-1].changed and session.now == "2031-03-03T09:00:00"


def test_an_update_keeps_unique_fields_unique(session: Session) -> None:
    first, second = session.rows("boat")[:2]
    assert code(session, "update_boat", boat_id=first["boat_id"], name=second["name"]) == "already_exists"


def test_a_transition_leaves_only_from_its_states(session: Session) -> None:
    boat = ok(session, "register_boat", name="Zed", owner="Me")
    assert ok(session, "launch_boat", boat_id=boat["boat_id"])["status"] == "afloat"
    failed = session.call("launch_boat", {"boat_id": boat["boat_id"]}).value["error"]
    assert failed == {
        "code": "precondition_failed",
        "message": "Cannot launch the boat while its status is afloat.",
    }
    assert ok(session, "haul_out", boat_id=boat["boat_id"])["status"] == "ashore"


def test_a_guard_stops_the_call_before_any_change(session: Session) -> None:
    boat = ok(session, "register_boat", name="Zed", owner="Me")
    ok(session, "launch_boat", boat_id=boat["boat_id"])
    ok(session, "set_harbour", gate="closed")
    # The boat is afloat already: had the transition run first, its own error would show.
    failed = session.call("launch_boat", {"boat_id": boat["boat_id"]}).value["error"]
    assert failed == {"code": "precondition_failed", "message": "The harbour gate is closed."}


def test_amounts_add_up_and_stop_at_the_bounds(session: Session) -> None:
    boat = ok(session, "register_boat", name="Zed", owner="Me")["boat_id"]
    for litres, total in ((0.1, 0.1), (0.2, 0.3), (99.7, 100), (-100, 0)):
        assert ok(session, "add_fuel", boat_id=boat, litres=litres)["fuel_l"] == total
    assert code(session, "add_fuel", boat_id=boat, litres=-0.1) == "limit_exceeded"
    assert code(session, "add_fuel", boat_id=boat, litres=101) == "limit_exceeded"


def test_a_failure_in_a_later_step_undoes_the_earlier_ones(session: Session) -> None:
    boat = session.rows("boat")[0]["boat_id"]
    before, trips = session.state_hash(), session.rows("trip")
    plan = {"boat_id": boat, "starts_at": "2031-05-01T10:00:00", "seats": 3}
    assert code(session, "plan_trip", **plan, litres=500) == "limit_exceeded"
    assert session.state_hash() == before and session.rows("trip") == trips
    made = ok(session, "plan_trip", **plan, litres=0)
    undisturbed = session.environment.session(3)
    assert made == ok(undisturbed, "plan_trip", **plan, litres=0)


def test_defaults_apply_to_creation_but_not_to_settings(session: Session) -> None:
    boat = session.rows("boat")[0]
    made = ok(session, "plan_trip", boat_id=boat["boat_id"], starts_at="2031-05-01T10:00:00", seats=3)
    assert made["fuel_l"] == boat["fuel_l"] + 5
    assert ok(session, "set_harbour", gate="closed")["fee"] == 12.5


def test_aggregates_follow_the_filter(session: Session) -> None:
    boats = session.rows("boat")
    whole = ok(session, "fuel_report")
    assert whole == {"boats": len(boats), "litres": sum(b["fuel_l"] for b in boats)}
    parts = [ok(session, "fuel_report", status=s) for s in ("ashore", "afloat")]
    assert sum(p["boats"] for p in parts) == whole["boats"]
    assert ok(session, "fuel_report", status=None) == whole


def test_dates_until_a_day_include_the_day(session: Session) -> None:
    trips = ok(session, "list_trips")["trips"]
    assert [t["starts_at"] for t in trips] == sorted(t["starts_at"] for t in trips)
    day = trips[1]["starts_at"][:10]
    until = ok(session, "list_trips", until=day)["trips"]
    assert until == [t for t in trips if t["starts_at"][:10] <= day]
    assert ok(session, "list_trips", trip_id=trips[0]["trip_id"])["trips"] == trips
    assert code(session, "list_trips", trip_id=1) == "not_found"


def test_deleting_cascades_to_rows_that_point_here(session: Session) -> None:
    boat = session.rows("trip")[0]["boat_id"]
    kept = [t for t in session.rows("trip") if t["boat_id"] != boat]
    assert ok(session, "remove_boat", boat_id=boat) == {"boat_id": boat, "removed": True}
    assert session.rows("trip") == kept
    assert code(session, "remove_boat", boat_id=boat) == "not_found"


def test_an_integer_identifier_may_be_written_as_a_float(session: Session) -> None:
    trip = session.rows("trip")[0]["trip_id"]
    assert isinstance(trip, int)
    ok(session, "list_trips", trip_id=float(trip))


def test_lists_in_results_and_arguments_are_not_shared_with_the_state(session: Session) -> None:
    tags = ["a"]
    made = ok(session, "register_boat", name="Zed", owner="Me", tags=tags)
    tags.append("b")
    made["tags"].append("c")
    assert ok(session, "get_boat", boat_id=made["boat_id"])["tags"] == ["a"]


def test_nested_arguments_are_validated_through_references(session: Session) -> None:
    note = {"text": "x", "parts": [{"n": 1, "parts": [{"n": 2}]}]}
    assert ok(session, "log_note", note=note, anything=1)["note"] == note
    note["parts"][0]["parts"][0]["n"] = True
    failed = session.call("log_note", {"note": note}).value["error"]
    assert failed["message"] == "The argument 'note.parts[0].parts[0].n' must be of type integer."


def test_output_schemas_are_derived_from_the_operation(boatyard: Environment) -> None:
    schema = output_schema(boatyard.spec, boatyard.spec.operation("plan_trip"))
    assert schema["required"] == ["trip_id", "boat_id", "starts_at", "seats", "boat_name", "fuel_l"]
    assert schema["properties"]["trip_id"] == {"type": "integer"}
    record = output_schema(boatyard.spec, boatyard.spec.operation("get_boat"))
    assert record["properties"]["mooring_id"] == {"type": ["string", "null"]}
    assert record["properties"]["status"] == {"enum": ["ashore", "afloat"]}
    assert record["properties"]["built"] == {"type": "string", "format": "date"}
    for tool in boatyard.tools:
        jsonschema.Draft202012Validator.check_schema(dict(tool.output_schema or {}))


def test_annotations_follow_from_the_steps(boatyard: Environment) -> None:
    def hints(read_only: bool, destructive: bool, idempotent: bool) -> Annotations:
        return Annotations(read_only=read_only, destructive=destructive, idempotent=idempotent)

    expected = {
        "list_boats": hints(True, False, True),
        "register_boat": hints(False, False, False),
        "update_boat": hints(False, True, True),
        "remove_boat": hints(False, True, True),
        "add_fuel": hints(False, True, False),
        "launch_boat": hints(False, True, False),
        "haul_out": hints(False, True, True),
        "get_harbour": hints(True, False, True),
        "set_harbour": hints(False, True, True),
    }
    assert {tool: boatyard.annotations[tool] for tool in expected} == expected
