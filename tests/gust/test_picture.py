from __future__ import annotations

from xml.etree import ElementTree

from toolverse_jax.gust.graph import Edge, ToolDependencyGraph
from toolverse_jax.gust.inference import infer_graph
from toolverse_jax.gust.picture import graph_svg
from toolverse_jax.gust.sanitize import sanitize

_SVG = "{http://www.w3.org/2000/svg}"


def test_the_picture_names_every_tool_and_draws_every_edge(shed_spec):
    graph, _ = sanitize(infer_graph(shed_spec))
    root = ElementTree.fromstring(graph_svg(graph))
    texts = [element.text for element in root.iter(f"{_SVG}text")]
    assert set(graph.nodes) <= set(texts)
    links = [element for element in root.iter(f"{_SVG}g") if element.get("class") == "link"]
    assert len(links) == len(graph.edges)
    dashed = [p for p in root.iter(f"{_SVG}path") if "semantic" in (p.get("class") or "")]
    assert len(dashed) == sum(e.kind == "semantic" for e in graph.edges) + 1  # the legend has one
    assert graph_svg(graph) == graph_svg(graph)


def test_boxes_do_not_overlap_and_stay_inside(shed_spec):
    for variant in range(3):
        root = ElementTree.fromstring(graph_svg(sanitize(infer_graph(shed_spec, variant=variant))[0]))
        boxes = [
            tuple(float(rect.get(name) or 0) for name in ("x", "y", "width", "height"))
            for rect in root.iter(f"{_SVG}rect")
        ]
        for n, (x, y, w, h) in enumerate(boxes):
            assert 0 <= x and 0 <= y and x + w <= float(root.get("width") or 0)
            assert y + h <= float(root.get("height") or 0)
            for other_x, other_y, other_w, other_h in boxes[:n]:
                apart = (
                    x >= other_x + other_w or other_x >= x + w or y >= other_y + other_h or other_y >= y + h
                )
                assert apart


def test_proved_edges_stand_out_and_names_are_escaped():
    edge = Edge(producer="a<b", consumer="c&d", parameter='"q"', verdict="proved")
    graph = ToolDependencyGraph(environment='x"<', graph_id="g&", nodes=("a<b", "c&d"), edges=(edge,))
    root = ElementTree.fromstring(graph_svg(graph))
    proved = [p for p in root.iter(f"{_SVG}path") if "proved" in (p.get("class") or "")]
    assert len(proved) == 2


def test_a_graph_with_a_cycle_or_without_tools_is_drawn_as_well():
    edges = (
        Edge(producer="a", consumer="b"),
        Edge(producer="b", consumer="a"),
        Edge(producer="a", consumer="a"),
    )
    cyclic = ToolDependencyGraph(environment="e", graph_id="g", nodes=("a", "b"), edges=edges)
    empty = ToolDependencyGraph(environment="e", graph_id="g", nodes=(), edges=())
    for graph in (cyclic, empty):
        ElementTree.fromstring(graph_svg(graph))
