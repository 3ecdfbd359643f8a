from __future__ import annotations

import itertools
import random

import pytest

from toolverse_jax.gust.graph import Edge, Ordering, ToolDependencyGraph, ToolTraits
from toolverse_jax.gust.inference import infer_graph
from toolverse_jax.gust.plan import CoverageLedger
from toolverse_jax.gust.sampler import sample_stages, sample_traces, stage_faults
from toolverse_jax.gust.sanitize import sanitize


def _random_dag(seed: int) -> ToolDependencyGraph:
    rng = random.Random(seed)
    nodes = [f"t{n}" for n in range(rng.randint(1, 14))]
    rng.shuffle(nodes)
    edges = [
        Edge(producer=nodes[i], consumer=nodes[j], parameter=rng.choice("xy"))
        for j in range(len(nodes))
        for i in range(j)
        if rng.random() < 0.25
    ]
    return ToolDependencyGraph(
        environment="e", graph_id=f"g{seed}", nodes=tuple(sorted(nodes)), edges=tuple(edges)
    )


def _reference(graph: ToolDependencyGraph, batch_size: int, seed: int) -> list[list[str]]:
    """Algorithm 1, line by line, on an adjacency matrix."""
    rng = random.Random(seed)
    names = graph.nodes
    adjacent = [[any((e.producer, e.consumer) == (u, v) for e in graph.edges) for v in names] for u in names]
    degree = [sum(row[v] for row in adjacent) for v in range(len(names))]
    queue = [v for v in range(len(names)) if degree[v] == 0]
    trajectory = []
    while queue:
        k = min(len(queue), batch_size)
        sampled = rng.sample(queue, k)
        for u in sampled:
            queue.remove(u)
        trajectory.append([names[u] for u in sampled])
        newly = []
        for u in sampled:
            # Successors in the order in which the graph lists its edges.
            for v in dict.fromkeys(names.index(e.consumer) for e in graph.edges if e.producer == names[u]):
                degree[v] -= 1
                if degree[v] == 0:
                    newly.append(v)
        queue += newly
    return trajectory


def test_paper_mode_is_algorithm_1():
    for seed in range(200):
        graph = _random_dag(seed)
        for batch_size in (1, 3):
            stages = sample_stages(graph, seed, mode="paper", batch_size=batch_size)
            assert stages == _reference(graph, batch_size, seed)
            assert sorted(tool for stage in stages for tool in stage) == sorted(graph.nodes)


def test_paper_mode_refuses_a_cycle_instead_of_losing_tools():
    edges = (Edge(producer="a", consumer="b"), Edge(producer="b", consumer="a"))
    graph = ToolDependencyGraph(environment="e", graph_id="g", nodes=("a", "b"), edges=edges)
    for mode in ("paper", "or"):
        with pytest.raises(ValueError, match=r"cycle|locked"):
            sample_stages(graph, 0, mode=mode, goals=("a",))


@pytest.fixture(scope="module", params=range(3))
def shed_graph(request, shed_spec) -> ToolDependencyGraph:
    return sanitize(infer_graph(shed_spec, variant=request.param))[0]


def test_every_call_finds_its_values_in_earlier_calls(shed_graph):
    for stages in sample_traces(shed_graph, 60, seed=1):
        seen: set[str] = set()
        for tool in [tool for stage in stages for tool in stage]:
            for need in shed_graph.trait(tool).needs:
                givers = {e.producer for e in shed_graph.edges if (e.consumer, e.parameter) == (tool, need)}
                assert givers & seen, (stages, tool, need)
            seen.add(tool)


def test_nothing_is_used_after_it_was_deleted(shed_graph):
    users = {"get_item", "note_item", "lend_item", "return_item", "scrap_item"}
    deletions = 0
    for stages in sample_traces(shed_graph, 60, seed=2):
        calls = [tool for stage in stages for tool in stage]
        if "delete_item" in calls:
            deletions += 1
            assert not users & set(calls[calls.index("delete_item") :])
    assert deletions > 5


def test_traces_keep_the_bounds_and_no_stage_is_a_mere_repetition(shed_graph):
    for stages in sample_traces(shed_graph, 60, seed=3, min_stages=3, max_stages=5, max_calls=3):
        assert 3 <= len(stages) <= 5
        assert all(1 <= len(stage) <= 3 and len(set(stage)) == len(stage) for stage in stages)


def test_forty_traces_cover_the_tools(shed_graph):
    for seed in range(3):
        ledger = CoverageLedger()
        sample_traces(shed_graph, 40, seed, ledger=ledger, max_stages=5)
        assert ledger.coverage(shed_graph.nodes) >= 0.95
        counts = [ledger.counts[tool] for tool in shed_graph.nodes]
        assert min(counts) >= 3


def test_the_ledger_prefers_tools_that_were_used_less(shed_graph):
    ledger = CoverageLedger()
    ledger.record([[tool for tool in shed_graph.nodes if tool != "send_message"]] * 200)
    used = [sample_stages(shed_graph, seed, ledger=ledger) for seed in range(5)]
    assert all(any("send_message" in stage for stage in stages) for stages in used[:1])


def test_a_seed_gives_one_trace_and_seeds_differ(shed_graph):
    traces = [sample_stages(shed_graph, seed) for seed in range(20)]
    assert traces == [sample_stages(shed_graph, seed) for seed in range(20)]
    assert len({str(stages) for stages in traces}) > 15
    assert sample_traces(shed_graph, 5, seed=9) == sample_traces(shed_graph, 5, seed=9)


def test_a_lookup_that_only_serves_shares_the_stage_of_what_it_serves():
    graph = ToolDependencyGraph(
        environment="e",
        graph_id="g",
        nodes=("find", "open", "write", "close"),
        edges=tuple(Edge(producer="find", consumer=c, parameter="id") for c in ("open", "write", "close")),
        traits={"find": ToolTraits(changes_state=False)}
        | {c: ToolTraits(needs=("id",)) for c in ("open", "write", "close")},
    )
    alone = 0
    for seed in range(40):
        stages = sample_stages(graph, seed, goals=("open", "write", "close"), max_stages=3)
        assert stage_faults(graph, stages) == ()
        alone += stages[0] == ["find"]
    # `find` stands alone only where it was drawn as a goal of its own.
    assert alone < 10


def test_a_chain_of_lookups_too_long_for_a_stage_begins_one_stage_earlier():
    nodes = ("l1", "l2", "l3", "l4", "act")
    graph = ToolDependencyGraph(
        environment="e",
        graph_id="g",
        nodes=nodes,
        edges=tuple(Edge(producer=a, consumer=b, parameter="id") for a, b in itertools.pairwise(nodes)),
        traits={n: ToolTraits(changes_state=n == "act", needs=("id",) if n != "l1" else ()) for n in nodes},
    )
    for seed in range(20):
        stages = sample_stages(graph, seed, goals=("act",), min_stages=2, max_stages=4, max_calls=3)
        assert stage_faults(graph, stages) == () and max(map(len, stages)) <= 3
        assert any("act" in stage for stage in stages)


def test_few_tools_still_give_several_stages_by_revisits():
    graph = ToolDependencyGraph(
        environment="e",
        graph_id="g",
        nodes=("list", "make", "change"),
        edges=(
            Edge(producer="list", consumer="change", parameter="id"),
            Edge(producer="make", consumer="change", parameter="id"),
        ),
        traits={
            "list": ToolTraits(changes_state=False, repeatable=False),
            "change": ToolTraits(needs=("id",)),
        },
    )
    with_revisits = [sample_stages(graph, seed, min_stages=4, max_stages=5) for seed in range(20)]
    assert all(len(stages) >= 4 for stages in with_revisits)
    assert all(sum("list" in stage for stage in stages) <= 1 for stages in with_revisits)
    without = [sample_stages(graph, seed, min_stages=4, max_stages=5, revisits=False) for seed in range(20)]
    assert max(map(len, without)) <= 3


def test_a_locked_tool_never_appears_and_cannot_be_a_goal():
    graph = ToolDependencyGraph(
        environment="e",
        graph_id="g",
        nodes=("a", "b", "c"),
        edges=(Edge(producer="b", consumer="c", parameter="id"),),
        traits={"b": ToolTraits(needs=("secret",)), "c": ToolTraits(needs=("id",))},
    )
    assert {tool for seed in range(10) for stage in sample_stages(graph, seed) for tool in stage} == {"a"}
    with pytest.raises(ValueError, match="locked"):
        sample_stages(graph, 0, goals=("c",))
    with pytest.raises(ValueError, match="not a tool"):
        sample_stages(graph, 0, goals=("z",))


def test_faults_of_a_wrong_trace_are_named():
    graph = ToolDependencyGraph(
        environment="e",
        graph_id="g",
        nodes=("find", "use", "drop"),
        edges=tuple(Edge(producer="find", consumer=c, parameter="id") for c in ("use", "drop")),
        orderings=(Ordering(earlier="use", later="drop", reason="drop deletes what use uses"),),
    )
    assert stage_faults(graph, [["find", "use"], ["drop"]]) == ()
    assert "needs id" in stage_faults(graph, [["use"], ["find"]])[0]
    assert "after drop" in stage_faults(graph, [["find", "drop"], ["use"]])[0]


def test_bounds_out_of_range_are_refused(shed_graph):
    with pytest.raises(ValueError, match="bounds"):
        sample_stages(shed_graph, 0, min_stages=0)
    with pytest.raises(ValueError, match="bounds"):
        sample_stages(shed_graph, 0, min_stages=4, max_stages=3)
    with pytest.raises(ValueError, match="bounds"):
        sample_stages(shed_graph, 0, batch_size=0)
    with pytest.raises(ValueError, match="bounds"):
        sample_stages(shed_graph, 0, max_calls=0)
