"""Measures the engine: calls per second over many live sessions, reset time, memory, and MCP's share.

Times are processor time of this process, so that a busy machine does not blur them.
"""

from __future__ import annotations

import asyncio
import time
import tracemalloc
from collections.abc import Mapping
from typing import Any

from toolverse_jax.environment.catalog import list_environments
from toolverse_jax.environment.engine import Environment, load_environment
from toolverse_jax.environment.session import Session
from toolverse_jax.environment.spec import ArgBinding
from toolverse_jax.errors import EnvironmentSpecError
from toolverse_jax.paths import envs_dir
from toolverse_jax.types import JSON

CALLS_PER_EPISODE = 16
DISTINCT_SEEDS = 64

Call = tuple[str, dict[str, JSON]]


def benchmark_engine(
    *, seconds: float = 2.0, sessions: int = 1024, environment: Environment | None = None
) -> dict[str, JSON]:
    """Measure the engine on one core.

    Args:
        seconds: processor time spent on engine calls; about as much again goes to the rest.
        sessions: sessions that are alive at once; each lives for `CALLS_PER_EPISODE` calls.
        environment: what is measured; None: the first environment that is shipped.

    Returns:
        `calls_per_s` (validated calls), `success_fraction`, `reset_us` (opening a session of a known
        seed), `seed_ms` (building the start state of a new seed), `bytes_per_idle_session`,
        `mcp_calls_per_s` (the same calls by an in-memory MCP client) and their ratio
        `engine_to_mcp_ratio`.

    Raises:
        EnvironmentSpecError: there is no environment to measure.
    """
    if environment is None:
        environment = _first_shipped()
    scripts = [_script(environment.session(seed)) for seed in range(DISTINCT_SEEDS)]
    calls_per_s, success = _engine_speed(environment, scripts, seconds, sessions)
    mcp_calls_per_s = asyncio.run(_mcp_speed(environment, scripts[0], seconds / 2))
    return {
        "environment": environment.name,
        "sessions": sessions,
        "calls_per_s": round(calls_per_s),
        "success_fraction": round(success, 4),
        "reset_us": round(_reset_s(environment) * 1e6, 3),
        "seed_ms": round(_seeding_s(environment) * 1e3, 3),
        "bytes_per_idle_session": round(_bytes_per_session(environment)),
        "mcp_calls_per_s": round(mcp_calls_per_s),
        "engine_to_mcp_ratio": round(calls_per_s / mcp_calls_per_s, 1),
    }


def _first_shipped() -> Environment:
    names = list_environments(envs_dir())
    if not names:
        raise EnvironmentSpecError(f"{envs_dir()} holds no environment to measure; synthesize one first")
    return load_environment(envs_dir() / names[0])


def example_call(session: Session, tool: str) -> Call:
    """Return a plausible call of a tool: required arguments, with identifiers of existing rows."""
    spec = session.environment.spec
    schema = spec.tool(tool).input_schema
    bindings = spec.operation(tool).args
    properties: Mapping[str, Any] = schema.get("properties", {})
    arguments = {
        name: _example_value(session, bindings.get(name), properties.get(name, {}))
        for name in schema.get("required", ())
    }
    return tool, arguments


def _example_value(session: Session, binding: ArgBinding | None, schema: Mapping[str, Any]) -> JSON:
    if binding is not None and binding.entity is not None:
        rows = session.rows(binding.entity)
        name = (
            binding.field
            if binding.role == "natural_key"
            else session.environment.spec.entity(binding.entity).id_name
        )
        if binding.role in ("id", "natural_key") and rows and name in rows[0]:
            return rows[0][name]
    for keyword in ("enum", "examples"):
        if schema.get(keyword):
            return schema[keyword][0]
    if "default" in schema:
        return schema["default"]
    if schema.get("format") == "date":
        return session.now[:10]
    if schema.get("format") == "date-time":
        return session.now
    plain: dict[str, JSON] = {
        "integer": schema.get("minimum", 1),
        "number": schema.get("minimum", 1),
        "boolean": True,
        "array": [],
        "object": {},
    }
    return plain.get(str(schema.get("type")), "quiet harbour")


def _script(session: Session) -> list[Call]:
    calls = [example_call(session, tool.name) for tool in session.environment.tools]
    good = [call for call in calls if not session.fork().call(*call).is_error] or calls
    return [good[i % len(good)] for i in range(CALLS_PER_EPISODE)]


def _engine_speed(
    environment: Environment, scripts: list[list[Call]], seconds: float, sessions: int
) -> tuple[float, float]:
    count = failures = 0
    start = time.process_time()
    while (spent := time.process_time() - start) < seconds or count == 0:
        live = [environment.session(i % DISTINCT_SEEDS) for i in range(sessions)]
        for step in range(CALLS_PER_EPISODE):
            for i, session in enumerate(live):
                tool, arguments = scripts[i % DISTINCT_SEEDS][step]
                failures += session.call(tool, arguments).is_error
        count += sessions * CALLS_PER_EPISODE
    return count / spent, 1 - failures / count


async def _mcp_speed(environment: Environment, script: list[Call], seconds: float) -> float:
    from mcp import Client

    from toolverse_jax.environment.mcp_server import build_server

    count = 0
    async with Client(build_server(environment, 0)) as client:
        await client.list_tools()
        start = time.process_time()
        while (spent := time.process_time() - start) < seconds or count == 0:
            for tool, arguments in script:
                await client.call_tool(tool, arguments)
            count += len(script)
    return count / spent


def _reset_s(environment: Environment, repeats: int = 5000) -> float:
    start = time.process_time()
    for i in range(repeats):
        environment.session(i % DISTINCT_SEEDS)
    return (time.process_time() - start) / repeats


def _seeding_s(environment: Environment, repeats: int = 16) -> float:
    start = time.process_time()
    for i in range(repeats):
        environment.session(1_000_000 + i)
    return (time.process_time() - start) / repeats


def _bytes_per_session(environment: Environment, count: int = 4096) -> float:
    environment.session(0)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        live = [environment.session(0) for _ in range(count)]
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(live) == count
    return (after - before) / count
