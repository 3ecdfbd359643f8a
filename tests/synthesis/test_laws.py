"""Each law must notice an environment that breaks it: sessions of a broken copy, laws of the sound one."""

from __future__ import annotations

import pytest

from toolverse_jax.environment import Environment
from toolverse_jax.environment.spec import (
    Delete,
    Entity,
    EnvSpec,
    Filter,
    Insert,
    Lookup,
    Output,
    Query,
    Update,
)
from toolverse_jax.synthesis.laws import all_checks, tool_checks
from toolverse_jax.synthesis.probe import Probe

ROW = Lookup(entity="book", arg="book_id")


def _with_operation(spec: EnvSpec, tool: str, **changes) -> EnvSpec:
    operations = tuple(o.model_copy(update=changes) if o.tool == tool else o for o in spec.operations)
    return spec.model_copy(update={"operations": operations})


def _with_entity(spec: EnvSpec, name: str, **changes) -> EnvSpec:
    entities: tuple[Entity, ...] = tuple(
        e.model_copy(update=changes) if e.name == name else e for e in spec.entities
    )
    return spec.model_copy(update={"entities": entities})


def _broken_laws(spec: EnvSpec, broken: EnvSpec, tool: str) -> set[str]:
    probe = Probe(spec, Environment(spec).session)
    assert all(check.passed is not False for check in tool_checks(probe, tool))
    suspect = Probe(spec, Environment(broken).session)
    suspect.reuse_arguments(probe)
    return {check.law for check in tool_checks(suspect, tool) if check.passed is False}


def test_a_sound_environment_breaks_no_law(spec):
    probe = Probe(spec, Environment(spec).session)
    assert [check for check in all_checks(probe) if check.passed is False] == []


@pytest.mark.parametrize(
    ("tool", "changes", "law"),
    [
        (
            "list_shelves",
            {"steps": (Query(entity="shelf"),)},
            "a list holds exactly the rows that match",
        ),
        (
            "list_books",
            {
                "steps": (
                    Lookup(entity="shelf", arg="shelf_id", bind="shelf"),
                    Query(entity="book", filters=(Filter(arg="title", field="title", match="contains"),)),
                )
            },
            "a list holds exactly the rows that match",
        ),
        ("count_books", {"steps": (Query(entity="book"),)}, "an aggregate agrees with the rows"),
        (
            "get_book",
            {
                "steps": (Query(entity="book", limit=1),),
                "output": Output(shape="list", source="rows", entity="book"),
            },
            "the row asked for is shown as it is",
        ),
        (
            "get_book",
            {"steps": (ROW, Update(entity="book", values={"copies": 5}))},
            "reading changes nothing",
        ),
        (
            "add_book",
            {
                "steps": (
                    Lookup(entity="shelf", arg="shelf_id", bind="shelf"),
                    Insert(
                        entity="book",
                        values={"shelf_id": ["id", "shelf"], "title": ["arg", "kind"], "kind": "novel"},
                    ),
                )
            },
            "arguments are stored",
        ),
        (
            "update_book",
            {"steps": (ROW, Update(entity="book", values={"title": ["arg", "title"], "copies": 3}))},
            "nothing else changes",
        ),
        ("update_book", {"guards": ()}, "a guard refuses with its code"),
        ("lend_book", {"steps": (ROW,)}, "a transition ends in its state"),
        (
            "restock_book",
            {"steps": (ROW, Update(entity="book", values={"copies": ["arg", "amount"]}))},
            "an adjustment moves by the amount",
        ),
        (
            "remove_shelf",
            {"steps": (Lookup(entity="shelf", arg="shelf_id"),)},
            "deleting removes the row",
        ),
    ],
)
def test_a_tool_that_does_something_else_breaks_its_law(spec, tool, changes, law):
    assert law in _broken_laws(spec, _with_operation(spec, tool, **changes), tool)


def test_deleting_a_row_in_use_is_tried(spec):
    laws = _broken_laws(spec, _with_entity(spec, "shelf", on_delete="cascade"), "remove_shelf")
    assert "deleting a row in use: restrict" in laws


def test_a_taken_value_is_tried_where_a_field_is_unique(spec):
    fields = tuple(f.model_copy(update={"unique": f.name == "title"}) for f in spec.entity("book").fields)
    strict = _with_entity(spec, "book", fields=fields)
    assert "a taken value is refused" in _broken_laws(strict, spec, "add_book")


def test_a_row_that_cannot_be_read_back_breaks_a_law(spec):
    hidden = Query(entity="book", where=["eq", ["field", "row", "title"], "nothing of this name"])
    steps = (Lookup(entity="shelf", arg="shelf_id", bind="shelf"), hidden)
    broken = _with_operation(spec, "list_books", steps=steps)
    plain = _with_operation(
        spec,
        "list_books",
        steps=(
            Lookup(entity="shelf", arg="shelf_id", bind="shelf"),
            Query(entity="book", filters=(Filter(arg="shelf_id", field="shelf_id"),)),
        ),
    )
    assert "what was written can be read" in _broken_laws(plain, broken, "add_book")


def test_wrong_states_are_refused_untouched(spec):
    book = spec.entity("book")
    assert book.lifecycle is not None
    transitions = {**book.lifecycle.transitions, "lend": (("in", "on loan"), "on loan")}
    broken = _with_entity(
        spec, "book", lifecycle=book.lifecycle.model_copy(update={"transitions": transitions})
    )
    assert "a transition from a wrong state is refused" in _broken_laws(spec, broken, "lend_book")


def test_sessions_that_share_state_are_noticed(spec):
    shared = Environment(spec).session(0)

    class Shared:
        def __getattr__(self, name):
            return getattr(shared, name)

        def fork(self):
            return self

    checks = list(all_checks(Probe(spec, lambda seed: Shared())))
    failed = {check.law for check in checks if check.passed is False and check.layer == "isolation"}
    assert "a session never sees the calls of another" in failed
    assert "another seed gives other identifiers" in failed


def test_every_delete_step_of_the_sample_is_one_the_laws_can_see(spec):
    deletes = [o.tool for o in spec.operations if any(isinstance(s, Delete) for s in o.steps)]
    assert deletes == ["remove_shelf"]
