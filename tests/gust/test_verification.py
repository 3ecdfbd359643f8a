from __future__ import annotations

import pytest

from toolverse_jax.environment import Environment
from toolverse_jax.environment.spec import EnvSpec
from toolverse_jax.gust.graph import Edge, ToolDependencyGraph
from toolverse_jax.gust.inference import infer_graph
from toolverse_jax.gust.verification import invent_like, verify_edges


@pytest.fixture(scope="module")
def shed(shed_spec) -> Environment:
    return Environment(shed_spec)


def _verdicts(environment: Environment, *edges: Edge) -> dict[tuple[str, str, str | None], str | None]:
    nodes = tuple(tool.name for tool in environment.spec.tools)
    graph = ToolDependencyGraph(environment="tool_shed", graph_id="g", nodes=nodes, edges=edges)
    verified = verify_edges(environment, graph, seed=0)
    return {(e.producer, e.consumer, e.parameter): e.verdict for e in verified.edges}


def test_identifiers_are_proved_by_running_and_inferred_graphs_hold(shed, shed_spec):
    graph = infer_graph(shed_spec)
    verified = verify_edges(shed, graph, seed=0)
    verdicts = {(e.producer, e.consumer, e.parameter): e.verdict for e in verified.edges}
    assert len(verdicts) == len(graph.edges)
    assert verdicts["list_items", "get_item", "item_id"] == "proved"
    assert verdicts["list_items", "add_item", "shed_id"] == "proved"
    assert verdicts["list_sheds", "list_items", "shed_id"] == "proved"
    assert verify_edges(shed, graph, seed=0) == verified


def test_a_value_that_could_as_well_be_invented_is_weak(shed):
    edge = Edge(producer="list_neighbours", consumer="send_message", parameter="to", output="email")
    assert _verdicts(shed, edge) == {("list_neighbours", "send_message", "to"): "weak"}


def test_a_value_of_the_wrong_kind_is_refuted_and_dropped(shed):
    wrong = Edge(producer="list_sheds", consumer="get_item", parameter="item_id", output="id")
    name = Edge(producer="list_items", consumer="add_item", parameter="shed_id", output="title")
    assert _verdicts(shed, wrong, name) == {}


def test_the_member_that_holds_the_value_is_found_where_inference_does_not_know_it(shed, shed_spec):
    edge = Edge(producer="list_items", consumer="add_item", parameter="shed_id")
    graph = infer_graph(shed_spec).with_edges([edge])
    assert [(e.verdict, e.output) for e in verify_edges(shed, graph).edges] == [("proved", "shed_id")]


def test_a_state_that_only_one_tool_brings_about_is_proved_and_required(shed_spec):
    data = shed_spec.model_dump()
    item = next(e for e in data["entities"] if e["name"] == "item")
    status = next(f for f in item["fields"] if f["name"] == "status")
    status["generator"] = {"kind": "choices", "values": ["free"]}
    spec = EnvSpec.model_validate(data)
    graph = infer_graph(spec)
    semantic = [e for e in graph.edges if e.kind == "semantic" and e.consumer == "return_item"]
    useless = Edge(producer="note_item", consumer="return_item", kind="semantic", required=False)
    verified = verify_edges(Environment(spec), graph.with_edges([*semantic, useless]))
    assert [(e.producer, e.verdict, e.required) for e in verified.edges] == [("lend_item", "proved", True)]


def test_a_state_that_rows_may_be_in_anyway_is_weak_and_not_required(shed, shed_spec):
    graph = infer_graph(shed_spec)
    semantic = [e for e in graph.edges if (e.producer, e.consumer) == ("lend_item", "return_item")]
    verified = verify_edges(shed, graph.with_edges(semantic))
    assert [(e.verdict, e.required) for e in verified.edges] == [("weak", False)]


def test_an_invented_value_keeps_the_shape():
    assert invent_like("it3k9") != "it3k9" and len(invent_like("it3k9")) == 5
    assert invent_like("it3k9").startswith("it")
    assert invent_like(41) == 41 + 7919
