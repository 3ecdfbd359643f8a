"""Controls: fake environments that every validation must reject.

Each wraps the sessions of a real environment and breaks them in a way that a careless check would
not see. They are run by the tests, and by `validate` callers who doubt it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from toolverse_jax.environment.spec import EnvSpec
from toolverse_jax.synthesis.arguments import schema_value
from toolverse_jax.synthesis.probe import OpenSession, SessionLike, seeded
from toolverse_jax.types import JSON, ToolResult


class _Wrapped:
    """A session that answers through another one; controls override `call`."""

    def __init__(self, inner: SessionLike, spec: EnvSpec, calls: int = 0):
        self._inner = inner
        self._spec = spec
        self._calls = calls

    def fork(self) -> Any:
        """Return an independent copy."""
        return type(self)(self._inner.fork(), self._spec, self._calls)

    def state_hash(self) -> str:
        """Return the hash of the wrapped session."""
        return self._inner.state_hash()

    def rows(self, entity: str) -> list[dict[str, JSON]]:
        """Return the rows of the wrapped session."""
        return self._inner.rows(entity)

    def singleton(self, name: str) -> dict[str, JSON]:
        """Return a singleton of the wrapped session."""
        return self._inner.singleton(name)

    @property
    def now(self) -> str:
        """The clock of the wrapped session."""
        return self._inner.now


class EchoSession(_Wrapped):
    """Answers every call with its own arguments and changes nothing."""

    def call(self, tool: str, arguments: Mapping[str, JSON]) -> ToolResult:
        return ToolResult(value=dict(arguments))


class AlwaysSuccessSession(_Wrapped):
    """Does what it can and calls everything else a success."""

    def call(self, tool: str, arguments: Mapping[str, JSON]) -> ToolResult:
        result = self._inner.call(tool, arguments)
        return ToolResult(value={"status": "ok"}) if result.is_error else result


class RandomSession(_Wrapped):
    """Answers with values of the right shape that mean nothing."""

    def call(self, tool: str, arguments: Mapping[str, JSON]) -> ToolResult:
        result = self._inner.call(tool, arguments)
        self._calls += 1
        rng = seeded("random control", tool, self._calls)
        return result if result.is_error else ToolResult(value=_scramble(result.value, rng))


def _scramble(value: JSON, rng: Any) -> JSON:
    if isinstance(value, Mapping):
        return {name: _scramble(part, rng) for name, part in value.items()}
    if isinstance(value, list):
        return [_scramble(part, rng) for part in value]
    if isinstance(value, bool) or value is None:
        return value
    kind = "integer" if isinstance(value, int | float) else "string"
    return schema_value({"type": kind}, rng)


class StatelessSession(_Wrapped):
    """Answers well from a copy of the first state, and forgets every change."""

    def call(self, tool: str, arguments: Mapping[str, JSON]) -> ToolResult:
        return self._inner.fork().call(tool, arguments)


CONTROLS: dict[str, Callable[[SessionLike, EnvSpec], SessionLike]] = {
    "always success": AlwaysSuccessSession,
    "echo": EchoSession,
    "random": RandomSession,
    "stateless": StatelessSession,
}
"""Name of a control -> how it wraps a session."""


def control_sessions(name: str, spec: EnvSpec, open_session: OpenSession) -> OpenSession:
    """Return a way to open sessions of a control around real ones."""
    wrap = CONTROLS[name]
    return lambda seed: wrap(open_session(seed), spec)
