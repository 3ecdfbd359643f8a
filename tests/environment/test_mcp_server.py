from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from toolverse_jax.environment import Environment, Session
from toolverse_jax.environment.mcp_server import SessionStore, build_server, http_app
from toolverse_jax.types import ToolResult

SEED = 3


def script(session: Session) -> list[tuple[str, dict[str, Any]]]:
    boat = session.rows("boat")[0]["boat_id"]
    return [
        ("list_boats", {"limit": 2}),
        ("get_boat", {"boat_id": boat}),
        ("get_boat", {"boat_id": 7}),
        ("get-mooring", {"name": "old wall"}),
        ("register_boat", {"name": "Zoë", "owner": "Me", "tags": ["a"]}),
        ("register_boat", {"name": "Zoë", "owner": "Me"}),
        ("add_fuel", {"boat_id": boat, "litres": 0.1}),
        ("plan_trip", {"boat_id": boat, "starts_at": "2031-05-01T10:00:00", "seats": 2, "litres": 900}),
        ("no_such_tool", {}),
        ("remove_boat", {"boat_id": boat}),
        ("get_harbour", {}),
    ]


async def replay(client: Client, calls: list[tuple[str, dict[str, Any]]]) -> list[tuple[Any, bool, str]]:
    results = [await client.call_tool(tool, arguments) for tool, arguments in calls]
    return [(r.structured_content, r.is_error, r.content[0].text) for r in results]  # type: ignore[union-attr]


def as_seen(results: list[ToolResult]) -> list[tuple[Any, bool, str]]:
    return [(result.value, result.is_error, result.content) for result in results]


@pytest.fixture
def expected(boatyard: Environment) -> list[tuple[Any, bool, str]]:
    session = boatyard.session(SEED)
    return as_seen([session.call(*call) for call in script(session)])


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_an_in_memory_client_sees_what_the_engine_answers(boatyard: Environment, expected, mode: str) -> None:
    async def run() -> None:
        async with Client(build_server(boatyard, SEED), mode=mode) as client:
            tools = (await client.list_tools()).tools
            assert [(t.name, t.description, t.input_schema) for t in tools] == [
                (t.name, t.description, t.input_schema) for t in boatyard.tools
            ]
            assert [t.output_schema for t in tools] == [t.output_schema for t in boatyard.tools]
            hints = {t.name: t.annotations for t in tools}
            for name, annotations in boatyard.annotations.items():
                shown = hints[name]
                assert shown is not None and shown.open_world_hint is False
                assert (shown.read_only_hint, shown.destructive_hint, shown.idempotent_hint) == (
                    annotations.read_only,
                    annotations.destructive,
                    annotations.idempotent,
                )
            assert await replay(client, script(boatyard.session(SEED))) == expected

    asyncio.run(run())


def test_a_stdio_client_sees_what_the_engine_answers_despite_stray_prints(
    boatyard: Environment, boatyard_folder, expected
) -> None:
    program = (
        "import toolverse_jax.environment.mcp_server as server\n"
        "from toolverse_jax.environment.session import Session\n"
        "call = Session.call\n"
        "def noisy(self, tool, arguments):\n"
        "    print('stray', flush=True)\n"
        "    return call(self, tool, arguments)\n"
        "Session.call = noisy\n"
        f"server.serve_stdio({str(boatyard_folder)!r}, {SEED})"
    )
    process = StdioServerParameters(command=sys.executable, args=["-c", program])

    async def run(log) -> None:
        async with Client(stdio_client(process, errlog=log)) as client:
            assert await replay(client, script(boatyard.session(SEED))) == expected

    with open("/dev/null", "w") as log:
        asyncio.run(run(log))


def over_http(
    environments: dict[str, Environment], use: Callable[[Callable[[str], Any], httpx.AsyncClient], Any]
) -> None:
    """Run `use(open, http)` against the application, without a socket."""

    async def run() -> None:
        app = http_app(environments)
        transport = httpx.ASGITransport(app=app)
        base = "http://127.0.0.1:8765"
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url=base) as http,
        ):

            def open_client(path: str) -> Client:
                return Client(streamable_http_client(f"{base}{path}/mcp", http_client=http))

            await use(open_client, http)

    asyncio.run(run())


def test_http_sessions_are_kept_by_their_path(boatyard: Environment, expected) -> None:
    async def use(open_client, http: httpx.AsyncClient) -> None:
        path = "/environments/boatyard/seeds/3/sessions"
        calls = script(boatyard.session(SEED))
        first: list = []
        second: list = []
        for call in calls:  # a new MCP connection for each call, two sessions in turn
            for name, seen in (("a", first), ("b", second)):
                async with open_client(f"{path}/{name}") as client:
                    seen += await replay(client, [call])
        assert first == expected and second == expected
        assert (await http.delete(f"{path}/a")).status_code == 204
        assert (await http.delete(f"{path}/a")).status_code == 404
        async with open_client(f"{path}/a") as client:
            assert await replay(client, calls) == expected

    over_http({"boatyard": boatyard}, use)


def test_http_refuses_environments_it_does_not_have(boatyard: Environment) -> None:
    store = SessionStore({"boatyard": boatyard}, max_sessions=1)
    path = {"environment": "boatyard", "seed": 3, "session": "a"}
    assert store.session(path) is store.session(path)
    with pytest.raises(MCPError, match="no environment 'sea'"):
        store.tools({**path, "environment": "sea"})
    with pytest.raises(MCPError, match="sessions are open"):
        store.session({**path, "session": "b"})
    assert store.close(path) and len(store) == 0
    assert store.session({**path, "session": "b"}).now == boatyard.session(3).now


def test_random_calls_agree_between_engine_and_mcp(boatyard: Environment) -> None:
    rng = random.Random(5)
    session = boatyard.session(8)
    boats = [b["boat_id"] for b in session.rows("boat")]
    calls: list[tuple[str, dict[str, Any]]] = []
    for _ in range(60):
        tool = rng.choice(boatyard.tools)
        values = ["open", "ashore", 1, -3, 2.5, None, True, "2031-05-01", "2031-05-01T10:00:00", *boats]
        calls.append(
            (
                tool.name,
                {n: rng.choice(values) for n in tool.input_schema["properties"] if rng.random() < 0.7},
            )
        )

    async def run() -> None:
        async with Client(build_server(boatyard, 8)) as client:
            assert await replay(client, calls) == as_seen([session.call(*call) for call in calls])

    asyncio.run(run())
