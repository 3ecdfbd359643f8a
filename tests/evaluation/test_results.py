import dataclasses
import json

import numpy as np
import pytest

from toolverse_jax.errors import TaskError
from toolverse_jax.evaluation import EpisodeScore, compare, read_result, write_result


def test_a_result_survives_writing_and_reading(tmp_path, result_of):
    result = result_of("before", [(1, 0, 1), (0.0, 0.0)])
    write_result(tmp_path / "new" / "folder" / "r.json", result)
    assert read_result(tmp_path / "new" / "folder" / "r.json") == result


def test_the_same_result_gives_the_same_bytes_and_no_other_file(tmp_path, result_of):
    for name in ("a.json", "b.json"):
        write_result(tmp_path / name, result_of("x", [(1, 0)]))
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "b.json"]


def test_a_trajectory_becomes_a_score(rollout_of, task_of):
    trajectory = rollout_of(task_of(4), 0, (1, 0))
    score = EpisodeScore.of(trajectory)
    assert (score.task_id, score.environment, score.turn_rewards) == (
        "marina_berths/7/4",
        "marina_berths",
        (1.0, 0.0),
    )
    assert score.trace_score == 0.0
    assert score.turn_accuracy == 0.5
    assert not any(isinstance(reward, np.generic) for reward in score.turn_rewards)


def test_the_summary_holds_means_by_task_and_by_turn(result_of):
    # Trace scores 1, 0, 1; turn accuracies 1, 1/3, 1. Turn 3 exists in two tasks.
    summary = result_of("after", [(1, 1), (1, 0, 0), (1, 1, 1)]).summary("stratified")
    assert summary["trace_score"]["mean"] == pytest.approx(2 / 3)
    assert summary["turn_accuracy"]["mean"] == pytest.approx(7 / 9)
    assert summary["turn_accuracy_by_turn"] == pytest.approx([1, 2 / 3, 1 / 2])
    assert (summary["tasks"], summary["environments"], summary["failed_episodes"]) == (3, 2, 0)
    assert summary["calls_per_episode"] == {
        "tool_calls": 2,
        "tool_errors": 1,
        "parse_errors": 0,
        "extra_calls": 0,
    }
    json.dumps(summary)


def test_the_comparison_is_the_mean_change_over_the_same_tasks(result_of):
    before, after = result_of("b", [(0, 0), (1, 0), (1, 1)]), result_of("a", [(1, 1), (1, 0), (1, 1)])
    change = compare(before, after, "trace_score", "stratified")
    assert change.mean == pytest.approx(1 / 3)
    assert change.count == 3


def test_results_of_different_tasks_are_not_compared(result_of):
    before, after = result_of("one", [(0, 0), (1, 0)]), result_of("two", [(0, 0)])
    with pytest.raises(TaskError, match="'one' and 'two' are not of the same tasks; evaluate both on one"):
        compare(before, after, "trace_score", "stratified")
    other = dataclasses.replace(before.episodes[0], task_id="task/9")
    swapped = dataclasses.replace(before, episodes=(other, before.episodes[1]))
    with pytest.raises(TaskError, match="not of the same tasks"):
        compare(before, swapped, "trace_score", "clustered")


def test_a_missing_result_says_what_to_run(tmp_path):
    with pytest.raises(TaskError, match=r"none\.json does not exist; run `toolverse eval` first"):
        read_result(tmp_path / "none.json")


@pytest.mark.parametrize(
    "text",
    ["{", "[]", "7", '{"version": 2}', '{"version": 1}', '{"version": 1, "label": "x", "settings": {}}'],
    ids=["cut", "list", "number", "later", "empty", "no_episodes"],
)
def test_a_damaged_result_is_one_sentence_with_its_path(text, tmp_path):
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(TaskError) as caught:
        read_result(path)
    assert str(path) in str(caught.value)
    assert "evaluate again" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "damage",
    [
        {"turn_rewards": []},
        {"turn_rewards": ["right"]},
        {"turn_rewards": None},
        {"surprise": 1},
        {"stats": None},
    ],
    ids=["no_turns", "words", "null", "unknown", "no_stats"],
)
def test_a_damaged_episode_is_one_sentence_with_its_path(damage, tmp_path, result_of):
    path = tmp_path / "r.json"
    write_result(path, result_of("x", [(1, 0), (0, 1)]))
    tree = json.loads(path.read_text())
    tree["episodes"][1] |= damage
    path.write_text(json.dumps(tree))
    with pytest.raises(TaskError, match="episode 2") as caught:
        read_result(path)
    assert str(path) in str(caught.value)


def test_a_result_without_episodes_is_refused(tmp_path, result_of):
    path = tmp_path / "r.json"
    write_result(path, result_of("x", []))
    with pytest.raises(TaskError, match="holds no episode"):
        read_result(path)


def test_a_file_that_is_no_text_is_refused(tmp_path):
    (tmp_path / "r.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TaskError, match="evaluate again"):
        read_result(tmp_path / "r.json")
