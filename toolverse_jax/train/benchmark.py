"""Measures the jitted training step on synthetic packed rollouts."""

from __future__ import annotations

import time

import jax
import numpy as np

from toolverse_jax.config import LossConfig, MeshConfig, OptimizerConfig
from toolverse_jax.policy import Policy, init_policy, make_mesh
from toolverse_jax.policy.benchmark import SMALL
from toolverse_jax.rl import microbatches, pack
from toolverse_jax.rl.benchmark import synthetic_trajectories
from toolverse_jax.train.optimizer import make_optimizer
from toolverse_jax.train.state import init_state
from toolverse_jax.train.step import TrainStep, policy_objective


def benchmark_train(
    policy: Policy | None = None,
    *,
    episodes: int = 64,
    tokens: int = 700,
    row_length: int = 2048,
    rows: int = 2,
    repeats: int = 2,
    seed: int = 0,
) -> dict[str, float]:
    """Time old logprobs, gradients and one update over a batch of synthetic rollouts.

    Args:
        policy: the policy; default: a random one of the shape of the shipped policy.
        episodes: rollouts of the batch.
        tokens: mean length of a rollout; a quarter of it carries loss.
        row_length: tokens of a packed row.
        rows: rows of a micro-batch, for each shard of rows.
        repeats: the fastest of so many passes is reported.
        seed: of weights and rollouts.

    Returns:
        `gradient_tokens_per_s` (forward and backward), `logprob_tokens_per_s` (forward), both over
        real tokens; `update_s`; `compile_s`; `pad_fraction`; sizes; and `traces`, how often the
        functions were traced in all (3: once each).
    """
    policy = policy or init_policy(SMALL, jax.random.key(seed))
    mesh = make_mesh(MeshConfig())
    optimizer = make_optimizer(OptimizerConfig(), 100)
    loss = LossConfig()
    objective = policy_objective(
        clip_low=loss.clip_low,
        clip_high=loss.clip_high,
        importance_sampling_cap=loss.importance_sampling_cap,
    )
    step = TrainStep(policy, policy.params, optimizer, objective, mesh)
    state = init_state(policy.params, optimizer, mesh)
    rollouts = synthetic_trajectories(episodes, turns=4, tokens=tokens, seed=seed)
    draw = np.random.default_rng(seed)
    advantages = [draw.normal(size=4).astype(np.float32) for _ in rollouts]
    rows *= step.row_shards
    batch = pack(rollouts, advantages, row_length=row_length, rows_multiple=rows)
    parts = list(microbatches(batch, rows))
    num_tokens, num_loss = int((batch.segment_ids > 0).sum()), int(batch.loss_mask.sum())

    began = time.perf_counter()
    jax.block_until_ready(step.logprobs(state.params, parts[0]))
    gradients, _ = step.accumulate(state.params, step.zeros(state.params), parts[0])
    state, _ = step.apply(state, gradients, float(num_loss))
    jax.block_until_ready(state)
    compile_s = time.perf_counter() - began

    logprob_s = gradient_s = update_s = float("inf")
    for _ in range(repeats):
        began = time.perf_counter()
        jax.block_until_ready([step.logprobs(state.params, part) for part in parts])
        logprob_s = min(logprob_s, time.perf_counter() - began)
        gradients = step.zeros(state.params)
        began = time.perf_counter()
        for part in parts:
            gradients, _ = step.accumulate(state.params, gradients, part)
        jax.block_until_ready(gradients)
        gradient_s = min(gradient_s, time.perf_counter() - began)
        began = time.perf_counter()
        state, _ = step.apply(state, gradients, float(num_loss))
        jax.block_until_ready(state)
        update_s = min(update_s, time.perf_counter() - began)
    return {
        "gradient_tokens_per_s": num_tokens / gradient_s,
        "logprob_tokens_per_s": num_tokens / logprob_s,
        "update_s": update_s,
        "compile_s": compile_s,
        "pad_fraction": 1.0 - num_tokens / batch.tokens.size,
        "tokens": float(num_tokens),
        "loss_tokens": float(num_loss),
        "rows": float(batch.shape[0]),
        "row_length": float(row_length),
        "parameters": float(sum(leaf.size for leaf in jax.tree.leaves(state.params))),
        "traces": float(sum(step.traces.values())),
    }
