"""The embedded engine: many waiting episodes share the batches of one `policy.sampler.JaxSampler`.

Import this module by name; it loads JAX, which the rest of `rollout` does not.
"""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np

from toolverse_jax.errors import EngineError
from toolverse_jax.policy.sampler import JaxSampler, SampleRequest, SampleResult
from toolverse_jax.rollout.engine import Generation, GenerationRequest

_QUIET_PASSES = 4
"""Passes of the event loop without a new request after which all episodes are taken to wait."""


class JaxEngine:
    """Serves requests with continuous batching inside the event loop.

    The sampler runs in the loop's own thread and only between passes in which no episode had anything
    left to do, so no clock decides which requests share a batch: the same episodes give the same bits.

    Args:
        sampler: the sampler; nobody else may submit to it.
        policy_version: version of the parameters it holds.
    """

    def __init__(self, sampler: JaxSampler, *, policy_version: int = 0) -> None:
        self.sampler = sampler
        self.policy_version = policy_version
        self._waiting: dict[str, asyncio.Future[SampleResult]] = {}
        self._submitted = 0
        self._driver: asyncio.Task[None] | None = None

    async def generate(self, request: GenerationRequest) -> Generation:
        """Sample one continuation; see `RolloutEngine`."""
        name = request.sequence_id
        try:
            self.sampler.submit(
                SampleRequest(
                    sequence_id=name,
                    tokens=request.tokens,
                    max_new_tokens=request.max_new_tokens,
                    temperature=request.temperature,
                    top_p=request.top_p,
                    top_k=request.top_k,
                    stop_ids=request.stop_ids,
                    seed=request.seed,
                )
            )
        except ValueError as error:
            raise EngineError(f"the sampler refused a request: {error}") from error
        loop = asyncio.get_running_loop()
        future: asyncio.Future[SampleResult] = loop.create_future()
        self._waiting[name] = future
        self._submitted += 1
        if self._driver is None or self._driver.done():
            self._driver = loop.create_task(self._drive())
        try:
            result = await future
        finally:
            if self._waiting.get(name) is future:  # Cancelled: nobody wants the answer any more.
                del self._waiting[name]
                self.sampler.release(name)
        return Generation(
            tokens=np.asarray(result.tokens, np.int32),
            logprobs=np.asarray(result.logprobs, np.float32),
            finish_reason=result.finish_reason,
            policy_version=self.policy_version,
        )

    def release(self, sequence_id: str) -> None:
        """Forget a sequence and free its slot."""
        self.sampler.release(sequence_id)

    def set_params(self, params: Any, version: int) -> None:
        """Sample with other parameters from now on.

        Raises:
            EngineError: episodes are waiting for an answer of the present parameters.
        """
        if self._waiting:
            raise EngineError(f"{len(self._waiting)} episodes are waiting; finish them before set_params")
        self.sampler.set_params(params)
        self.policy_version = version

    async def _drive(self) -> None:
        """Step the sampler while episodes wait for it."""
        while self._waiting:
            await self._settle()
            if not self._waiting:
                return
            try:
                results = self.sampler.step()
            except Exception as error:  # The boundary to the devices: every waiting episode learns of it.
                self._fail(error)
                return
            for result in results:
                self._waiting.pop(result.sequence_id).set_result(result)

    async def _settle(self) -> None:
        """Let every episode go on until it waits for this engine."""
        quiet = 0
        while quiet < _QUIET_PASSES:
            before = self._submitted
            await asyncio.sleep(0)
            quiet = quiet + 1 if self._submitted == before else 0

    def _fail(self, error: Exception) -> None:
        waiting, self._waiting = self._waiting, {}
        for name, future in waiting.items():
            self.sampler.release(name)
            fault = EngineError(f"the sampler failed: {type(error).__name__}: {error}")
            fault.__cause__ = error
            future.set_exception(fault)
