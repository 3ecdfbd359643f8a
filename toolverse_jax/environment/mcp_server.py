"""MCP face of the engine: the same sessions, served over stdio, streamable HTTP or in memory.

Built on the low-level server, which serves input schemas verbatim; arguments are validated by the
engine. A failed call, one of an unknown tool included, is a tool result marked as an error with the
engine's own value, so every face answers alike. State belongs to the server (stdio, memory) or to the
URL path (HTTP), never to an MCP session id, which newer protocol versions no longer have.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import mcp_types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from toolverse_jax import __version__
from toolverse_jax.environment.engine import Environment, load_environment
from toolverse_jax.environment.session import Session
from toolverse_jax.environment.spec import EnvSpec
from toolverse_jax.types import JSON, ToolResult

SESSION_PATH = "/environments/{environment}/seeds/{seed:int}/sessions/{session}"
"""URL path of one session; its MCP endpoint is this path followed by `/mcp`."""


def tool_list(environment: Environment) -> list[mcp_types.Tool]:
    """Return the tools as MCP lists them: verbatim input schemas, output schemas, annotations."""
    tools = []
    for tool in environment.tools:
        hints = environment.plans[tool.name].annotations
        tools.append(
            mcp_types.Tool(
                name=tool.name,
                description=tool.description,
                # MCP wants the type spelled out at the root; a schema that leaves it out means the same.
                input_schema={
                    **({} if "type" in tool.input_schema else {"type": "object"}),
                    **tool.input_schema,
                },
                output_schema=dict(tool.output_schema) if tool.output_schema is not None else None,
                annotations=mcp_types.ToolAnnotations(
                    read_only_hint=hints.read_only,
                    destructive_hint=hints.destructive,
                    idempotent_hint=hints.idempotent,
                    open_world_hint=False,
                ),
            )
        )
    return tools


def to_mcp(result: ToolResult) -> mcp_types.CallToolResult:
    """Return an engine result as an MCP result, with structured and text content."""
    return mcp_types.CallToolResult(
        content=[mcp_types.TextContent(text=result.content)],
        structured_content=result.value,
        is_error=result.is_error,
    )


def _build(
    name: str,
    instructions: str,
    tools: Callable[[Any], list[mcp_types.Tool]],
    session: Callable[[Any], Session],
) -> Server[Any]:
    async def list_tools(ctx: Any, params: Any) -> mcp_types.ListToolsResult:
        return mcp_types.ListToolsResult(tools=tools(ctx))

    async def call_tool(ctx: Any, params: mcp_types.CallToolRequestParams) -> mcp_types.CallToolResult:
        return to_mcp(session(ctx).call(params.name, params.arguments or {}))

    return Server(
        name,
        version=__version__,
        instructions=instructions or None,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def build_server(environment: Environment, seed: int = 0, *, session: Session | None = None) -> Server[Any]:
    """Build a server that holds one session, for stdio and for clients in the same process.

    Args:
        environment: what is served.
        seed: episode seed of the session.
        session: serve this session instead of a new one.
    """
    live = environment.session(seed) if session is None else session
    tools = tool_list(environment)
    return _build(environment.name, environment.spec.description, lambda ctx: tools, lambda ctx: live)


def serve_stdio(source: str | Path | EnvSpec, seed: int = 0) -> None:
    """Serve one session over stdin and stdout until the client hangs up.

    Anything printed meanwhile goes to stderr, so it cannot break the protocol.

    Args:
        source: environment folder, `env.json`, or a specification.
        seed: episode seed.

    Raises:
        EnvironmentSpecError: the environment cannot be loaded.
    """
    with contextlib.redirect_stdout(sys.stderr):
        environment = Environment(source) if isinstance(source, EnvSpec) else load_environment(source)
        server = build_server(environment, seed)

    async def serve() -> None:
        async with stdio_server() as (reader, writer):
            with contextlib.redirect_stdout(sys.stderr):
                await server.run(reader, writer, server.create_initialization_options())

    anyio.run(serve)


class SessionStore:
    """Live sessions by (environment, seed, session name), opened when first used."""

    def __init__(self, environments: Mapping[str, Environment], max_sessions: int) -> None:
        self._environments = dict(environments)
        self._tools = {name: tool_list(environment) for name, environment in self._environments.items()}
        self._max_sessions = max_sessions
        self._sessions: dict[tuple[str, int, str], Session] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def tools(self, path: Mapping[str, Any]) -> list[mcp_types.Tool]:
        """Return the tools of the environment that a URL path names."""
        self._environment(path)
        return self._tools[path["environment"]]

    def session(self, path: Mapping[str, Any]) -> Session:
        """Return the session that a URL path names.

        Raises:
            MCPError: there is no such environment, or too many sessions are open.
        """
        environment = self._environment(path)
        key = (path["environment"], path["seed"], path["session"])
        session = self._sessions.get(key)
        if session is None:
            if len(self._sessions) >= self._max_sessions:
                raise MCPError(
                    mcp_types.INTERNAL_ERROR,
                    f"{self._max_sessions} sessions are open; close one with DELETE on its path",
                )
            session = self._sessions[key] = environment.session(path["seed"])
        return session

    def close(self, path: Mapping[str, Any]) -> bool:
        """Forget a session; tell whether it was open."""
        return self._sessions.pop((path["environment"], path["seed"], path["session"]), None) is not None

    def _environment(self, path: Mapping[str, Any]) -> Environment:
        environment = self._environments.get(path["environment"])
        if environment is None:
            raise MCPError(mcp_types.INVALID_PARAMS, f"there is no environment {path['environment']!r} here")
        return environment


def http_app(
    environments: Mapping[str, Environment], *, host: str = "127.0.0.1", max_sessions: int = 10_000
) -> Starlette:
    """Build an ASGI application that serves any number of sessions by streamable HTTP.

    `POST /environments/<name>/seeds/<seed>/sessions/<session>/mcp` is the MCP endpoint of a session,
    which opens in the start state of the seed; `DELETE` on the path without `/mcp` forgets it.

    Args:
        environments: environments by name.
        host: address the application will listen on; requests to other names are refused on loopback.
        max_sessions: limit on open sessions.
    """
    store = SessionStore(environments, max_sessions)
    server = _build(
        "toolverse", "", lambda ctx: store.tools(_path(ctx)), lambda ctx: store.session(_path(ctx))
    )

    async def close(request: Request) -> Response:
        return Response(status_code=204 if store.close(request.path_params) else 404)

    return server.streamable_http_app(
        streamable_http_path=SESSION_PATH + "/mcp",
        json_response=True,
        stateless_http=True,
        host=host,
        custom_starlette_routes=[Route(SESSION_PATH, close, methods=["DELETE"])],
    )


def _path(ctx: Any) -> Mapping[str, JSON]:
    return ctx.request.path_params


def serve_http(
    environments: Mapping[str, Environment],
    *,
    host: str = "127.0.0.1",
    port: int = 8765,
    max_sessions: int = 10_000,
) -> None:
    """Serve sessions by streamable HTTP until interrupted; see `http_app` for the paths."""
    import uvicorn

    app = http_app(environments, host=host, max_sessions=max_sessions)
    uvicorn.run(app, host=host, port=port, log_level="warning")
