"""The main job in small: toolsets, environments, tasks, evaluation, training, report, by the command line."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SMALL = [
    "rollout.groups_per_step=2",
    "rollout.group_size=2",
    "rollout.slots=4",
    "train.steps=2",
    "train.minibatches=1",
    "train.rows_per_microbatch=2",
    "train.checkpoint_every=1",
    "train.save_trajectories_every=2",
]


@pytest.fixture(scope="module", autouse=True)
def shared_compilations(tmp_path_factory: pytest.TempPathFactory):
    """Let the processes of this module share what they compile."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=0")
        patch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path_factory.mktemp("compiled")))
        patch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
        yield


def toolverse(*arguments: object, hash_seed: str = "0") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "toolverse_jax.cli", *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=False,
    )


def succeed(*arguments: object, hash_seed: str = "0") -> str:
    done = toolverse(*arguments, hash_seed=hash_seed)
    assert done.returncode == 0, done.stderr
    return done.stdout


def train_line(folder: Path, *more: str) -> list[object]:
    """Return the command line that trains in a run folder."""
    settings = [
        *SMALL,
        f'tasks.train="{folder}/tasks/train.jsonl"',
        f'tasks.environments="{folder}/envs"',
        *more,
    ]
    overrides = [word for setting in settings for word in ("--set", setting)]
    config = ROOT / "launch" / "configs" / "quickstart.toml"
    return ["train", "--config", config, "--run", folder / "train", *overrides]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, shared_compilations: None) -> Path:
    """Play the whole road once, with two environments."""
    folder = tmp_path_factory.mktemp("run")
    toolsets = folder / "toolsets"
    for name in ("marina_berths", "mountain_huts"):
        (toolsets / name).mkdir(parents=True)
        (toolsets / name / "toolset.json").write_bytes((ROOT / "envs" / name / "toolset.json").read_bytes())
    envs, tasks = folder / "envs", folder / "tasks"
    succeed("synthesize", toolsets, "--out", envs)
    sizes = ("--train", 6, "--evaluation", 3, "--min-turns", 3, "--max-turns", 3)
    succeed("tasks", envs, "--out", tasks, *sizes)
    succeed(*train_line(folder))
    for label, policy in (("before", "tiny"), ("after", folder / "train" / "final")):
        out = folder / "eval" / f"{label}_heldout_tasks.json"
        where = ("--tasks", tasks / "heldout_tasks.jsonl", "--envs", envs, "--slots", 4)
        succeed("eval", "--policy", policy, *where, "--out", out)
    succeed("view", folder)
    return folder


def test_every_stage_leaves_its_product(run: Path):
    assert json.loads((run / "envs" / "marina_berths" / "validation.json").read_text())["accepted"] is True
    assert len((run / "tasks" / "train.jsonl").read_text().splitlines()) == 6
    metrics = [json.loads(line) for line in (run / "train" / "metrics.jsonl").read_text().splitlines()]
    assert len(metrics) == 2
    assert (run / "train" / "final" / "model.safetensors").is_file()
    assert "<svg" in (run / "report.html").read_text()


def test_the_same_seed_gives_the_same_task_bytes_in_another_process(run: Path, tmp_path: Path):
    sizes = ("--train", 6, "--evaluation", 3, "--min-turns", 3, "--max-turns", 3)
    succeed("tasks", run / "envs", "--out", tmp_path / "tasks", *sizes, hash_seed="12345")
    for file in ("train.jsonl", "heldout_tasks.jsonl", "heldout_environments.jsonl", "SHA256SUMS"):
        assert (tmp_path / "tasks" / file).read_bytes() == (run / "tasks" / file).read_bytes(), file


def test_a_saved_step_exports_to_the_parameters_of_the_final_policy(run: Path, tmp_path: Path):
    succeed("export", run / "train", "--out", tmp_path / "policy", "--dtype", "bfloat16")
    for file in ("model.safetensors", "tokenizer.json"):
        assert (tmp_path / "policy" / file).read_bytes() == (run / "train" / "final" / file).read_bytes(), (
            file
        )


def test_a_finished_run_refuses_another_configuration(run: Path):
    before = (run / "train" / "config.json").read_bytes()
    done = toolverse(*train_line(run, "train.steps=3"))
    assert done.returncode == 2
    assert "another configuration" in done.stderr
    assert (run / "train" / "config.json").read_bytes() == before
