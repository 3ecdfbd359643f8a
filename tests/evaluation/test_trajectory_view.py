import pytest

from toolverse_jax.evaluation.trajectory_view import choose_trajectories


def _record(task: str, *rewards: float) -> dict:
    return {"task_id": task, "turn_rewards": list(rewards)}


def test_a_right_a_half_right_and_a_wrong_rollout_are_chosen():
    records = [
        _record("a", 0, 0),
        _record("b", 1, 0, 0, 0),
        _record("c", 1, 1),
        _record("d", 1, 0),
        _record("e", 1),
    ]
    assert choose_trajectories(records) == [records[2], records[3], records[0]]


def test_other_tasks_come_first_even_where_they_are_less_typical():
    records = [_record("a", 1, 1), _record("a", 1, 0), _record("a", 0, 0), _record("b", 1, 1, 1, 0)]
    assert choose_trajectories(records) == [records[0], records[3], records[2]]


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_where_a_kind_is_absent_others_follow_and_none_is_shown_twice(count):
    records = [_record("a", 1, 1) for _ in range(count)]
    chosen = choose_trajectories(records)
    assert len(chosen) == min(count, 3)
    assert len({id(record) for record in chosen}) == len(chosen)
