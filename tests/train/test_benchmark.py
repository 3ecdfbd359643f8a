from __future__ import annotations

from toolverse_jax.train.benchmark import benchmark_train


def test_the_benchmark_compiles_each_function_once(policy):
    figures = benchmark_train(policy, episodes=12, tokens=30, row_length=64, rows=1, repeats=1)
    assert figures["traces"] == 3
    assert figures["gradient_tokens_per_s"] > 0
