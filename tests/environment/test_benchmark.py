from __future__ import annotations

from toolverse_jax.environment import Environment
from toolverse_jax.environment.benchmark import benchmark_engine, example_call


def test_most_example_calls_succeed(boatyard: Environment) -> None:
    session = boatyard.session(3)
    results = {tool.name: session.fork().call(*example_call(session, tool.name)) for tool in boatyard.tools}
    failed = {name for name, result in results.items() if result.is_error}
    assert len(failed) <= 4 and "get_boat" not in failed and "get-mooring" not in failed


def test_the_benchmark_reports_plausible_figures(boatyard: Environment) -> None:
    figures = benchmark_engine(environment=boatyard, seconds=0.05, sessions=32)
    assert figures["calls_per_s"] > 5_000
    assert figures["engine_to_mcp_ratio"] > 2
    assert 0.5 < figures["success_fraction"] <= 1
    assert figures["bytes_per_idle_session"] < 2_000
    assert figures["reset_us"] > 0 and figures["seed_ms"] > 0
