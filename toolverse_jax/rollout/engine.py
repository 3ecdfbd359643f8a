"""The contract between episodes and whatever samples tokens for them."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from typing import Any, Literal, Protocol

import numpy as np

FinishReason = Literal["stop", "length"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class GenerationRequest:
    """One model call. Prompts of one sequence only ever grow, so an engine may keep its cache."""

    sequence_id: str
    """The episode; see `sequence_id`."""
    tokens: np.ndarray
    """int32, the whole prompt."""
    max_new_tokens: int
    temperature: float = 1.0
    """0 is greedy."""
    top_p: float = 1.0
    top_k: int = 0
    """0: no limit."""
    stop_ids: tuple[int, ...] = ()
    """Sampling ends after one of these; it is part of the result."""
    seed: int = 0
    """31-bit seed of this call alone."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Generation:
    """What an engine sampled."""

    tokens: np.ndarray
    """int32, the stop token included."""
    logprobs: np.ndarray
    """float32, of each token at the sampling temperature."""
    finish_reason: FinishReason
    """`stop`: ended by a stop token; `length`: by `max_new_tokens`."""
    policy_version: int = 0


class RolloutEngine(Protocol):
    """Samples for many episodes at once; the result of a call depends on its request alone."""

    async def generate(self, request: GenerationRequest) -> Generation:
        """Sample one continuation.

        Raises:
            EngineError: the engine cannot answer.
        """
        ...

    def release(self, sequence_id: str) -> None:
        """Forget a sequence; unknown ones are ignored."""
        ...

    def set_params(self, params: Any, version: int) -> None:
        """Use new parameters from the next call on; caches of old parameters are void."""
        ...


def call_seed(seed: int, task_id: str, sample_index: int, call_index: int) -> int:
    """Derive the 31-bit seed of one model call, so that a resumed run asks for the same samples."""
    key = "\x1f".join((str(seed), task_id, str(sample_index), str(call_index)))
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=4).digest(), "big") >> 1


def sequence_id(task_id: str, sample_index: int, attempt: int = 0) -> str:
    """Name the sequence of one episode; no two episodes that run together share it."""
    return f"{task_id}#{sample_index}.{attempt}"


def sequence_task_id(name: str) -> str:
    """Return the task of a sequence named by `sequence_id`."""
    return name.rpartition("#")[0]


def check_generation(request: GenerationRequest, tokens: Sequence[int], logprobs: np.ndarray) -> str:
    """Return what is wrong with an engine's answer, empty when nothing is."""
    if not 0 < len(tokens) <= request.max_new_tokens:
        return f"returned {len(tokens)} tokens for max_new_tokens={request.max_new_tokens}"
    if len(logprobs) != len(tokens):
        return f"returned {len(logprobs)} logprobs for {len(tokens)} tokens"
    if not np.all(np.isfinite(logprobs)):
        return "returned a logprob that is not finite"
    return ""
