from __future__ import annotations

import json

import pytest

from toolverse_jax.errors import ToolverseError
from toolverse_jax.gust.graph import Edge, Ordering, ToolDependencyGraph, ToolTraits
from toolverse_jax.gust.inference import infer_graph


def _graph(*edges: Edge, nodes: str = "abcd", **members) -> ToolDependencyGraph:
    return ToolDependencyGraph(environment="e", graph_id="e-g0", nodes=tuple(nodes), edges=edges, **members)


def test_edges_of_one_parameter_are_alternatives_of_one_slot():
    graph = _graph(
        Edge(producer="a", consumer="d", kind="semantic", required=False),
        Edge(producer="a", consumer="d", parameter="x"),
        Edge(producer="b", consumer="d", parameter="x"),
        Edge(producer="c", consumer="d", parameter="y"),
    )
    slots = {slot.parameter: slot for slot in graph.slots("d")}
    assert slots["x"].producers == ("a", "b")
    assert slots["y"].producers == ("c",)
    assert slots["x"].required and not slots[None].required
    assert list(slots) == ["x", "y", None]


def test_a_need_that_nothing_produces_locks_the_tool_and_what_hangs_on_it():
    graph = _graph(
        Edge(producer="b", consumer="c", parameter="x"),
        Edge(producer="a", consumer="d", parameter="x"),
        Edge(producer="b", consumer="d", parameter="x"),
        traits={"b": ToolTraits(needs=("secret",))},
    )
    assert graph.locked() == ("b", "c")


def test_networkx_and_json_give_the_same_graph_back(shed_spec):
    for variant in range(3):
        graph = infer_graph(shed_spec, variant=variant)
        back = ToolDependencyGraph.from_networkx(graph.to_networkx())
        assert sorted(back.edges, key=lambda e: e.key) == sorted(graph.edges, key=lambda e: e.key)
        assert (back.nodes, back.traits, back.orderings) == (graph.nodes, graph.traits, graph.orderings)
        assert ToolDependencyGraph.from_json(json.loads(json.dumps(graph.to_json()))) == graph


def test_a_plain_networkx_graph_becomes_a_graph_with_default_members():
    import networkx

    graph = ToolDependencyGraph.from_networkx(networkx.DiGraph([("a", "b")]))
    assert graph.edges == (Edge(producer="a", consumer="b"),)
    assert graph.trait("a") == ToolTraits()


def test_an_edge_to_an_unknown_tool_is_refused():
    with pytest.raises(ValueError, match="'z'"):
        _graph(Edge(producer="a", consumer="z"))
    with pytest.raises(ValueError, match="'z'"):
        _graph(orderings=(Ordering(earlier="z", later="a"),))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"version": 9}, "version 9"),
        ({"edges": [{"producer": "a"}]}, "invalid"),
        ({"nodes": None}, "invalid"),
        ({"traits": {"a": 3}}, "invalid"),
    ],
)
def test_a_damaged_graph_file_is_refused_in_one_sentence(change, sentence):
    with pytest.raises(ToolverseError, match=sentence):
        ToolDependencyGraph.from_json(_graph().to_json() | change)
