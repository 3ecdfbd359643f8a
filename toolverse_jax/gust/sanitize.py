"""Makes a tool dependency graph acyclic (ToolVerse B.2) and says what it removed and why."""

from __future__ import annotations

import dataclasses

from toolverse_jax.gust.graph import Edge, ToolDependencyGraph


@dataclasses.dataclass(frozen=True, kw_only=True)
class Removal:
    """An edge that sanitising took out."""

    edge: Edge
    reason: str


def sanitize(graph: ToolDependencyGraph) -> tuple[ToolDependencyGraph, tuple[Removal, ...]]:
    """Return the graph as a directed acyclic graph, and the log of removals.

    In this order: self loops go; of parallel edges for the same parameter the most confident stays, and
    a semantic edge beside a parameter edge of the same pair goes; then, while there is a cycle, its
    lowest-priority edge goes. Priority: parameter before semantic edges, then confidence; of equals the
    edge goes whose removal newly unlocks most tools, then the first by name.

    The result does not depend on the order of the input's edges.
    """
    removals: list[Removal] = []
    edges = _without_loops(sorted(graph.edges, key=_total_order), removals)
    edges = _collapse(edges, removals)
    while cycle := _find_cycle(graph.nodes, edges):
        pairs = set(cycle)
        candidates = [edge for edge in edges if (edge.producer, edge.consumer) in pairs]
        unlocked = len(_unlockable(graph.nodes, edges))
        worst = min(
            candidates,
            key=lambda edge: (
                edge.kind == "parameter",
                edge.confidence,
                unlocked - len(_unlockable(graph.nodes, [e for e in edges if e is not edge])),
                (edge.producer, edge.consumer, edge.parameter or ""),
            ),
        )
        edges.remove(worst)
        path = " -> ".join([producer for producer, _ in cycle] + [cycle[0][0]])
        removals.append(Removal(edge=worst, reason=f"lowest priority in the cycle {path}"))
    return graph.with_edges(edges), tuple(removals)


def _total_order(edge: Edge) -> tuple:
    return (*edge.key, -edge.confidence, edge.output, edge.evidence, edge.verdict or "", not edge.required)


def _without_loops(edges: list[Edge], removals: list[Removal]) -> list[Edge]:
    kept = []
    for edge in edges:
        if edge.producer == edge.consumer:
            removals.append(Removal(edge=edge, reason="a tool cannot depend on itself"))
        else:
            kept.append(edge)
    return kept


def _collapse(edges: list[Edge], removals: list[Removal]) -> list[Edge]:
    best: dict[tuple[str, str, str, str], Edge] = {}
    for edge in edges:
        # Sorted by confidence within a key, so the first one seen is the one that stays.
        if edge.key in best:
            removals.append(Removal(edge=edge, reason="parallel to a more confident edge"))
        else:
            best[edge.key] = edge
    pairs = {(edge.producer, edge.consumer) for edge in best.values() if edge.kind == "parameter"}
    kept = []
    for edge in best.values():
        if edge.kind == "semantic" and (edge.producer, edge.consumer) in pairs:
            removals.append(Removal(edge=edge, reason="implied by a parameter edge of the same tools"))
        else:
            kept.append(edge)
    return kept


def _find_cycle(nodes: tuple[str, ...], edges: list[Edge]) -> list[tuple[str, str]]:
    """Return the pairs of one cycle in order, or nothing."""
    import networkx

    digraph = networkx.DiGraph()
    digraph.add_nodes_from(nodes)
    digraph.add_edges_from((edge.producer, edge.consumer) for edge in edges)
    try:
        return [(pair[0], pair[1]) for pair in networkx.find_cycle(digraph)]
    except networkx.NetworkXNoCycle:
        return []


def _unlockable(nodes: tuple[str, ...], edges: list[Edge]) -> set[str]:
    """Return the tools that a topological traversal reaches when every incoming edge counts."""
    waiting = {tool: 0 for tool in nodes}
    successors: dict[str, list[str]] = {tool: [] for tool in nodes}
    for edge in edges:
        waiting[edge.consumer] += 1
        successors[edge.producer].append(edge.consumer)
    ready = [tool for tool in nodes if waiting[tool] == 0]
    reached: set[str] = set()
    while ready:
        tool = ready.pop()
        reached.add(tool)
        for successor in successors[tool]:
            waiting[successor] -= 1
            if waiting[successor] == 0:
                ready.append(successor)
    return reached
