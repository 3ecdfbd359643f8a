from __future__ import annotations

import dataclasses
import json

import pytest

from toolverse_jax.errors import TaskError
from toolverse_jax.gust.dataset import (
    read_tasks,
    split_environments,
    split_tasks,
    task_from_json,
    task_to_json,
    verify_checksums,
    write_checksums,
    write_tasks,
)
from toolverse_jax.types import Binding, GoldenCall, Task, TaskTurn


def _task(number: int = 0, environment: str = "tool_shed") -> Task:
    call = GoldenCall(
        tool="add_item",
        arguments={
            "title": "Größe \u2028 “8”",
            "shed_id": "shx1",
            "n": 1,
            "half": 0.5,
            "list": [1, None, {"a": True}],
        },
        bindings={
            "shed_id": Binding(source="ref", turn=0, call=1, path=("sheds", 2, "id")),
            "title": Binding(source="user"),
        },
        match={"title": "text"},
    )
    turn = TaskTurn(
        user="Put it there.", golden=(call,), any_of=((call, call),), facts={"title": "x"}, answer="Done."
    )
    return Task(
        id=f"{environment}-{number}",
        environment=environment,
        seed=7,
        turns=(turn, TaskTurn(user="Thanks.", golden=())),
        final_state_hash="ab",
        graph_id="g0",
        difficulty={"calls": 2.0},
        provenance={"seed": 3},
    )


def test_tasks_come_back_as_they_were_written(tmp_path):
    tasks = [_task(n) for n in range(3)]
    path = tmp_path / "new" / "tasks.jsonl"
    write_tasks(path, tasks)
    assert read_tasks(path, environments={"tool_shed"}) == tasks
    assert task_from_json(json.loads(json.dumps(task_to_json(tasks[0])))) == tasks[0]
    assert [p.name for p in path.parent.iterdir()] == ["tasks.jsonl"]


def test_the_bytes_are_the_same_for_the_same_tasks(tmp_path):
    first, second = tmp_path / "a", tmp_path / "b"
    write_tasks(first, [_task()])
    write_tasks(second, read_tasks(first))
    assert first.read_bytes() == second.read_bytes()
    task = _task()
    call = task.turns[0].golden[0]
    other_order = dataclasses.replace(
        call, arguments={k: call.arguments[k] for k in reversed(list(call.arguments))}
    )
    turn = dataclasses.replace(task.turns[0], golden=(other_order,))
    write_tasks(second, [dataclasses.replace(task, turns=(turn, task.turns[1]))])
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes().endswith(b"}\n") and "Größe".encode() in first.read_bytes()
    write_tasks(first, [])
    assert first.read_bytes() == b"" and read_tasks(first) == []


def test_a_value_json_cannot_hold_is_refused_and_the_old_file_stays(tmp_path):
    path = tmp_path / "t.jsonl"
    write_tasks(path, [_task()])
    before = path.read_bytes()
    bad = Task(
        id="bad", environment="e", seed=0, turns=(), final_state_hash="", difficulty={"x": float("nan")}
    )
    with pytest.raises(TaskError, match="'bad'"):
        write_tasks(path, [_task(), bad])
    assert path.read_bytes() == before and len(list(tmp_path.iterdir())) == 1


def _line(**changes) -> bytes:
    data = task_to_json(_task(1)) | changes
    return json.dumps({k: v for k, v in data.items() if v is not ...}).encode()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (_line()[:80], "not a whole JSON object"),
        (b"", "not a whole JSON object"),
        (b"[1, 2]", r"found \[1, 2\]"),
        (_line(version=2), "has version 2, this release reads version 1"),
        (_line(version=True), "has version True"),
        (_line(version=...), "has no version"),
        (_line(environment=...), "invalid at environment: found nothing"),
        (_line(environment=""), "names no environment"),
        (_line(environment="attic"), "needs environment 'attic'"),
        (_line(seed="7"), "invalid at seed: found '7'"),
        (_line(turns=[]), "has no turns"),
        (_line(turns=[{"user": "hi"}]), "invalid at turns.0.golden: found nothing"),
        (
            _line(turns=[{"user": "hi", "golden": [{"tool": "t", "arguments": {}, "argument": 1}]}]),
            "'argument'",
        ),
        (_line(colour="red"), "'colour'"),
        (_line(id="tool_shed-0"), "was used in line 1"),
    ],
)
def test_a_bad_line_is_refused_with_file_and_line(tmp_path, line, found):
    path = tmp_path / "tasks.jsonl"
    path.write_bytes(json.dumps(task_to_json(_task(0))).encode() + b"\n" + line + b"\n" + _line(id="last"))
    with pytest.raises(TaskError, match=found) as caught:
        read_tasks(path, environments={"tool_shed"})
    assert str(caught.value).startswith(f"{path}, line 2: ") and "\n" not in str(caught.value)


def test_a_file_that_is_missing_or_not_text_is_refused(tmp_path):
    with pytest.raises(TaskError, match="does not exist"):
        read_tasks(tmp_path / "none.jsonl")
    (tmp_path / "b.jsonl").write_bytes(b"\xff\xfe")
    with pytest.raises(TaskError, match="UTF-8"):
        read_tasks(tmp_path / "b.jsonl")


def test_checksums_notice_a_changed_and_a_lost_file(tmp_path):
    (tmp_path / "a.jsonl").write_text("one\n")
    (tmp_path / "b.jsonl").write_text("two\n")
    write_checksums(tmp_path, ["b.jsonl", "a.jsonl"])
    assert verify_checksums(tmp_path) == ("a.jsonl", "b.jsonl")
    (tmp_path / "a.jsonl").write_text("One\n")
    with pytest.raises(TaskError, match=r"a\.jsonl has SHA-256"):
        verify_checksums(tmp_path)
    (tmp_path / "a.jsonl").unlink()
    with pytest.raises(TaskError, match="does not exist"):
        verify_checksums(tmp_path)
    (tmp_path / "SHA256SUMS").write_text("nonsense\n")
    with pytest.raises(TaskError, match="line 1"):
        verify_checksums(tmp_path)


def test_environments_are_split_whole_and_the_same_way_each_time():
    names = [f"env{n}" for n in range(20)]
    split = split_environments(names, eval_fraction=0.25, seed=3)
    assert len(split["eval"]) == 5 and sorted(split["eval"] + split["train"]) == sorted(names)
    assert split == split_environments(reversed(names), eval_fraction=0.25, seed=3)
    assert split != split_environments(names, eval_fraction=0.25, seed=4)
    tasks = [_task(n, name) for name in names for n in range(2)]
    by_side = split_tasks(tasks, split["eval"])
    assert len(by_side["eval"]) == 10 and {t.environment for t in by_side["eval"]} == set(split["eval"])
