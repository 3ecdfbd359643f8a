"""A tiny policy, made-up rollouts, and a source of rollouts that needs no environment."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
import pytest

from toolverse_jax.config import MeshConfig, RunConfig, load_config
from toolverse_jax.gust import write_tasks
from toolverse_jax.policy import ModelConfig, Policy, init_policy, make_mesh, save_policy_hf
from toolverse_jax.types import Task, TaskTurn, Trajectory

VOCABULARY = 40


@pytest.fixture(scope="session", autouse=True)
def compilation_cache(tmp_path_factory):
    """Every run builds its step anew; equal programs need not be compiled again."""
    settings = {
        "jax_compilation_cache_dir": str(tmp_path_factory.mktemp("compiled")),
        "jax_persistent_cache_min_compile_time_secs": 0.0,
    }
    before = {name: getattr(jax.config, name) for name in settings}
    for name, value in settings.items():
        jax.config.update(name, value)
    yield settings
    for name, value in before.items():
        jax.config.update(name, value)


@pytest.fixture(scope="session")
def policy() -> Policy:
    config = ModelConfig(
        model_type="qwen3",
        vocab_size=VOCABULARY,
        hidden_size=16,
        intermediate_size=32,
        num_layers=2,
        num_heads=2,
        num_kv_heads=1,
        head_dim=8,
        tie_word_embeddings=True,
        initializer_range=0.3,
    )
    return init_policy(config, jax.random.key(0))


@pytest.fixture(scope="session")
def one_device():
    return make_mesh(MeshConfig(), devices=jax.devices()[:1])


def make_rollout(seed: int, *, length: int = 0, turns: int = 3, rewards=None, **fields) -> Trajectory:
    draw = np.random.default_rng(seed)
    length = length or int(draw.integers(20, 40))
    turn_ids = np.minimum(np.arange(length) * (turns + 1) // length, turns).astype(np.int16)
    mask = (draw.random(length) < 0.4) & (turn_ids > 0)
    if rewards is None:
        rewards = draw.integers(0, 2, turns)
    values = {
        "task_id": f"task{seed}",
        "group_id": "g",
        "environment": "made_up",
        "sample_index": seed,
        "tokens": draw.integers(1, VOCABULARY, length).astype(np.int32),
        "loss_mask": mask,
        "sampler_logprobs": np.where(mask, -3.5 + draw.random(length), np.nan).astype(np.float32),
        "turn_ids": turn_ids,
        "turn_rewards": np.asarray(rewards, np.float32),
        "turn_reached": np.ones(turns, bool),
        "status": "completed",
    }
    return Trajectory(**{**values, **fields})


@pytest.fixture(scope="session")
def rollout():
    return make_rollout


class MadeUpRollouts:
    """Rollouts that follow from task, seed and parameters, as real ones do."""

    def collect(self, tasks, *, params, version, seed, group_size):
        # Any change of the parameters changes the rollouts.
        bits = np.asarray(params["final_norm"]).view(np.uint32)
        weights = int(np.bitwise_xor.reduce(bits))
        groups = [
            [
                make_rollout(
                    (seed + weights + 1000 * place + member) % 2**31,
                    turns=task.num_turns,
                    task_id=task.id,
                    sample_index=member,
                    policy_version=version,
                )
                for member in range(group_size)
            ]
            for place, task in enumerate(tasks)
        ]
        return _Groups(groups)

    def decode(self, tokens):
        return " ".join(map(str, tokens))


class _Groups(list):
    def metrics(self):
        return {"rollout/groups": float(len(self))}


@pytest.fixture(scope="session")
def rollouts() -> MadeUpRollouts:
    return MadeUpRollouts()


@pytest.fixture(scope="session")
def run_config(policy, tmp_path_factory) -> RunConfig:
    folder: Path = tmp_path_factory.mktemp("content")
    save_policy_hf(policy, policy.params, folder / "policy")
    (folder / "policy" / "tokenizer.json").write_text("{}")
    tasks = [
        Task(
            id=f"t{number}",
            environment="made_up",
            seed=number,
            turns=tuple(TaskTurn(user="do", golden=()) for _ in range(2 + number % 3)),
            final_state_hash="",
        )
        for number in range(5)
    ]
    write_tasks(folder / "train.jsonl", tasks)
    settings = {
        "policy.checkpoint": folder / "policy",
        "tasks.train": folder / "train.jsonl",
        "rollout.groups_per_step": 3,
        "rollout.group_size": 4,
        "rollout.max_length": 64,
        "optimizer.learning_rate": 0.01,
        "optimizer.warmup_steps": 2,
        "train.steps": 6,
        "train.minibatches": 2,
        "train.row_length": 64,
        "train.checkpoint_every": 2,
        "train.save_trajectories_every": 3,
    }
    return load_config(None, [f"{key}={value}" for key, value in settings.items()])
