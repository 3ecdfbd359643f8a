"""An engine that plays given token sequences: oracle evaluation, golden traces, tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from toolverse_jax.errors import EngineError
from toolverse_jax.rollout.engine import Generation, GenerationRequest, sequence_task_id

Script = Sequence[Sequence[int]]
"""Token ids of each model call of an episode, stop token included."""


class ScriptedEngine:
    """Plays a script for each episode with logprob 0, under the limits of every request.

    Args:
        scripts: the script of every episode, or one script by task id.
    """

    def __init__(self, scripts: Script | Mapping[str, Script], *, policy_version: int = 0) -> None:
        self._scripts = scripts
        self._calls: dict[str, int] = {}
        self._version = policy_version
        self.requests: list[GenerationRequest] = []
        """Every request so far."""

    async def generate(self, request: GenerationRequest) -> Generation:
        self.requests.append(request)
        script = self._script(request.sequence_id)
        index = self._calls.get(request.sequence_id, 0)
        if index >= len(script):
            raise EngineError(
                f"the script of {request.sequence_id} has {len(script)} model calls, call {index + 1} was asked for"
            )
        self._calls[request.sequence_id] = index + 1
        planned = [int(token) for token in script[index]]
        stops = [position for position, token in enumerate(planned) if token in request.stop_ids]
        tokens = planned[: stops[0] + 1] if stops else planned
        stopped = bool(stops) and len(tokens) <= request.max_new_tokens
        tokens = tokens[: request.max_new_tokens]
        return Generation(
            tokens=np.asarray(tokens, np.int32),
            logprobs=np.zeros(len(tokens), np.float32),
            finish_reason="stop" if stopped else "length",
            policy_version=self._version,
        )

    def release(self, sequence_id: str) -> None:
        self._calls.pop(sequence_id, None)

    def set_params(self, params: Any, version: int) -> None:
        del params
        self._version = version

    def _script(self, sequence_id: str) -> Script:
        if not isinstance(self._scripts, Mapping):
            return self._scripts
        task_id = sequence_task_id(sequence_id)
        if task_id not in self._scripts:
            raise EngineError(f"there is no script for task {task_id!r}")
        return self._scripts[task_id]
