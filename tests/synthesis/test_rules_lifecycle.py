from __future__ import annotations

from toolverse_jax.synthesis.rules_lifecycle import draft_lifecycle


def test_states_of_the_schema_are_used_and_every_verb_finds_its_own():
    lifecycle = draft_lifecycle(["confirm", "cancel"], ["open", "confirmed", "cancelled"])
    assert lifecycle.initial == "open"
    assert lifecycle.transitions == {
        "confirm": (("open",), "confirmed"),
        "cancel": (("open", "confirmed"), "cancelled"),
    }
    assert lifecycle.final == lifecycle.closed == ("cancelled",)


def test_what_is_booked_starts_booked_and_what_is_decided_on_starts_pending():
    assert draft_lifecycle(["cancel"], create_verbs=["book"]).transitions == {
        "cancel": (("booked",), "cancelled")
    }
    assert draft_lifecycle(["approve"], create_verbs=["book"]).transitions == {
        "approve": (("pending",), "approved")
    }


def test_what_is_decided_on_may_be_in_any_state_that_no_verb_leads_to():
    lifecycle = draft_lifecycle(["approve"], ["todo", "doing", "done"])
    assert lifecycle.transitions == {"approve": (("todo", "doing", "done"), "approved")}


def test_an_alias_in_the_enumeration_is_the_target():
    lifecycle = draft_lifecycle(["complete", "start"], ["todo", "in_progress", "done"])
    assert lifecycle.transitions == {
        "complete": (("todo", "in_progress"), "done"),
        "start": (("todo",), "in_progress"),
    }


def test_verbs_that_go_back_undo_their_opposites():
    lifecycle = draft_lifecycle(["close", "reopen"])
    assert lifecycle.transitions == {"close": (("open",), "closed"), "reopen": (("closed",), "open")}
    assert lifecycle.final == ()
    lifecycle = draft_lifecycle(["start", "pause", "resume"])
    assert lifecycle.transitions["resume"] == (("paused",), "started")
    assert lifecycle.transitions["pause"] == (("started",), "paused")


def test_what_is_completed_is_final_but_still_takes_additions():
    lifecycle = draft_lifecycle(["complete"])
    assert (lifecycle.final, lifecycle.closed) == (("completed",), ())
