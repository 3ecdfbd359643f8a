from __future__ import annotations

import dataclasses
import json
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from toolverse_jax.config import config_to_dict
from toolverse_jax.errors import CheckpointError, ConfigError, TaskError
from toolverse_jax.policy import load_policy
from toolverse_jax.train import read_metrics, train

# Kills itself at the moment when the finished checkpoint would take its name.
KILLED_RUN = """
import importlib.util, os, pickle, signal, sys
from toolverse_jax.train import train
import jax
conftest, config, run_dir, step, cache = sys.argv[1:]
for name, value in pickle.loads(bytes.fromhex(cache)).items():
    jax.config.update(name, value)
spec = importlib.util.spec_from_file_location("made_up", conftest)
made_up = importlib.util.module_from_spec(spec)
spec.loader.exec_module(made_up)
def kill(event, arguments):
    if event == "os.rename" and str(arguments[1]).endswith("checkpoints/" + step):
        os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(kill)
train(pickle.loads(bytes.fromhex(config)), run_dir, rollouts=made_up.MadeUpRollouts())
"""


def interrupt_after(step):
    def progress(number, metrics):
        if number == step:
            raise KeyboardInterrupt

    return progress


def timeless(run_dir):
    return [
        {key: value for key, value in line.items() if not key.startswith("time/")}
        for line in read_metrics(Path(run_dir) / "metrics.jsonl")
    ]


def same_bits(left, right):
    pairs = zip(*map(jax.tree.leaves, (left, right)), strict=True)
    return all(np.array_equal(np.asarray(a), np.asarray(b)) for a, b in pairs)


@pytest.fixture(scope="module")
def whole(run_config, rollouts, tmp_path_factory):
    """A run that was never interrupted."""
    return train(run_config, tmp_path_factory.mktemp("whole"), rollouts=rollouts)


def test_a_run_leaves_its_folder_complete(whole, run_config, policy):
    folder = whole.run_dir
    assert whole.steps == 6 and whole.resumed_from == 0
    assert json.loads((folder / "config.json").read_text()) == json.loads(
        json.dumps(config_to_dict(run_config))
    )
    assert [line["step"] for line in timeless(folder)] == [1, 2, 3, 4, 5, 6]
    assert sorted(path.name for path in (folder / "checkpoints").iterdir()) == ["4", "6"]
    assert sorted(path.name for path in (folder / "trajectories").iterdir()) == [
        "step_000003.jsonl",
        "step_000006.jsonl",
    ]
    exported = load_policy(whole.final)
    assert same_bits(exported.params, whole.state.params)
    assert not same_bits(exported.params, policy.params)


def test_metrics_tell_what_was_learned_from(whole):
    for line in timeless(whole.run_dir):
        assert line["signal/groups"] == 3 and 0 <= line["signal/kept"] <= 3
        assert line["optimizer/updates"] == 2
        assert 0 < line["batch/loss_tokens"] < line["batch/tokens"]
        assert all(value is not None for value in line.values())
    # The warm-up takes two updates, one step of this run.
    assert [line["optimizer/learning_rate"] for line in timeless(whole.run_dir)][:2] == pytest.approx(
        [0.005, 0.01]
    )


def test_trajectories_are_written_for_people(whole):
    lines = (whole.run_dir / "trajectories" / "step_000003.jsonl").read_text().splitlines()
    assert len(lines) == 12
    for record in map(json.loads, lines):
        for span in record["spans"]:
            assert len(span["text"].split()) == span["tokens"]
            wanted = record["turn_advantages"][span["turn"] - 1] if span["loss"] else 0
            assert span["advantage"] == wanted
        assert sum(span["tokens"] for span in record["spans"]) >= 20


@pytest.mark.parametrize("step", [1, 4, 5])
def test_an_interrupted_run_ends_as_if_it_had_never_stopped(whole, run_config, rollouts, tmp_path, step):
    with pytest.raises(KeyboardInterrupt):
        train(run_config, tmp_path, rollouts=rollouts, progress=interrupt_after(step))
    result = train(run_config, tmp_path, rollouts=rollouts)
    assert result.resumed_from == step // 2 * 2
    assert same_bits(result.state, whole.state)
    assert timeless(tmp_path) == timeless(whole.run_dir)
    for path in (whole.run_dir / "trajectories").iterdir():
        assert (tmp_path / "trajectories" / path.name).read_bytes() == path.read_bytes()


def test_a_run_killed_while_it_writes_a_checkpoint_resumes_bit_for_bit(
    whole, run_config, rollouts, compilation_cache, tmp_path
):
    arguments = [
        str(Path(__file__).with_name("conftest.py")),
        pickle.dumps(run_config).hex(),
        str(tmp_path),
        "4",
        pickle.dumps(compilation_cache).hex(),
    ]
    killed = subprocess.run(
        [sys.executable, "-c", KILLED_RUN, *arguments], env=dict(os.environ), capture_output=True, text=True
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-2000:]
    assert len(timeless(tmp_path)) == 4
    assert any("tmp" in path.name for path in (tmp_path / "checkpoints").iterdir())
    result = train(run_config, tmp_path, rollouts=rollouts)
    assert result.resumed_from == 2
    assert same_bits(result.state, whole.state)
    assert timeless(tmp_path) == timeless(whole.run_dir)


def test_running_a_finished_line_again_changes_nothing(whole, run_config, rollouts):
    before = (whole.run_dir / "metrics.jsonl").read_bytes()
    again = train(run_config, whole.run_dir, rollouts=rollouts)
    assert again.resumed_from == 6
    assert same_bits(again.state, whole.state)
    assert (whole.run_dir / "metrics.jsonl").read_bytes() == before


def test_another_configuration_is_refused_in_the_same_folder(whole, run_config, rollouts):
    other = dataclasses.replace(run_config, loss=dataclasses.replace(run_config.loss, clip_high=0.3))
    with pytest.raises(ConfigError, match=r"loss.clip_high was 0.2, is 0.3") as caught:
        train(other, whole.run_dir, rollouts=rollouts)
    assert "\n" not in str(caught.value)


def test_a_row_shorter_than_the_longest_rollout_is_refused(run_config, rollouts, tmp_path):
    other = dataclasses.replace(run_config, train=dataclasses.replace(run_config.train, row_length=63))
    with pytest.raises(ConfigError, match="64 tokens, got 63"):
        train(other, tmp_path / "run", rollouts=rollouts)
    assert not (tmp_path / "run").exists()


def test_tasks_of_too_many_turns_are_left_out(run_config, rollouts, tmp_path):
    other = dataclasses.replace(run_config, tasks=dataclasses.replace(run_config.tasks, max_turns=1))
    with pytest.raises(TaskError, match="at most 1 turns"):
        train(other, tmp_path / "run", rollouts=rollouts)


def test_a_damaged_checkpoint_is_one_sentence(whole, run_config, rollouts, tmp_path):
    import shutil

    folder = tmp_path / "run"
    shutil.copytree(whole.run_dir, folder)
    files = [path for path in (folder / "checkpoints" / "6").rglob("*") if path.is_file()]
    for path in files:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(CheckpointError, match="delete the folder 6") as caught:
        train(run_config, folder, rollouts=rollouts)
    assert "\n" not in str(caught.value)
    shutil.rmtree(folder / "checkpoints" / "6")
    assert train(run_config, folder, rollouts=rollouts).resumed_from == 4


class SilentRollouts:
    """Every group agrees about every turn."""

    def __init__(self, source):
        self.source = source

    def collect(self, *arguments, **options):
        played = self.source.collect(*arguments, **options)
        for group in played:
            group[:] = [dataclasses.replace(m, turn_rewards=np.ones_like(m.turn_rewards)) for m in group]
        return played

    def decode(self, tokens):
        return self.source.decode(tokens)


def test_groups_without_signal_change_nothing(run_config, rollouts, policy, tmp_path):
    short = dataclasses.replace(run_config, train=dataclasses.replace(run_config.train, steps=1))
    result = train(short, tmp_path, rollouts=SilentRollouts(rollouts))
    (line,) = timeless(tmp_path)
    assert line["signal/kept"] == 0 and line["optimizer/updates"] == 0
    assert same_bits(result.state.params, policy.params)
