from __future__ import annotations

import re

import pytest

from toolverse_jax.environment import Environment, EnvSpec, list_environments, load_environment
from toolverse_jax.errors import TaskError
from toolverse_jax.gust import infer_graph, sample_stages, sanitize
from toolverse_jax.gust.grounding import ground
from toolverse_jax.gust.instructions import message_faults, write_turns
from toolverse_jax.gust.phrases import count_words
from toolverse_jax.gust.text_checks import said_values
from toolverse_jax.gust.trace import GroundedTrace
from toolverse_jax.gust.wording import Wording
from toolverse_jax.paths import envs_dir
from toolverse_jax.types import TaskTurn

Written = list[tuple[GroundedTrace, list[TaskTurn]]]


@pytest.fixture(scope="module", params=list_environments(envs_dir()))
def written(request: pytest.FixtureRequest) -> tuple[Environment, Wording, Written]:
    """Twelve grounded traces of one environment with their messages."""
    environment = load_environment(envs_dir() / request.param)
    wording = Wording(environment.spec)
    graph = sanitize(infer_graph(environment.spec))[0]
    made: Written = []
    for seed in range(12):
        stages = sample_stages(graph, seed, batch_size=2, min_stages=3, max_stages=5)
        trace = ground(environment, graph, stages, seed, wording=wording)
        assert trace is not None
        try:
            made.append((trace, write_turns(environment, trace, seed, wording=wording)))
        except TaskError:
            continue
    assert len(made) >= 9
    return environment, wording, made


def test_no_identifier_tool_or_parameter_name_is_in_a_message(written) -> None:
    environment, _, made = written
    tools = [tool.name for tool in environment.tools]
    for trace, turns in made:
        text = " ".join(turn.user for turn in turns)
        words = set(re.findall(r"[\w-]+", text))
        assert not words.intersection(map(str, trace.identifiers))
        assert not words.intersection(tools)
        assert not re.search(r"\w_\w", text)


def test_every_value_and_every_described_row_can_be_read_from_the_message(written) -> None:
    _, wording, made = written
    for trace, turns in made:
        for grounded, turn in zip(trace.turns, turns, strict=True):
            assert message_faults(wording, grounded, turn.user, trace.identifiers) == []
            for value in said_values(grounded):
                if isinstance(value, str) and not re.match(r"\d{4}-", value):
                    assert value.replace("_", " ").casefold() in turn.user.casefold()


def test_a_message_that_hides_a_value_is_faulty(written) -> None:
    _, wording, made = written
    for trace, _ in made:
        for grounded in trace.turns:
            if said_values(grounded):
                assert message_faults(wording, grounded, "Please do something about it.", trace.identifiers)


def test_messages_are_short_sentences(written) -> None:
    for _, turns in written[2]:
        for turn in turns:
            assert count_words(turn.user) <= 32
            assert turn.user[0].isupper() or turn.user[0] in '"0123456789'
            assert turn.user[-1] in ".?"
            for sentence in re.split(r"(?<=[.?]) ", re.sub(r'"[^"]*"', '"X"', turn.user)):
                assert sentence[0].isupper() or sentence[0] in '"0123456789', turn.user


def test_answers_are_short_and_copy_what_was_asked(written) -> None:
    for trace, turns in written[2]:
        for grounded, turn in zip(trace.turns, turns, strict=True):
            asks = [call.ask for call in grounded.goals if call.ask]
            assert count_words(turn.answer) <= 12 * max(1, len(asks))
            for ask in asks:
                for value in ask.answer if ask.kind in ("labels", "value", "find") else ():
                    assert str(value) in turn.answer
            if not asks:
                assert turn.answer in ("Done.", "Done, it is added.", "Done, it is changed.")


def test_the_year_is_said_where_the_conversation_has_not_shown_it() -> None:
    environment = load_environment(envs_dir() / "marina_berths")
    graph = sanitize(infer_graph(environment.spec))[0]
    stages = [["list_berths"], ["book_stay"], ["book_stay"]]
    seen = 0
    for seed in range(40):
        trace = ground(environment, graph, stages, seed)
        if trace is None or [t.goals[-1].tool for t in trace.turns] != [
            "list_berths",
            "book_stay",
            "book_stay",
        ]:
            continue
        turns = write_turns(environment, trace, seed)
        assert "2031" in turns[1].user
        assert "2031" not in turns[2].user
        seen += 1
    assert seen >= 5


def test_one_trace_can_be_said_in_many_ways() -> None:
    environment = load_environment(envs_dir() / "marina_berths")
    graph = sanitize(infer_graph(environment.spec))[0]
    for stages in ([["add_berth"]], [["list_piers"]], [["list_berths"]], [["add_pier"]]):
        trace = ground(environment, graph, stages, 4)
        assert trace is not None
        said = {write_turns(environment, trace, seed)[0].user for seed in range(60)}
        assert len(said) >= 8, said


def test_the_same_seed_writes_the_same_words() -> None:
    environment = load_environment(envs_dir() / "seed_library")
    graph = sanitize(infer_graph(environment.spec))[0]
    trace = ground(environment, graph, sample_stages(graph, 3), 3)
    assert trace is not None
    assert write_turns(environment, trace, 5) == write_turns(environment, trace, 5)


def test_an_environment_of_another_style_is_put_into_words_too(shed_spec: EnvSpec) -> None:
    environment = Environment(shed_spec)
    graph = sanitize(infer_graph(shed_spec))[0]
    trace = ground(environment, graph, [["send_message"], ["add_item"], ["lend_item"]], 1)
    assert trace is not None
    turns = write_turns(environment, trace, 1)
    assert len(turns) == 3
    assert " to " in turns[0].user and "@" in turns[0].user
