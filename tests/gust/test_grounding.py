from __future__ import annotations

import pytest

from toolverse_jax.environment import Environment, EnvSpec, Session, load_environment
from toolverse_jax.gust import ToolDependencyGraph, infer_graph, sample_stages, sanitize
from toolverse_jax.gust.dataflow import changes_state
from toolverse_jax.gust.grounding import ground
from toolverse_jax.gust.knowledge import call_key
from toolverse_jax.gust.trace import GroundedCall, GroundedTrace, Reference
from toolverse_jax.paths import envs_dir

NAMES = ("bicycle_workshop", "marina_berths", "seed_library", "theatre_props")


@pytest.fixture(scope="module", params=NAMES)
def traces(request: pytest.FixtureRequest) -> tuple[Environment, list[GroundedTrace]]:
    """Traces of one environment, thirty seeds each."""
    environment = load_environment(envs_dir() / request.param)
    graphs = [sanitize(infer_graph(environment.spec, variant=v))[0] for v in range(3)]
    made = []
    for seed in range(30):
        stages = sample_stages(graphs[seed % 3], seed, batch_size=2, min_stages=3, max_stages=5)
        trace = ground(environment, graphs[seed % 3], stages, seed)
        assert trace is not None
        made.append(trace)
    return environment, made


def _marina() -> tuple[Environment, ToolDependencyGraph]:
    environment = load_environment(envs_dir() / "marina_berths")
    return environment, sanitize(infer_graph(environment.spec))[0]


def _calls(trace: GroundedTrace) -> list[tuple[int, int, GroundedCall]]:
    return [(t, i, call) for t, turn in enumerate(trace.turns) for i, call in enumerate(turn.calls)]


def test_lookups_are_put_before_the_goal_that_needs_them() -> None:
    environment, graph = _marina()
    trace = ground(environment, graph, [["book_stay"]], 3)
    assert trace is not None
    assert [call.tool for call in trace.turns[0].calls] == ["list_piers", "list_berths", "book_stay"]


def test_a_chain_that_is_too_long_for_a_turn_is_dropped_with_a_reason() -> None:
    environment, graph = _marina()
    trace = ground(environment, graph, [["cancel_stay"]], 3, min_turns=0)
    assert trace is not None and trace.turns == ()
    assert trace.dropped == (("cancel_stay", "too_many_calls"),)


def test_what_was_looked_up_is_not_looked_up_again() -> None:
    environment, graph = _marina()
    trace = ground(environment, graph, [["add_berth"], ["add_berth"], ["list_berths"]], 1)
    assert trace is not None
    assert [call.tool for _, _, call in _calls(trace)].count("list_piers") == 1


def test_too_short_a_trace_is_none() -> None:
    environment, graph = _marina()
    assert ground(environment, graph, [["add_pier"]], 1, min_turns=2) is None


def test_golden_calls_succeed_and_reach_the_recorded_state(traces) -> None:
    environment, made = traces
    for trace in made:
        session = environment.session(trace.seed)
        for _, _, call in _calls(trace):
            result = session.call(call.tool, call.arguments)
            assert not result.is_error and result.value == call.result
        assert session.state_hash() == trace.final_state_hash


def test_bindings_lead_to_the_arguments_and_only_to_earlier_calls(traces) -> None:
    for trace in traces[1]:
        results = {(t, i): call.result for t, i, call in _calls(trace)}
        for turn, index, call in _calls(trace):
            assert call.bindings.keys() == call.arguments.keys()
            for parameter, binding in call.bindings.items():
                if binding.source == "user":
                    assert call.said[parameter] == call.arguments[parameter]
                    continue
                assert binding.turn is not None and binding.call is not None
                assert (binding.turn, binding.call) < (turn, index)
                value = results[(binding.turn, binding.call)]
                for step in binding.path:
                    value = value[step]
                assert value == call.arguments[parameter]


def test_every_lookup_is_forced(traces) -> None:
    for trace in traces[1]:
        calls = _calls(trace)
        used = {(b.turn, b.call) for _, _, call in calls for b in call.bindings.values()}
        keys = [call_key(call.tool, call.arguments) for _, _, call in calls]
        reads = [key for key, (_, _, call) in zip(keys, calls, strict=True) if call.ask or not call.goal]
        assert len(reads) == len(set(reads))
        for turn, index, call in calls:
            assert call.goal or (turn, index) in used


def test_turns_hold_one_to_three_calls_and_no_two_new_rows_of_one_entity(traces) -> None:
    environment, made = traces
    verbs = {op.tool: (op.verb, op.entity) for op in environment.spec.operations}
    for trace in made:
        for turn in trace.turns:
            assert 1 <= len(turn.calls) <= 3
            created = [verbs[call.tool][1] for call in turn.calls if verbs[call.tool][0] == "create"]
            assert len(created) == len(set(created))


def test_new_names_do_not_collide_with_rows(traces) -> None:
    environment, made = traces
    operations = {op.tool: op for op in environment.spec.operations}
    for trace in made:
        session = environment.session(trace.seed)
        for _, _, call in _calls(trace):
            operation = operations[call.tool]
            if operation.verb == "create" and operation.entity:
                label = environment.spec.entity(operation.entity).label_field
                names = [v for p, v in call.said.items() if operation.args[p].field == label]
                assert not _labels(environment, session).intersection(names)
            session.call(call.tool, call.arguments)


def _labels(environment: Environment, session: Session) -> set[object]:
    entities = [entity for entity in environment.spec.entities if entity.label_field]
    return {row[entity.label_field or ""] for entity in entities for row in session.rows(entity.name)}


def test_references_single_out_one_row_at_that_moment(traces) -> None:
    environment, made = traces
    for trace in made:
        session = environment.session(trace.seed)
        for _, _, call in _calls(trace):
            if call.goal:
                for reference in call.references.values():
                    _check_reference(environment, session, reference)
            session.call(call.tool, call.arguments)


def _check_reference(environment: Environment, session: Session, reference: Reference) -> None:
    if reference.mention != "described":
        return
    spec = environment.spec.entity(reference.entity)
    rows = session.rows(reference.entity)
    if reference.parent is not None:
        field = next(f.name for f in spec.fields if f.ref == reference.parent.entity)
        rows = [row for row in rows if row[field] == reference.parent.id]
        _check_reference(environment, session, reference.parent)
    matching = [row for row in rows if all(row[name] == value for name, value in reference.attributes)]
    assert [row[spec.id_name] for row in matching] == [reference.id]


def test_the_same_seed_gives_the_same_trace() -> None:
    environment, graph = _marina()
    stages = sample_stages(graph, 5, batch_size=2)
    assert ground(environment, graph, stages, 9) == ground(environment, graph, stages, 9)
    assert ground(environment, graph, stages, 9) != ground(environment, graph, stages, 10)


def test_optional_arguments_are_absent_unless_said(shed_spec: EnvSpec) -> None:
    environment = Environment(shed_spec)
    graph = sanitize(infer_graph(shed_spec))[0]
    for seed in range(20):
        trace = ground(
            environment, graph, [["list_items", "get_item"], ["lend_item"], ["list_neighbours"]], seed
        )
        assert trace is not None
        for _, _, call in _calls(trace):
            assert set(call.arguments) == set(call.said) | set(call.references)


def test_reads_of_the_shed_change_nothing(shed_spec: EnvSpec) -> None:
    writes = {op.tool: changes_state(op) for op in shed_spec.operations}
    environment = Environment(shed_spec)
    graph = sanitize(infer_graph(shed_spec))[0]
    trace = ground(environment, graph, [["list_sheds"], ["add_item"], ["note_item"]], 2)
    assert trace is not None
    for _, _, call in _calls(trace):
        assert writes[call.tool] == (call.goal and call.ask is None)


def _rows(reference: Reference) -> list[tuple[str, object]]:
    above = _rows(reference.parent) if reference.parent else []
    return [(reference.entity, reference.id), *above]


def test_a_pronoun_stands_only_for_the_one_row_of_its_kind_just_spoken_of(traces) -> None:
    environment, made = traces
    operations = {op.tool: op for op in environment.spec.operations}
    pronouns = 0
    for trace in made:
        spoken: list[set[tuple[str, object]]] = [set()]
        for turn in trace.turns:
            here: set[tuple[str, object]] = set()
            for call in turn.goals:
                operation = operations[call.tool]
                references = [
                    *call.references.values(),
                    *([call.ask.row] if call.ask and call.ask.row else []),
                ]
                for reference in references:
                    if reference.mention != "described":
                        pronouns += 1
                        same_kind = [row for row in here or spoken[-1] if row[0] == reference.entity]
                        same_kind = same_kind or [row for row in spoken[-1] if row[0] == reference.entity]
                        assert same_kind == [(reference.entity, reference.id)]
                for reference in references:
                    here.update(_rows(reference))
                if operation.output.shape == "record" and operation.entity:
                    here.add(
                        (operation.entity, call.result[environment.spec.entity(operation.entity).id_name])
                    )
            spoken.append(here)
    assert pronouns > 10


def test_an_alternative_never_makes_a_later_golden_lookup_needless(traces) -> None:
    for trace in traces[1]:
        for number, turn in enumerate(trace.turns):
            later = {call.tool for other in trace.turns[number + 1 :] for call in other.calls}
            for call in turn.calls:
                for other in call.alternatives:
                    assert not later.intersection((call.tool, other.tool))
