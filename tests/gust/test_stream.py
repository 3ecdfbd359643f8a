from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter

import pytest

from toolverse_jax.errors import TaskError
from toolverse_jax.gust.stream import TaskStream
from toolverse_jax.types import Task


def _tasks(count: int) -> list[Task]:
    return [Task(id=f"t{n}", environment="e", seed=n, turns=(), final_state_hash="") for n in range(count)]


def _take(stream: TaskStream, count: int) -> list[int]:
    return [stream.next_index() for _ in range(count)]


def test_each_epoch_holds_every_task_once_in_another_order():
    stream = TaskStream(_tasks(11), seed=4)
    epochs = [_take(stream, 11) for _ in range(4)]
    assert all(sorted(epoch) == list(range(11)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 4
    assert stream.epoch == 4


def test_the_seed_decides_the_order():
    first, second, other = (TaskStream(_tasks(20), seed=seed) for seed in (1, 1, 2))
    order = _take(first, 50)
    assert order == _take(second, 50) != _take(other, 50)


@pytest.mark.parametrize("stopped", [0, 1, 6, 7, 19])
def test_a_stream_resumes_where_it_stopped(stopped):
    whole = _take(TaskStream(_tasks(7), seed=5, shard_index=1, shard_count=3), 40)
    stream = TaskStream(_tasks(7), seed=5, shard_index=1, shard_count=3)
    assert _take(stream, stopped) == whole[:stopped]
    state = json.loads(json.dumps(stream.get_state()))
    _take(stream, 3)  # what is read after the state was taken must not matter
    resumed = TaskStream(_tasks(7), seed=5, shard_index=1, shard_count=3)
    resumed.set_state(state)
    assert _take(resumed, 40 - stopped) == whole[stopped:]
    stream.set_state(state)
    assert _take(stream, 40 - stopped) == whole[stopped:]


@pytest.mark.parametrize(("count", "shards"), [(12, 3), (7, 2), (5, 4), (2, 3)])
def test_shards_are_disjoint_and_lose_nothing(count, shards):
    streams = [TaskStream(_tasks(count), seed=6, shard_index=i, shard_count=shards) for i in range(shards)]
    rounds = [[stream.next_index() for stream in streams] for _ in range(count * 2)]
    merged = [index for one_round in rounds for index in one_round]
    assert merged == _take(TaskStream(_tasks(count), seed=6), len(merged))
    assert Counter(merged) == {n: 2 * shards for n in range(count)}


def test_tasks_themselves_are_yielded():
    tasks = _tasks(5)
    assert sorted(next(stream).id for stream in [TaskStream(tasks, seed=0)] for _ in range(5)) == [
        t.id for t in tasks
    ]


def test_the_state_of_another_stream_is_refused():
    state = TaskStream(_tasks(5), seed=0).get_state()
    for other, name in (
        (TaskStream(_tasks(6), seed=0), "tasks"),
        (TaskStream(_tasks(5), seed=1), "seed"),
        (TaskStream(_tasks(5), seed=0, shard_count=2), "shard_count"),
    ):
        with pytest.raises(TaskError, match=name):
            other.set_state(state)
    with pytest.raises(TaskError, match="position"):
        TaskStream(_tasks(5), seed=0).set_state(state | {"position": -1})


def test_a_stream_without_tasks_or_with_a_wrong_shard_is_refused():
    with pytest.raises(ValueError, match="at least one task"):
        TaskStream([], seed=0)
    with pytest.raises(ValueError, match="shard_index"):
        TaskStream(_tasks(2), seed=0, shard_index=2, shard_count=2)


def test_importing_gust_loads_no_heavy_library():
    code = (
        "import sys, toolverse_jax.gust;"
        "print([m for m in ('jax', 'flax', 'torch', 'grain', 'networkx', 'langgraph', 'mcp') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
