from __future__ import annotations

import pytest

from toolverse_jax.environment import load_environment
from toolverse_jax.gust.text_checks import find_leaks, is_recoverable, oddities
from toolverse_jax.gust.wording import Wording
from toolverse_jax.paths import envs_dir


@pytest.fixture(scope="module")
def wording() -> Wording:
    return Wording(load_environment(envs_dir() / "marina_berths").spec)


@pytest.mark.parametrize("text", ["Cancel stay sk3f9.", "Use list_piers first.", "Set the pier_id."])
def test_identifiers_and_technical_names_leak(text: str, wording: Wording) -> None:
    assert find_leaks(text, ["sk3f9"], wording)


def test_identifiers_count_as_whole_words_only(wording: Wording) -> None:
    assert find_leaks("Add a berth to Heron Pier.", ["Her", "ber", "p1"], wording) == []


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("Make it 4 nights.", 4, True),
        ("Make it 14 nights.", 4, False),
        ("Make it 4.5 metres.", 4, False),
        ("Make it 4.5 metres.", 4.5, True),
        ("Move it to 12 March.", "2031-03-12", True),
        ("Move it to 12 March.", "2032-03-12", False),
        ("Move it to March 12, 2032.", "2032-03-12", True),
        ("A locker in the old town district.", "old_town", True),
        ('Add the note "wear goggles".', "wear goggles", True),
        ('Add the note "wear gloves".', "wear goggles", False),
    ],
)
def test_values_are_read_back_from_the_words(text: str, value: object, expected: bool) -> None:
    assert is_recoverable(text, value, 2031) is expected


@pytest.mark.parametrize(
    "text",
    [
        "Add a {v} berth there.",
        "Add a  berth there.",
        "Add a a berth there.",
        "Add a open order there.",
        "Add a berth there..",
        "Cancel it.",
        "word " * 40,
    ],
)
def test_ill_formed_messages_are_noticed(text: str) -> None:
    assert oddities(text)


def test_quoted_text_is_the_users_own() -> None:
    assert oddities('Add a note saying "a odd, , text" to it.') == []
