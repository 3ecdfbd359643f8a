"""The loop with the real collector, environment and sampler; only the rewards are made up."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest

from toolverse_jax.config import load_config
from toolverse_jax.environment import load_environment
from toolverse_jax.gust import write_tasks
from toolverse_jax.paths import envs_dir
from toolverse_jax.policy import ModelConfig, init_policy, load_policy, save_policy_hf
from toolverse_jax.rollout import train_tokenizer
from toolverse_jax.train import EmbeddedRollouts, read_metrics, train
from toolverse_jax.types import GoldenCall, Task, TaskTurn

ENVIRONMENT = "bakery_orders"


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sampler_run")
    tokenizer = train_tokenizer(["you call tools " * 50], 300, folder / "tokenizer")
    shape = ModelConfig(
        model_type="qwen3",
        vocab_size=len(tokenizer),
        hidden_size=16,
        intermediate_size=32,
        num_layers=2,
        num_heads=2,
        num_kv_heads=1,
        head_dim=8,
        tie_word_embeddings=True,
        initializer_range=0.2,
        eos_token_id=tokenizer.eos_token_id,
    )
    policy = init_policy(shape, jax.random.key(1))
    save_policy_hf(policy, policy.params, folder / "policy", tokenizer_files_from=folder / "tokenizer")
    tool = load_environment(envs_dir() / ENVIRONMENT).tools[0].name
    turn = TaskTurn(user="Go on.", golden=(GoldenCall(tool=tool, arguments={}),))
    tasks = [
        Task(id=f"t{seed}", environment=ENVIRONMENT, seed=seed, turns=(turn, turn), final_state_hash="")
        for seed in range(3)
    ]
    write_tasks(folder / "tasks.jsonl", tasks)
    settings = {
        "policy.checkpoint": folder / "policy",
        "tasks.train": folder / "tasks.jsonl",
        "tasks.environments": envs_dir(),
        "rollout.groups_per_step": 2,
        "rollout.group_size": 3,
        "rollout.max_call_tokens": 8,
        "rollout.max_steps_per_turn": 1,
        "rollout.max_length": 512,
        "rollout.slots": 4,
        "optimizer.learning_rate": 0.01,
        "train.steps": 4,
        "train.minibatches": 1,
        "train.row_length": 512,
        "train.checkpoint_every": 2,
    }
    return load_config(None, [f"{key}={value}" for key, value in settings.items()])


class RewardedByTokens:
    """The real rollouts, with rewards that an untrained policy can earn: odd sums of sampled tokens."""

    def __init__(self, config):
        folder = config.policy.checkpoint
        environment = load_environment(envs_dir() / ENVIRONMENT)
        self.source = EmbeddedRollouts(config, load_policy(folder), folder, {ENVIRONMENT: environment})
        self.decode = self.source.decode

    def collect(self, tasks, **options):
        played = self.source.collect(tasks, **options)
        groups = tuple([self._rewarded(member) for member in group] for group in played)
        return dataclasses.replace(played, groups=groups)

    def _rewarded(self, member):
        sums = [
            member.tokens[member.loss_mask & (member.turn_ids == turn + 1)].sum()
            for turn in range(len(member.turn_rewards))
        ]
        return dataclasses.replace(member, turn_rewards=np.array(sums, np.float32) % 2)


@pytest.fixture(scope="module")
def whole(config, tmp_path_factory):
    return train(config, tmp_path_factory.mktemp("whole"), rollouts=RewardedByTokens(config))


def test_the_trainer_finds_the_logprobs_that_the_sampler_reported(whole):
    for line in read_metrics(whole.run_dir / "metrics.jsonl"):
        assert line["signal/kept"] > 0
        assert abs(line["policy/mismatch_kl"]) < 1e-6
        assert line["policy/mismatch_outside_fraction"] == 0
        assert line["policy/ratio"] == 1.0


def test_a_run_with_the_sampler_resumes_bit_for_bit(config, whole, tmp_path):
    def interrupt(step, metrics):
        if step == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(config, tmp_path, rollouts=RewardedByTokens(config), progress=interrupt)
    result = train(config, tmp_path, rollouts=RewardedByTokens(config))
    assert result.resumed_from == 2
    for before, after in zip(*map(jax.tree.leaves, (whole.state, result.state)), strict=True):
        np.testing.assert_array_equal(before, after)
    lines = [
        [
            {k: v for k, v in line.items() if not k.startswith("time/")}
            for line in read_metrics(folder / "metrics.jsonl")
        ]
        for folder in (whole.run_dir, tmp_path)
    ]
    assert lines[0] == lines[1]


def test_a_run_reads_its_environments_from_the_configuration(config, tmp_path):
    short = dataclasses.replace(config, train=dataclasses.replace(config.train, steps=1))
    result = train(short, tmp_path)
    (line,) = read_metrics(result.run_dir / "metrics.jsonl")
    assert line["rollout/groups"] == 2
    assert line["reward/mean_turn"] == 0
