"""Measures the sampler on synthetic multi-turn episodes, the load that rollouts put on it."""

from __future__ import annotations

import dataclasses
import time

import jax
import numpy as np

from toolverse_jax.policy.config import ModelConfig
from toolverse_jax.policy.model import Policy, init_policy
from toolverse_jax.policy.sampler import JaxSampler, SampleRequest

SMALL = ModelConfig(
    model_type="qwen3",
    vocab_size=1024,
    hidden_size=128,
    intermediate_size=384,
    num_layers=5,
    num_heads=4,
    num_kv_heads=2,
    head_dim=32,
    tie_word_embeddings=True,
)
"""The shape of the policy shipped with the project, 1.1 million parameters."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class EpisodeLoad:
    """Synthetic episodes; lengths in tokens."""

    concurrency: int = 64
    group_size: int = 8
    """Episodes that share their first prompt."""
    first_prompt: int = 350
    requests: int = 11
    """Model calls per episode."""
    new_tokens: int = 25
    """Mean continuation; single ones are between 8 and 42."""
    reply_tokens: int = 40
    """Mean tool result or user message; single ones are between 20 and 60."""


def benchmark_sampler(
    policy: Policy | None = None, *, load: EpisodeLoad | None = None, episodes: int = 128, seed: int = 0
) -> dict[str, float]:
    """Play synthetic episodes twice, first to compile, and time the second pass.

    Args:
        policy: the policy; default: a random one of the shape `SMALL`.
        load: the episodes.
        episodes: how many are played in each pass.
        seed: of weights, prompts and samples.

    Returns:
        Rates per second of wall time, totals, `cpu_s`, the processor time of the timed pass over all
        cores, and `warmup_s`, the wall time of the first pass.
    """
    policy = policy or init_policy(SMALL, jax.random.key(seed))
    load = load or EpisodeLoad()
    longest = load.first_prompt + load.requests * (2 * load.new_tokens + 2 * load.reply_tokens)
    sampler = JaxSampler(policy, policy.params, slots=load.concurrency, max_length=longest)
    started = time.perf_counter()
    _play(sampler, policy.config.vocab_size, load, episodes, seed)
    warmup = time.perf_counter() - started
    before = dict(sampler.stats)
    started, cpu_started = time.perf_counter(), time.process_time()
    longest_seen = _play(sampler, policy.config.vocab_size, load, episodes, seed + 1)
    elapsed = time.perf_counter() - started
    cpu = time.process_time() - cpu_started
    totals = {name: float(value - before[name]) for name, value in sampler.stats.items()}
    return {
        "episodes_per_s": episodes / elapsed,
        "generated_tokens_per_s": totals["generated_tokens"] / elapsed,
        "requests_per_s": episodes * load.requests / elapsed,
        "elapsed_s": elapsed,
        "cpu_s": cpu,
        "warmup_s": warmup,
        "episodes": float(episodes),
        "longest_sequence_tokens": float(longest_seen),
        **totals,
    }


def _play(sampler: JaxSampler, vocab: int, load: EpisodeLoad, episodes: int, seed: int) -> int:
    """Play episodes with continuous batching; return the length of the longest."""
    rng = np.random.default_rng(seed)
    groups = -(-episodes // load.group_size)
    first = rng.integers(0, vocab, (groups, load.first_prompt), dtype=np.int32)
    lengths = rng.integers(8, max(9, 2 * load.new_tokens - 7), (episodes, load.requests))
    replies = rng.integers(load.reply_tokens // 2, load.reply_tokens * 3 // 2 + 1, (episodes, load.requests))
    tokens = [first[episode // load.group_size] for episode in range(episodes)]
    served = [0] * episodes

    def submit(episode: int) -> None:
        sampler.submit(
            SampleRequest(
                sequence_id=str(episode),
                tokens=tokens[episode],
                max_new_tokens=int(lengths[episode, served[episode]]),
                seed=seed * episodes + episode,
            )
        )

    waiting = list(range(episodes))
    for _ in range(min(load.concurrency, episodes)):
        submit(waiting.pop(0))
    longest = 0
    while sampler.num_open:
        for result in sampler.step():
            episode = int(result.sequence_id)
            reply = rng.integers(0, vocab, replies[episode, served[episode]], dtype=np.int32)
            tokens[episode] = np.concatenate([tokens[episode], result.tokens, reply])
            served[episode] += 1
            if served[episode] < load.requests:
                submit(episode)
                continue
            longest = max(longest, tokens[episode].size)
            sampler.release(result.sequence_id)
            if waiting:
                submit(waiting.pop(0))
    return longest
