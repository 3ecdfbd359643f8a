from __future__ import annotations

import pytest

from toolverse_jax.errors import CheckpointError
from toolverse_jax.train import MetricsWriter, read_metrics


def test_lines_beyond_the_restored_step_are_cut_off(tmp_path):
    path = tmp_path / "metrics.jsonl"
    writer = MetricsWriter(path)
    for step in (1, 2, 3):
        writer.write(step, {"policy/loss": step / 2})
    with path.open("a") as file:
        file.write('{"step":4,"policy/lo')
    assert [line["step"] for line in read_metrics(path)] == [1, 2, 3]
    MetricsWriter(path, after_step=2).write(3, {"policy/loss": 9})
    assert read_metrics(path) == [
        {"step": 1, "policy/loss": 0.5},
        {"step": 2, "policy/loss": 1.0},
        {"step": 3, "policy/loss": 9.0},
    ]


def test_keys_are_sorted_with_times_last_and_numbers_stay_valid_json(tmp_path):
    MetricsWriter(tmp_path / "m.jsonl").write(1, {"time/a": 1, "z/b": float("nan"), "a/c": 2})
    assert (tmp_path / "m.jsonl").read_text() == '{"step":1,"a/c":2.0,"z/b":null,"time/a":1.0}\n'


def test_a_file_that_lost_lines_is_refused(tmp_path):
    MetricsWriter(tmp_path / "m.jsonl").write(1, {})
    with pytest.raises(CheckpointError, match="1 of the 3 steps"):
        MetricsWriter(tmp_path / "m.jsonl", after_step=3)
