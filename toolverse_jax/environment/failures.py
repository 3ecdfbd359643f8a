"""How a tool call fails: a code and one clear sentence, never an exception to the caller."""

from __future__ import annotations

from toolverse_jax.types import JSON, ToolResult


class CallFailure(Exception):
    """Stops a running call; the engine turns it into an error value and keeps the state."""

    def __init__(self, code: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.param = param

    def to_result(self) -> ToolResult:
        """Return the error as the environment answers it."""
        error: dict[str, JSON] = {"code": self.code, "message": self.message}
        if self.param is not None:
            error["param"] = self.param
        return ToolResult(value={"error": error}, is_error=True)
