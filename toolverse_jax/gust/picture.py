"""Draws a tool dependency graph as SVG: layers from left to right, one port for each slot.

Colours follow the page: `currentColor` for ink, and the custom properties `--graph-surface`,
`--graph-action`, `--graph-lookup` and `--graph-muted` where a page defines them.
"""

from __future__ import annotations

import dataclasses
import itertools
from html import escape

from toolverse_jax.gust.graph import Edge, ToolDependencyGraph

_HEADER = 30
_PORT = 19
_GAP_X = 96
_GAP_Y = 22
_MARGIN = 18
_LEGEND = 46
_LANE = 10
"""Height reserved for an edge that passes through a layer."""
_SWEEPS = 12

_STYLE = """
.tdg:root { color-scheme: light dark; color: CanvasText; }
.tdg { font-family: ui-sans-serif, system-ui, 'Segoe UI', Helvetica, Arial, sans-serif; }
.tdg .name { font-size: 13px; font-weight: 600; fill: currentColor; }
.tdg .port { font-size: 11px; fill: currentColor; opacity: .78; font-family: ui-monospace, Menlo, Consolas, monospace; }
.tdg .note { font-size: 11px; fill: currentColor; opacity: .78; }
.tdg .box { fill: var(--graph-surface, transparent); stroke: currentColor; stroke-opacity: .55; stroke-width: 1.2; }
.tdg .action { stroke: var(--graph-action, #c2680c); stroke-opacity: 1; stroke-width: 1.8; }
.tdg .lookup { stroke: var(--graph-lookup, #2f80c4); stroke-opacity: 1; stroke-width: 1.8; }
.tdg .edge { fill: none; stroke: currentColor; stroke-opacity: .5; stroke-width: 1.3; }
.tdg .proved { stroke-opacity: .85; stroke-width: 1.6; }
.tdg .semantic { stroke-dasharray: 6 4; }
.tdg .optional { stroke-opacity: .34; }
.tdg .head { fill: currentColor; }
.tdg .dot { fill: currentColor; fill-opacity: .65; }
.tdg g.link:hover .edge { stroke-opacity: 1; stroke-width: 2.4; }
"""


@dataclasses.dataclass
class _Place:
    """A box, or the passage of a long edge through a layer."""

    name: str
    layer: int
    width: float
    height: float
    x: float = 0.0
    y: float = 0.0
    is_box: bool = True

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


def graph_svg(graph: ToolDependencyGraph) -> str:
    """Return a self-contained SVG picture of a graph.

    Arrows end at the port of the parameter they fill; several arrows at one port are alternatives. Proved
    edges are drawn strongly, semantic edges dashed, optional ones faintly. Edges that close a cycle are left out of
    the layering and drawn backwards.
    """
    layers = _layers(graph)
    places = {
        name: _Place(name, layer, _box_width(graph, name), _box_height(graph, name))
        for name, layer in layers.items()
    }
    routes = {edge: _route(edge, places, layers) for edge in graph.edges}
    columns = _columns(places)
    _order(columns, routes)
    width, height = _position(columns, routes)
    body = [_edge_svg(graph, edge, [places[name] for name in route]) for edge, route in routes.items()]
    body += [_box_svg(graph, place) for place in places.values() if place.is_box]
    body.append(_legend_svg(height))
    total = height + _LEGEND
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="tdg" viewBox="0 0 {width:.0f} {total:.0f}" width="{width:.0f}" '
        f'height="{total:.0f}" role="img" aria-label="Tool dependency graph of {escape(graph.environment, quote=True)}">'
        f"<title>Tool dependency graph {escape(graph.graph_id)}</title><style>{_STYLE}</style>"
        + "".join(body)
        + "</svg>\n"
    )


def _ports(graph: ToolDependencyGraph, tool: str) -> list[str]:
    """Return the labels of the slots of a tool; a semantic slot is a port as well."""
    return [slot.parameter or "after" for slot in graph.slots(tool)]


def _box_width(graph: ToolDependencyGraph, tool: str) -> float:
    longest = max([len(tool) * 8.3, *(len(port) * 6.8 + 8 for port in _ports(graph, tool))])
    return longest + 26


def _box_height(graph: ToolDependencyGraph, tool: str) -> float:
    ports = len(_ports(graph, tool))
    return _HEADER + (ports * _PORT + 4 if ports else 0)


def _layers(graph: ToolDependencyGraph) -> dict[str, int]:
    """Return the layer of each tool: the topological generation, without edges that close a cycle."""
    import networkx

    digraph = networkx.DiGraph()
    digraph.add_nodes_from(graph.nodes)
    for edge in graph.edges:
        if edge.producer != edge.consumer and not networkx.has_path(digraph, edge.consumer, edge.producer):
            digraph.add_edge(edge.producer, edge.consumer)
    return {
        name: layer
        for layer, names in enumerate(networkx.topological_generations(digraph))
        for name in sorted(names, key=graph.nodes.index)
    }


def _route(edge: Edge, places: dict[str, _Place], layers: dict[str, int]) -> list[str]:
    """Return the places an edge passes; passages are shared by edges from one producer."""
    first, last = layers[edge.producer], layers[edge.consumer]
    route = [edge.producer]
    for layer in range(first + 1, last):
        name = f"{edge.producer}\0{layer}"
        places.setdefault(name, _Place(name, layer, 0, _LANE, is_box=False))
        route.append(name)
    return [*route, edge.consumer]


def _columns(places: dict[str, _Place]) -> list[list[_Place]]:
    columns: list[list[_Place]] = [[] for _ in range(1 + max((p.layer for p in places.values()), default=-1))]
    for place in places.values():
        columns[place.layer].append(place)
    return columns


def _neighbours(routes: dict[Edge, list[str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for route in routes.values():
        for left, right in itertools.pairwise(route):
            found.setdefault(left, []).append(right)
            found.setdefault(right, []).append(left)
    return found


def _order(columns: list[list[_Place]], routes: dict[Edge, list[str]]) -> None:
    """Order each layer by the mean rank of its neighbours (barycentre heuristic), back and forth."""
    neighbours = _neighbours(routes)
    rank = {p.name: i / max(1, len(column)) for column in columns for i, p in enumerate(column)}
    for sweep in range(_SWEEPS):
        for column in columns if sweep % 2 == 0 else columns[::-1]:
            means = {
                p.name: _mean([rank[n] for n in neighbours.get(p.name, ())], default=2.0) for p in column
            }
            column.sort(key=lambda place: means[place.name])
            for index, place in enumerate(column):
                rank[place.name] = (index + 0.5) / len(column)


def _mean(values: list[float], default: float) -> float:
    return sum(values) / len(values) if values else default


def _position(columns: list[list[_Place]], routes: dict[Edge, list[str]]) -> tuple[float, float]:
    """Give every place its coordinates and return width and height of the picture."""
    x = float(_MARGIN)
    for column in columns:
        widest = max((place.width for place in column), default=0)
        y = float(_MARGIN)
        for place in column:
            # Passages take the width of their layer, so that edges run straight past its boxes.
            place.x, place.y = x, y
            place.width = place.width if place.is_box else widest
            y += place.height + _GAP_Y
        x += widest + _GAP_X
    neighbours = _neighbours(routes)
    by_name = {place.name: place for column in columns for place in column}
    for sweep in range(_SWEEPS):
        for column in columns if sweep % 2 else columns[::-1]:
            wanted = [
                _mean([by_name[n].middle for n in neighbours.get(p.name, ())], default=p.middle)
                - p.height / 2
                for p in column
            ]
            _settle(column, wanted)
    top = min((place.y for place in by_name.values()), default=0) - _MARGIN
    for place in by_name.values():
        place.y -= top
    bottom = max((place.y + place.height for place in by_name.values()), default=0)
    return x - _GAP_X + _MARGIN, bottom + _MARGIN


def _settle(column: list[_Place], wanted: list[float]) -> None:
    """Move places towards the wanted heights without overlap: mean of pushing down and pushing up."""
    down: list[float] = []
    for index, y in enumerate(wanted):
        down.append(max(y, down[-1] + column[index - 1].height + _GAP_Y) if down else y)
    up = list(wanted)
    for index in range(len(column) - 2, -1, -1):
        up[index] = min(wanted[index], up[index + 1] - column[index].height - _GAP_Y)
    for place, low, high in zip(column, down, up, strict=True):
        place.y = (low + high) / 2


def _box_svg(graph: ToolDependencyGraph, place: _Place) -> str:
    kind = "action" if graph.trait(place.name).changes_state else "lookup"
    x, y = place.x, place.y
    parts = [
        f'<rect class="box {kind}" x="{x:.1f}" y="{y:.1f}" width="{place.width:.1f}" height="{place.height:.1f}" rx="9"/>',
        f'<text class="name" x="{x + 13:.1f}" y="{y + 20:.1f}">{escape(place.name)}</text>',
    ]
    for index, port in enumerate(_ports(graph, place.name)):
        parts.append(
            f'<text class="port" x="{x + 13:.1f}" y="{y + _HEADER + index * _PORT + 11:.1f}">{escape(port)}</text>'
        )
    return "<g>" + "".join(parts) + "</g>"


def _edge_svg(graph: ToolDependencyGraph, edge: Edge, route: list[_Place]) -> str:
    source, target = route[0], route[-1]
    port = [slot.parameter for slot in graph.slots(edge.consumer)].index(edge.parameter)
    end_x, end_y = target.x, target.y + _HEADER + port * _PORT + 7
    points = [(source.x + source.width, source.y + 15)]
    for passage in route[1:-1]:
        points += [(passage.x, passage.middle), (passage.x + passage.width, passage.middle)]
    points.append((end_x - 7, end_y))
    path = f"M{points[0][0]:.1f},{points[0][1]:.1f}"
    for index, ((x0, y0), (x1, y1)) in enumerate(itertools.pairwise(points)):
        if index % 2:
            path += f"L{x1:.1f},{y1:.1f}"
        else:
            bend = max(abs(x1 - x0) / 2, 30)
            path += f"C{x0 + bend:.1f},{y0:.1f} {x1 - bend:.1f},{y1:.1f} {x1:.1f},{y1:.1f}"
    classes = ["edge"]
    classes += ["proved"] if edge.verdict == "proved" else []
    classes += ["semantic"] if edge.kind == "semantic" else []
    classes += ["optional"] if not edge.required and edge.kind == "parameter" else []
    head = f"M{end_x - 8:.1f},{end_y - 4:.1f}L{end_x:.1f},{end_y:.1f}L{end_x - 8:.1f},{end_y + 4:.1f}Z"
    label = f"{edge.producer} → {edge.consumer}" + (f" [{edge.parameter}]" if edge.parameter else "")
    title = f"{label}: {edge.evidence or edge.kind}, confidence {edge.confidence:.2f}, {edge.verdict or 'not tried'}"
    return (
        f'<g class="link"><title>{escape(title)}</title><path class="{" ".join(classes)}" d="{path}"/>'
        f'<path class="head" d="{head}"/></g>'
    )


def _legend_svg(top: float) -> str:
    y = top + 20
    items = [
        ('<rect class="box lookup" x="{x}" y="{b}" width="22" height="13" rx="4"/>', "lookup"),
        ('<rect class="box action" x="{x}" y="{b}" width="22" height="13" rx="4"/>', "action"),
        ('<path class="edge proved" d="M{x},{y}h22"/>', "proved by running"),
        ('<path class="edge" d="M{x},{y}h22"/>', "inferred"),
        ('<path class="edge optional" d="M{x},{y}h22"/>', "optional"),
        ('<path class="edge semantic" d="M{x},{y}h22"/>', "must come after"),
    ]
    parts, x = [], float(_MARGIN)
    for shape, text in items:
        parts.append(shape.format(x=f"{x:.0f}", y=f"{y - 4:.0f}", b=f"{y - 11:.0f}"))
        parts.append(f'<text class="note" x="{x + 28:.0f}" y="{y:.0f}">{text}</text>')
        x += 28 + len(text) * 6.2 + 20
    return "<g>" + "".join(parts) + "</g>"
