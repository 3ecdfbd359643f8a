from __future__ import annotations

import pytest

from toolverse_jax.synthesis.entities import Vocabulary, identifier_base, read_tools
from toolverse_jax.synthesis.normalise import normalise_toolset
from toolverse_jax.types import Toolset, ToolSpec


def _readings(**tools: tuple[str, ...]):
    specs = tuple(
        ToolSpec(
            name=name.replace("__", "-"),
            description="",
            input_schema={"type": "object", "properties": {p: {"type": "string"} for p in parameters}},
        )
        for name, parameters in tools.items()
    )
    return read_tools(normalise_toolset(Toolset(name="set", tools=specs)).tools)


@pytest.mark.parametrize(
    ("name", "action", "head", "many"),
    [
        ("list_tasks", "list", ("task",), True),
        ("papers_get", "get", ("paper",), True),
        ("sites_list", "list", ("site",), True),
        ("pull_requests_create", "create", ("pull", "request"), True),
        ("order_create", "create", ("order",), False),
        ("getTaskDetails", "get", ("task",), False),
        ("get_all_users", "get", ("user",), True),
        ("mark_task_complete", "transition", ("task",), False),
        ("cancel_order", "transition", ("order",), False),
        ("restock_product", "adjust", ("product",), False),
        ("list_tasks_by_project", "list", ("task",), True),
        ("get_statistics", "aggregate", (), False),
        ("planets", "", ("planet",), True),
        ("click_button", "unsupported", ("button",), False),
        ("search_web", "unsupported", ("web",), False),
    ],
)
def test_a_tool_name_tells_action_and_thing(name, action, head, many):
    (reading,) = _readings(**{name: ()})
    assert (reading.action, reading.head, reading.plural) == (action, head, many)


def test_a_common_prefix_is_stripped_but_stays_the_subject_where_no_other_is_named():
    readings = _readings(
        acme__list__pots=(),
        acme__add__pot=("name",),
        acme__delete__pot=("pot_id",),
        acme__get__pot=("pot_id",),
    )
    assert {reading.head for reading in readings} == {("pot",)}
    readings = _readings(
        notes_list=(), notes_create=("text",), notes_delete=("note_id",), notes_get=("note_id",)
    )
    assert {reading.head for reading in readings} == {("note",)}


@pytest.mark.parametrize(
    ("parameter", "base"),
    [
        ("task_id", ("task",)),
        ("taskIDs", ("task",)),
        ("issueIdOrKey", ("issue",)),
        ("projectKeyOrId", ("project",)),
        ("id", ()),
        ("idle", None),
        ("identity", None),
        ("title", None),
    ],
)
def test_identifier_parameters_name_their_thing(parameter, base):
    assert identifier_base(parameter) == base


def test_nouns_of_identifiers_find_entities_by_abbreviation_suffix_and_role():
    readings = _readings(
        list_pull_requests=("repo_id",),
        list_repositories=(),
        get_flow_run=("flow_run_id",),
        list_users=(),
        add_command_task=("name",),
        get_task=("task_id",),
    )
    vocabulary = Vocabulary(readings)
    assert vocabulary.of_base(("pr",)) == ("pull", "request")
    assert vocabulary.of_base(("repo",)) == ("repository",)
    assert vocabulary.of_base(("run",)) == ("flow", "run")
    assert vocabulary.of_base(("parent", "task")) == ("task",)
    assert vocabulary.of_base(("owner",)) == ("user",)
    assert vocabulary.of_base(("invoice",)) is None
    assert vocabulary.of_head(("command", "task")) == ("task",)
