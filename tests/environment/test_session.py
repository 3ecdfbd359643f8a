from __future__ import annotations

import math
import random

import pytest

from toolverse_jax.environment import Environment, Session
from toolverse_jax.types import ToolCall


def everything(session: Session):
    rows = [session.rows(entity.name) for entity in session.environment.spec.entities]
    return rows, session.singleton("harbour"), session.now, session.state_hash(), list(session.journal)


def sample_script(session: Session, rng: random.Random, length: int = 12):
    boats = [b["boat_id"] for b in session.rows("boat")]
    options = [
        lambda: ("list_boats", {"limit": rng.randrange(1, 4)}),
        lambda: ("get_boat", {"boat_id": rng.choice([*boats, "bt_none"])}),
        lambda: ("add_fuel", {"boat_id": rng.choice(boats), "litres": rng.choice([-20, 5, 0.5, 90])}),
        lambda: ("register_boat", {"name": f"Boat {rng.randrange(6)}", "owner": "Me", "tags": ["x"]}),
        lambda: ("launch_boat", {"boat_id": rng.choice(boats)}),
        lambda: ("remove_boat", {"boat_id": rng.choice(boats)}),
        lambda: ("set_harbour", {"gate": rng.choice(["open", "closed"])}),
        lambda: ("plan_trip", {"boat_id": rng.choice(boats), "starts_at": "2031-05-01T10:00:00", "seats": 2}),
    ]
    return [rng.choice(options)() for _ in range(length)]


def test_a_failed_call_leaves_the_state_unchanged(boatyard: Environment, failing_calls) -> None:
    session = boatyard.session(3)
    codes = set()
    for tool, arguments in failing_calls(session):
        before = everything(session)[:4]
        result = session.call(tool, arguments)
        assert result.is_error, (tool, arguments)
        assert everything(session)[:4] == before
        assert not session.journal[-1].changed
        codes.add(result.value["error"]["code"])
    assert codes == {
        *("unknown_tool", "invalid_arguments", "not_found", "already_exists"),
        *("precondition_failed", "limit_exceeded", "dependency_exists"),
    }


def test_error_messages_name_no_identifier(boatyard: Environment, failing_calls) -> None:
    session = boatyard.session(3)
    ids = [str(row[e.id_name]) for e in boatyard.spec.entities for row in session.rows(e.name)]
    for tool, arguments in failing_calls(session):
        message = session.call(tool, arguments).value["error"]["message"]
        assert message.endswith(".") and not any(each in message for each in ids)


def test_interleaved_sessions_are_independent(boatyard: Environment) -> None:
    alone = []
    for seed in (3, 3, 4):
        session = boatyard.session(seed)
        script = sample_script(session, random.Random(seed + len(alone)))
        results = [session.call(*call) for call in script]
        alone.append((script, results, everything(session)))
    together = [boatyard.session(seed) for seed in (3, 3, 4)]
    mixed = [
        [session.call(*script[step]) for session, (script, _, _) in zip(together, alone, strict=True)]
        for step in range(12)
    ]
    for index, (_, results, end) in enumerate(alone):
        assert [row[index] for row in mixed] == results
        assert everything(together[index]) == end


def test_the_same_seed_and_calls_give_the_same_session(spec_data, build, boatyard: Environment) -> None:
    first, second = boatyard.session(9), build(spec_data).session(9)
    script = sample_script(first, random.Random(1))
    assert [first.call(*call) for call in script] == [second.call(*call) for call in script]
    assert everything(first) == everything(second)


def test_identifiers_and_rows_differ_between_seeds(boatyard: Environment) -> None:
    first, second = ([b["boat_id"] for b in boatyard.session(seed).rows("boat")] for seed in (1, 2))
    assert not set(first) & set(second)


@pytest.mark.parametrize("seed", range(4))
def test_restoring_a_snapshot_is_exact(boatyard: Environment, seed: int) -> None:
    session = boatyard.session(seed)
    script = sample_script(session, random.Random(seed), 24)
    for call in script[:8]:
        session.call(*call)
    point, before = session.snapshot(), everything(session)
    later = [session.call(*call) for call in script[8:]]
    end = everything(session)
    session.restore(point)
    assert everything(session) == before
    assert [session.call(*call) for call in script[8:]] == later
    assert everything(session) == end


def test_a_fork_goes_its_own_way(boatyard: Environment) -> None:
    session = boatyard.session(3)
    session.call("set_harbour", {"gate": "closed"})
    before = everything(session)
    fork = session.fork()
    assert everything(fork) == before
    fork.call("register_boat", {"name": "Zed", "owner": "Me"})
    assert everything(session) == before and fork.state_hash() != session.state_hash()


def test_the_hash_does_not_depend_on_how_identifiers_look(spec_data, build) -> None:
    plain = build(spec_data).session(3)
    spec_data["entities"][1]["id_scheme"] = {"prefix": "B", "length": 9}
    other = build(spec_data).session(3)
    assert plain.rows("boat")[0]["boat_id"] != other.rows("boat")[0]["boat_id"]
    assert plain.state_hash() == other.state_hash()


def test_the_hash_sees_every_table_and_setting(boatyard: Environment) -> None:
    base = boatyard.session(3)
    boat = base.rows("boat")[0]["boat_id"]
    hashes = {base.state_hash()}
    for call in (
        ("update_boat", {"boat_id": boat, "owner": "Z"}),
        ("set_harbour", {"fee": 1}),
        ("plan_trip", {"boat_id": boat, "starts_at": "2031-05-01T10:00:00", "seats": 2, "litres": 0}),
    ):
        fork = base.fork()
        assert not fork.call(*call).is_error
        hashes.add(fork.state_hash())
    assert len(hashes) == 4


def test_the_clock_moves_a_minute_with_each_changing_call_only(boatyard: Environment) -> None:
    session = boatyard.session(3)
    for call, now in (
        (("list_boats", {}), "09:00:00"),
        (("set_harbour", {"fee": 1}), "09:01:00"),
        (("set_harbour", {"fee": 1}), "09:01:00"),
        (("set_harbour", {"fee": "x"}), "09:01:00"),
        (("set_harbour", {"fee": 2}), "09:02:00"),
    ):
        session.call(*call)
        assert session.now == f"2031-03-03T{now}"


def test_the_journal_holds_calls_results_and_changes(boatyard: Environment) -> None:
    session = boatyard.session(3)
    results = [session.call("set_harbour", {"fee": 1}), session.call("nope", {"a": 1})]
    calls = [ToolCall(name="set_harbour", arguments={"fee": 1}), ToolCall(name="nope", arguments={"a": 1})]
    assert session.journal == [(calls[0], results[0], True), (calls[1], results[1], False)]


def test_rows_show_references_as_identifiers(boatyard: Environment) -> None:
    session = boatyard.session(3)
    moorings = {m["mooring_id"] for m in session.rows("mooring")}
    assert {b["mooring_id"] for b in session.rows("boat")} <= moorings
    assert session.singleton("harbour")["berth"] in moorings
    for missing in (session.rows, session.singleton):
        with pytest.raises(KeyError):
            missing("nothing")


def malformed(rng: random.Random, depth: int = 0):
    plain = [
        None,
        True,
        0,
        -1,
        2**70,
        1.5,
        math.nan,
        math.inf,
        "",
        "x",
        "\ud800",
        "\x00",
        "9" * 500,
        b"x",
        (),
        set(),
        object(),
    ]
    if depth > 2 or rng.random() < 0.7:
        return rng.choice(plain)
    if rng.random() < 0.5:
        return [malformed(rng, depth + 1) for _ in range(rng.randrange(3))]
    return {
        rng.choice(["a", "boat_id", "", 1, None]): malformed(rng, depth + 1) for _ in range(rng.randrange(3))
    }


def test_malformed_calls_are_answered_with_typed_errors(boatyard: Environment) -> None:
    rng = random.Random(0)
    session = boatyard.session(3)
    names = [*(tool.name for tool in boatyard.tools), "", "nope", 3, None, ["list_boats"]]
    errors = 0
    for _ in range(600):
        tool = rng.choice(names)
        known = isinstance(tool, str) and tool in boatyard.plans
        properties = list(boatyard.spec.tool(str(tool)).input_schema["properties"]) if known else ["a"]
        arguments = (
            malformed(rng)
            if rng.random() < 0.3
            else {n: malformed(rng) for n in properties if rng.random() < 0.7}
        )
        before = session.state_hash()
        result = session.call(tool, arguments)  # type: ignore[arg-type]
        assert result.content.encode()
        if result.is_error:
            errors += 1
            assert set(result.value["error"]) <= {"code", "message", "param"}
            assert session.state_hash() == before
        else:
            assert isinstance(arguments, dict)
    assert errors > 400


def test_a_session_without_calls_shares_the_start_state(boatyard: Environment) -> None:
    first, second = boatyard.session(3), boatyard.session(3)
    assert first.snapshot().state is second.snapshot().state
    first.call("list_boats", {})
    assert first.snapshot().state is second.snapshot().state
