from __future__ import annotations

import pytest

from toolverse_jax.environment.spec import EnvSpec
from toolverse_jax.gust.graph import ToolDependencyGraph
from toolverse_jax.gust.inference import infer_graph, infer_graphs


def _edges(graph: ToolDependencyGraph) -> dict[tuple[str, str, str | None], float]:
    return {(e.producer, e.consumer, e.parameter): e.confidence for e in graph.edges}


def test_identifiers_link_lists_and_creation_to_the_tools_that_take_them(shed_spec):
    edges = _edges(infer_graph(shed_spec))
    assert edges["list_items", "get_item", "item_id"] == 0.95
    assert edges["add_item", "lend_item", "item_id"] == 0.95
    assert edges["list_sheds", "add_item", "shed_id"] == 0.95
    assert edges["list_items", "remove_shed", "shed_id"] == 0.90
    assert edges["list_sheds", "list_items", "shed_id"] == 0.70


def test_a_tool_that_needs_the_value_itself_is_no_producer_of_it(shed_spec):
    edges = _edges(infer_graph(shed_spec))
    item_producers = {producer for producer, _, parameter in edges if parameter == "item_id"}
    assert item_producers == {"list_items", "add_item"}
    assert ("add_item", "remove_shed", "shed_id") not in edges


def test_state_and_kinds_of_values_link_tools(shed_spec):
    graph = infer_graph(shed_spec)
    edges = _edges(graph)
    assert edges["lend_item", "return_item", None] == 0.80
    assert edges["return_item", "lend_item", None] == 0.50
    assert edges["list_neighbours", "send_message", "to"] == 0.60
    assert {e.output for e in graph.edges if e.parameter == "to"} == {"email"}


def test_a_value_a_person_knows_does_not_lock_its_tool(shed_spec):
    graph = infer_graph(shed_spec)
    assert not any(edge.required for edge in graph.incoming("send_message"))
    assert graph.locked() == ()
    assert graph.trait("add_item").needs == ("shed_id",)
    assert not graph.trait("get_item").changes_state and graph.trait("lend_item").changes_state


def test_variants_differ_in_producers_and_in_semantic_edges(shed_spec):
    first, second, third = (infer_graph(shed_spec, variant=n) for n in range(3))
    assert len(infer_graphs(shed_spec)) == 3
    assert {e.producer for e in second.edges if e.parameter == "item_id"} == {"list_items"}
    assert {e.producer for e in third.edges if e.parameter == "item_id"} == {"add_item"}
    keys = [{e.key for e in g.edges if e.kind == "semantic"} for g in (second, third)]
    assert not keys[0] & keys[1] and keys[0] | keys[1] <= {e.key for e in first.edges}
    with pytest.raises(ValueError, match="variant"):
        infer_graph(shed_spec, variant=3)


def test_a_parameter_text_that_names_its_source_is_evidence(shed_spec):
    data = shed_spec.model_dump()
    by_name = {tool["name"]: tool for tool in data["tools"]}
    properties = by_name["send_message"]["input_schema"]["properties"]
    properties["to"] = {"type": "string", "description": "an address from list_neighbours"}
    by_name["get_item"]["description"] = "Show one item; scrap_item removes it."
    edges = _edges(infer_graph(EnvSpec.model_validate(data)))
    assert edges["list_neighbours", "send_message", "to"] == 0.90
    assert ("scrap_item", "get_item", None) not in edges


def test_guards_link_the_tools_that_write_what_they_read(shed_spec):
    data = shed_spec.model_dump()
    operation = next(o for o in data["operations"] if o["tool"] == "note_item")
    operation["guards"] = [
        {"condition": ["eq", ["field", "row", "status"], "lent"], "message": "Only a lent item takes a note."}
    ]
    edges = _edges(infer_graph(EnvSpec.model_validate(data)))
    assert edges["lend_item", "note_item", None] == 0.80
    assert ("return_item", "note_item", None) not in edges


def test_a_guard_against_a_state_links_the_tools_that_end_it(shed_spec):
    data = shed_spec.model_dump()
    operation = next(o for o in data["operations"] if o["tool"] == "note_item")
    operation["guards"] = [
        {
            "condition": ["not", ["eq", ["field", "row", "status"], "free"]],
            "message": "A free item takes no note.",
        }
    ]
    edges = _edges(infer_graph(EnvSpec.model_validate(data)))
    assert ("lend_item", "note_item", None) in edges and ("scrap_item", "note_item", None) in edges
    assert ("return_item", "note_item", None) not in edges


def test_a_tool_that_refuses_every_call_is_left_out(shed_spec):
    data = shed_spec.model_dump()
    next(o for o in data["operations"] if o["tool"] == "add_item")["simulated"] = "none"
    assert "add_item" not in infer_graph(EnvSpec.model_validate(data)).nodes


def test_nothing_is_used_after_deletion_and_nothing_changed_after_the_end(shed_spec):
    orderings = {(o.earlier, o.later) for o in infer_graph(shed_spec).orderings}
    assert ("get_item", "delete_item") in orderings and ("note_item", "scrap_item") in orderings
    assert ("get_item", "scrap_item") not in orderings
    assert ("delete_item", "scrap_item") not in orderings
    assert not any((later, earlier) in orderings for earlier, later in orderings)
