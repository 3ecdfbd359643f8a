"""The tool dependency graph (TDG): which tool's output another tool needs, and which must come first.

Two kinds of edges, as in ToolVerse section 3.2.1. A `parameter` edge says that the output of the
producer holds a value for one parameter of the consumer. A `semantic` edge says that the consumer
makes sense only after the producer, for example because a guard reads state the producer writes.

Departure from the paper: the paper counts every incoming edge (AND). Real toolsets offer several
producers of one value (list, search or create), so edges of one `(consumer, parameter)` pair form a
`Slot`, and one producer of a slot is enough (OR). `sampler` reads the graph either way.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal

from toolverse_jax.errors import ToolverseError
from toolverse_jax.types import JSON

if TYPE_CHECKING:
    import networkx

GRAPH_VERSION = 1

EdgeKind = Literal["parameter", "semantic"]
Verdict = Literal["proved", "weak", "refuted"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Edge:
    """One dependency between two tools."""

    producer: str
    consumer: str
    parameter: str | None = None
    """Parameter of the consumer that the value is for; None for semantic edges."""
    kind: EdgeKind = "parameter"
    confidence: float = 1.0
    """Strength of the evidence, in [0, 1]."""
    evidence: str = ""
    """Where the edge comes from, for people."""
    verdict: Verdict | None = None
    """What running the tools showed; None where it was not tried."""
    output: str = ""
    """Member of the producer's result (or of each of its rows) that holds the value; empty if unknown."""
    required: bool = True
    """False where the consumer can also be called without the edge: an optional parameter, or a value a user knows."""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Sorting key: consumer, parameter, kind, producer."""
        return (self.consumer, self.parameter or "", self.kind, self.producer)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Slot:
    """Alternative producers of one value: any one of them satisfies the consumer."""

    consumer: str
    parameter: str | None
    """None: the slot is a semantic one."""
    edges: tuple[Edge, ...]
    required: bool

    @property
    def producers(self) -> tuple[str, ...]:
        return tuple(edge.producer for edge in self.edges)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ToolTraits:
    """What the sampler must know about a tool besides its edges."""

    changes_state: bool = True
    """True for an action; False for a lookup."""
    repeatable: bool = True
    """Calling it a second time with other arguments can be of use."""
    needs: tuple[str, ...] = ()
    """Parameters whose value only another tool can give; a need without a producer locks the tool."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ordering:
    """An anti-dependency: where both tools are called, `earlier` is never called after `later`.

    It does not unlock anything; it keeps a trace from using what it has destroyed.
    """

    earlier: str
    later: str
    reason: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ToolDependencyGraph:
    """A tool dependency graph of one environment."""

    environment: str
    graph_id: str
    nodes: tuple[str, ...]
    """Tool names in the order of the environment."""
    edges: tuple[Edge, ...]
    traits: Mapping[str, ToolTraits] = dataclasses.field(default_factory=dict)
    """By tool; a tool that is absent has the default traits."""
    orderings: tuple[Ordering, ...] = ()

    def __post_init__(self) -> None:
        known = set(self.nodes)
        if len(known) != len(self.nodes):
            raise ValueError(f"graph {self.graph_id!r} lists a tool twice")
        ends = [(e.producer, e.consumer) for e in self.edges] + [(o.earlier, o.later) for o in self.orderings]
        for end in (name for pair in ends for name in pair):
            if end not in known:
                raise ValueError(
                    f"graph {self.graph_id!r} has an edge at {end!r}, which is not one of its tools"
                )

    def trait(self, tool: str) -> ToolTraits:
        """Return the traits of a tool."""
        return self.traits.get(tool, ToolTraits())

    def incoming(self, tool: str) -> tuple[Edge, ...]:
        """Return the edges whose consumer is `tool`."""
        return tuple(edge for edge in self.edges if edge.consumer == tool)

    def outgoing(self, tool: str) -> tuple[Edge, ...]:
        """Return the edges whose producer is `tool`."""
        return tuple(edge for edge in self.edges if edge.producer == tool)

    def slots(self, tool: str) -> tuple[Slot, ...]:
        """Return the slots of a tool: its parameters in order of first edge, then at most one semantic slot.

        A parameter that the tool needs and no edge produces gives a required slot without edges.
        """
        edges: dict[str | None, list[Edge]] = {name: [] for name in self.trait(tool).needs}
        for edge in sorted(self.incoming(tool), key=lambda e: e.kind == "semantic"):
            edges.setdefault(edge.parameter, []).append(edge)
        needs = self.trait(tool).needs
        return tuple(
            Slot(
                consumer=tool,
                parameter=parameter,
                edges=tuple(group),
                required=parameter in needs or any(edge.required for edge in group),
            )
            for parameter, group in edges.items()
        )

    def locked(self) -> tuple[str, ...]:
        """Return the tools that no sequence of calls can unlock, because a required slot is never satisfied."""
        unlocked: set[str] = set()
        slots = {tool: self.slots(tool) for tool in self.nodes}
        while True:
            fresh = [
                tool
                for tool in self.nodes
                if tool not in unlocked
                and all(unlocked.intersection(s.producers) for s in slots[tool] if s.required)
            ]
            if not fresh:
                return tuple(tool for tool in self.nodes if tool not in unlocked)
            unlocked.update(fresh)

    def with_edges(self, edges: Iterable[Edge]) -> ToolDependencyGraph:
        """Return the same graph with other edges."""
        return dataclasses.replace(self, edges=tuple(edges))

    def to_networkx(self) -> networkx.MultiDiGraph:
        """Return a `networkx.MultiDiGraph`; edge keys are parameters, edge data the other members."""
        import networkx

        graph = networkx.MultiDiGraph(environment=self.environment, graph_id=self.graph_id)
        for tool in self.nodes:
            graph.add_node(tool, **dataclasses.asdict(self.trait(tool)))
        for edge in self.edges:
            data = dataclasses.asdict(edge)
            del data["producer"], data["consumer"]
            graph.add_edge(edge.producer, edge.consumer, **data)
        graph.graph["orderings"] = tuple((o.earlier, o.later, o.reason) for o in self.orderings)
        return graph

    @classmethod
    def from_networkx(cls, graph: networkx.MultiDiGraph | networkx.DiGraph) -> ToolDependencyGraph:
        """Read a networkx directed graph; members that an edge or node lacks take their defaults."""
        edge_members = {field.name for field in dataclasses.fields(Edge)}
        trait_members = {field.name for field in dataclasses.fields(ToolTraits)}
        return cls(
            environment=graph.graph.get("environment", ""),
            graph_id=graph.graph.get("graph_id", ""),
            nodes=tuple(graph.nodes),
            edges=tuple(
                Edge(producer=u, consumer=v, **{k: x for k, x in data.items() if k in edge_members})
                for u, v, data in graph.edges(data=True)
            ),
            traits={
                tool: ToolTraits(**{k: x for k, x in data.items() if k in trait_members})
                for tool, data in graph.nodes(data=True)
            },
            orderings=tuple(
                Ordering(earlier=earlier, later=later, reason=reason)
                for earlier, later, reason in graph.graph.get("orderings", ())
            ),
        )

    def to_json(self) -> dict[str, JSON]:
        """Return the graph as a JSON object."""
        return {
            "version": GRAPH_VERSION,
            "environment": self.environment,
            "graph_id": self.graph_id,
            "nodes": list(self.nodes),
            "edges": [dataclasses.asdict(edge) for edge in self.edges],
            "traits": {
                tool: dataclasses.asdict(traits) | {"needs": list(traits.needs)}
                for tool, traits in self.traits.items()
            },
            "orderings": [dataclasses.asdict(ordering) for ordering in self.orderings],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, JSON]) -> ToolDependencyGraph:
        """Read what `to_json` wrote.

        Raises:
            ToolverseError: another version, or members that are missing, unknown or inconsistent.
        """
        if data.get("version") != GRAPH_VERSION:
            raise ToolverseError(
                f"tool dependency graph has version {data.get('version')!r}, this release reads {GRAPH_VERSION}; infer it again"
            )
        try:
            return cls(
                environment=data["environment"],
                graph_id=data["graph_id"],
                nodes=tuple(data["nodes"]),
                edges=tuple(Edge(**edge) for edge in data["edges"]),
                traits={
                    tool: ToolTraits(**(traits | {"needs": tuple(traits["needs"])}))
                    for tool, traits in data["traits"].items()
                },
                orderings=tuple(Ordering(**ordering) for ordering in data["orderings"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ToolverseError(
                f"tool dependency graph {data.get('graph_id')!r} is invalid ({error}); infer it again"
            ) from error
