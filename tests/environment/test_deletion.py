from __future__ import annotations

import pytest


def with_policy(spec_data, build, policy: str):
    """Let the policy of moorings be `policy`; boats and the harbour's berth point to moorings."""
    spec_data["entities"][0]["on_delete"] = policy
    return build(spec_data).session(3)


def test_restrict_refuses_while_rows_or_settings_point_here(spec_data, build) -> None:
    session = with_policy(spec_data, build, "restrict")
    used = {boat["mooring_id"] for boat in session.rows("boat")}
    berth = session.singleton("harbour")["berth"]
    for mooring in session.rows("mooring"):
        id_ = mooring["mooring_id"]
        result = session.call("remove_mooring", {"mooring_id": id_})
        assert result.is_error == (id_ in used or id_ == berth)
        if result.is_error:
            assert result.value["error"]["code"] == "dependency_exists"
            assert id_ not in result.content


def test_nullify_clears_references_and_settings(spec_data, build) -> None:
    session = with_policy(spec_data, build, "nullify")
    boats, berth = session.rows("boat"), session.singleton("harbour")["berth"]
    assert not session.call("remove_mooring", {"mooring_id": berth}).is_error
    cleared = [{**b, "mooring_id": None} if b["mooring_id"] == berth else b for b in boats]
    assert session.rows("boat") == cleared
    assert session.singleton("harbour")["berth"] is None


def test_cascade_reaches_rows_of_rows(spec_data, build) -> None:
    session = with_policy(spec_data, build, "cascade")
    spot = next(b["mooring_id"] for b in session.rows("boat"))
    gone = {b["boat_id"] for b in session.rows("boat") if b["mooring_id"] == spot}
    kept = [t for t in session.rows("trip") if t["boat_id"] not in gone]
    assert not session.call("remove_mooring", {"mooring_id": spot}).is_error
    assert not gone & {b["boat_id"] for b in session.rows("boat")}
    assert session.rows("trip") == kept


@pytest.mark.parametrize("policy", ["restrict", "cascade"])
def test_a_cascade_honours_the_policy_of_what_it_reaches(spec_data, build, policy: str) -> None:
    spec_data["entities"][1]["on_delete"] = policy
    session = with_policy(spec_data, build, "cascade")
    boat = session.rows("trip")[0]["boat_id"]
    spot = next(b["mooring_id"] for b in session.rows("boat") if b["boat_id"] == boat)
    before = session.state_hash()
    result = session.call("remove_mooring", {"mooring_id": spot})
    assert result.is_error == (policy == "restrict")
    assert (session.state_hash() == before) == (policy == "restrict")


def test_a_cascade_through_a_cycle_comes_to_an_end(spec_data, build) -> None:
    spec_data["entities"][0]["fields"].append(
        {"name": "guest_id", "type": "ref", "ref": "boat", "nullable": True}
    )
    session = with_policy(spec_data, build, "cascade")
    for mooring in session.rows("mooring"):
        session.call("remove_mooring", {"mooring_id": mooring["mooring_id"]})
    assert session.rows("mooring") == [] and session.rows("boat") == [] and session.rows("trip") == []
