"""The sampler benchmark runs and its counts agree with the load."""

from __future__ import annotations

from pathlib import Path

from toolverse_jax.policy import load_policy
from toolverse_jax.policy.benchmark import EpisodeLoad, benchmark_sampler


def test_the_benchmark_counts_what_it_plays():
    policy = load_policy(Path(__file__).parent.parent / "golden" / "qwen3")
    load = EpisodeLoad(
        concurrency=4, group_size=2, first_prompt=40, requests=2, new_tokens=10, reply_tokens=8
    )
    figures = benchmark_sampler(policy, load=load, episodes=5)
    assert figures["episodes"] == 5 and figures["longest_sequence_tokens"] > 40
    assert 5 * 2 * 8 <= figures["generated_tokens"] <= 5 * 2 * 20
    assert figures["generated_tokens_per_s"] > 0 and figures["episodes_per_s"] > 0
