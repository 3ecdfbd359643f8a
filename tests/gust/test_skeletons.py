from __future__ import annotations

import pytest

from toolverse_jax.gust.skeletons import Skeleton, parse_description, spoken_verb


def _parts(skeleton: Skeleton) -> tuple[str, str, list[tuple[str, str]]]:
    return (
        skeleton.verb,
        skeleton.object.noun if skeleton.object else "",
        [(phrase.link, phrase.noun) for phrase in skeleton.phrases],
    )


@pytest.mark.parametrize(
    ("description", "parts"),
    [
        ("Book a stay for a boat at a berth.", ("book", "stay", [("for", "boat"), ("at", "berth")])),
        ("List the stays booked at a berth.", ("list", "stays", [("booked at", "berth")])),
        ("Create a bed in a greenhouse.", ("create", "bed", [("in", "greenhouse")])),
        ("Find huts, in one valley or in all.", ("find", "huts", [])),
        ("Mark a repair as completed.", ("mark", "repair", [("as", "completed")])),
        ("Create a task. Needs a project.", ("create", "task", [])),
    ],
)
def test_a_description_is_cut_into_verb_object_and_phrases(description: str, parts: tuple) -> None:
    assert _parts(parse_description(description)) == parts


def test_a_trailing_clause_becomes_the_reason() -> None:
    assert parse_description("Close a parcel that was picked up.").reason == "was picked up"
    assert parse_description("Complete a loan when the object is back.").reason == "the object is back"
    assert parse_description("Cancel a stay.").reason == ""


@pytest.mark.parametrize("description", ["", "x", "123 things.", "GET /api/v1"])
def test_what_is_no_sentence_gives_an_empty_skeleton_without_error(description: str) -> None:
    assert parse_description(description).object is None or parse_description(description).verb


def test_the_spoken_verb_falls_back_from_description_to_tool_name_to_a_plain_one() -> None:
    assert spoken_verb(parse_description("Book a stay."), "make_stay", "create") == "book"
    assert spoken_verb(parse_description("This tool makes stays."), "register_stay", "create") == "register"
    assert spoken_verb(parse_description("This tool makes stays."), "stay", "create") == "add"
    assert spoken_verb(parse_description("Cancels a stay."), "x", "delete") == "cancel"
