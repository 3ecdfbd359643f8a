"""The benchmarks of `toolverse bench`: names, what they measure, and how they are run."""

from __future__ import annotations

from typing import Any

from toolverse_jax.errors import ToolverseError

BENCHMARKS = {
    "engine": "validated tool calls per second, resets, memory per session; ratio to in-memory MCP",
    "sampler": "episodes and generated tokens per second of the embedded JAX sampler",
    "tara": "advantages and their scatter to packed tokens, against a loop over trajectories",
    "train": "tokens per second of the jitted training step on packed rows",
}


def run_benchmark(name: str) -> dict[str, Any]:
    """Run one benchmark and return its figures.

    Raises:
        ToolverseError: there is no benchmark of this name.
    """
    if name == "engine":
        from toolverse_jax.environment.benchmark import benchmark_engine

        figures = benchmark_engine()
    elif name == "sampler":
        from toolverse_jax.policy.benchmark import benchmark_sampler

        figures = benchmark_sampler()
    elif name == "tara":
        from toolverse_jax.rl.benchmark import benchmark_tara

        figures = benchmark_tara()
    elif name == "train":
        from toolverse_jax.train.benchmark import benchmark_train

        figures = benchmark_train()
    else:
        raise ToolverseError(f"there is no benchmark {name!r}; choose one of {', '.join(BENCHMARKS)}")
    return {"benchmark": name, **figures}
