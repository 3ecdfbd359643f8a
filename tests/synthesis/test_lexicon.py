from __future__ import annotations

import pytest

from toolverse_jax.synthesis.lexicon import is_plural, plural, singular, split_name


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("list_pull_requests", ("list", "pull", "requests")),
        ("getHTTPStatus", ("get", "http", "status")),
        ("openproject-get-task", ("openproject", "get", "task")),
        ("storage.page", ("storage", "page")),
        ("projectIdOrKey", ("project", "id", "or", "key")),
        ("天气", ("天气",)),
    ],
)
def test_names_are_split_in_every_case_style(name, words):
    assert split_name(name) == words


@pytest.mark.parametrize(
    ("one", "many"),
    [
        ("task", "tasks"),
        ("variety", "varieties"),
        ("box", "boxes"),
        ("house", "houses"),
        ("person", "people"),
        ("branch", "branches"),
        ("day", "days"),
        ("status", "statuses"),
    ],
)
def test_singular_and_plural_undo_each_other(one, many):
    assert (plural(one), singular(many), singular(one)) == (many, one, one)
    assert is_plural(many) and not is_plural(one)
