"""Plays one episode: user turns, model calls, tool calls, rewards.

A user turn lasts until the policy answers without a tool call, or its steps are used up. What goes wrong
inside an episode is data: a bad call is answered to the policy, a broken engine or environment gives a
trajectory with status `failed`.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from toolverse_jax.errors import EngineError
from toolverse_jax.reward import count_extra_calls, turn_reward
from toolverse_jax.rollout.engine import (
    Generation,
    GenerationRequest,
    RolloutEngine,
    call_seed,
    check_generation,
    sequence_id,
)
from toolverse_jax.rollout.episode_record import EpisodeRecord
from toolverse_jax.rollout.limits import EpisodeLimits, Sampling
from toolverse_jax.rollout.renderer import Renderer
from toolverse_jax.rollout.tool_calls import ParsedToolCalls, parse_tool_calls
from toolverse_jax.rollout.tool_execution import Execution, execute, tool_output
from toolverse_jax.rollout.users import ScriptedUser, User
from toolverse_jax.types import Task, ToolCall, Trajectory, TrajectoryStatus

if TYPE_CHECKING:
    from toolverse_jax.environment import Environment, Session

_log = logging.getLogger(__name__)


async def run_episode(
    task: Task,
    environment: Environment,
    engine: RolloutEngine,
    renderer: Renderer,
    *,
    limits: EpisodeLimits | None = None,
    sampling: Sampling | None = None,
    sample_index: int = 0,
    seed: int = 0,
    group_id: str = "",
    attempt: int = 0,
    user: User | None = None,
    system: str = "",
    extra_calls: Literal["allow", "no_mutation"] = "allow",
) -> Trajectory:
    """Play a task once and return the trajectory; never raises for faults of engine or environment.

    The result is a pure function of task, engine parameters, `seed` and `sample_index`: each model call
    is seeded by (seed, task id, sample index, call index).

    Args:
        task: the task; its seed fixes the rows of the environment.
        environment: the environment the task names.
        engine: samples the policy.
        renderer: of the policy's tokenizer.
        limits, sampling: default `EpisodeLimits()` and `Sampling()`.
        sample_index: which of the rollouts of this task this is.
        seed: seed of the run (or of the step).
        group_id: default the task id.
        attempt: counts retries; it names the sequence for the engine and changes no sample.
        user: who speaks; default `ScriptedUser(task)`.
        system: system prompt; empty: that of the chat template.
        extra_calls: see `reward.turn_reward`.
    """
    episode = _Episode(
        task=task,
        environment=environment,
        engine=engine,
        renderer=renderer,
        limits=limits or EpisodeLimits(),
        sampling=sampling or Sampling(),
        name=sequence_id(task.id, sample_index, attempt),
        seed=seed,
        sample_index=sample_index,
        extra_calls=extra_calls,
        record=EpisodeRecord(task),
    )
    status: TrajectoryStatus
    error = ""
    try:
        status = await episode.play(user or ScriptedUser(task), system)
    except Exception as fault:  # The boundary: one broken episode is data and never ends its siblings.
        status, error = "failed", f"{type(fault).__name__}: {fault}"
        _log.warning("episode %s failed: %s", episode.name, error)
    finally:
        engine.release(episode.name)
    return episode.record.trajectory(
        status=status, error=error, group_id=group_id or task.id, sample_index=sample_index, seed=seed
    )


@dataclasses.dataclass(kw_only=True)
class _Episode:
    """The state of one running episode."""

    task: Task
    environment: Environment
    engine: RolloutEngine
    renderer: Renderer
    limits: EpisodeLimits
    sampling: Sampling
    name: str
    seed: int
    sample_index: int
    extra_calls: Literal["allow", "no_mutation"]
    record: EpisodeRecord
    prompt_tokens: int = 0
    exhausted: bool = False
    """No room is left for what should follow."""
    unanswered: Sequence[int] | None = None
    """Sampled ids of a message that nothing follows yet."""

    async def play(self, user: User, system: str) -> TrajectoryStatus:
        """Play all user turns and say how the episode ended."""
        session = self.environment.session(self.task.seed)
        for turn in range(self.task.num_turns):
            message = await user.message(turn, self.record.messages)
            if message is None:
                break
            if not (self._open(message, system) if turn == 0 else self._continue(message, turn)):
                self.exhausted = True
                break
            self.record.turn_reached[turn] = True
            await self._turn(turn, session)
            if self.exhausted:
                break
        if self.exhausted:
            return "context_exhausted"
        return "step_limit" if self.record.counts["step_limit_turns"] else "completed"

    @property
    def room(self) -> int:
        """Tokens that may still be appended."""
        used = len(self.record.tokens)
        return min(
            self.limits.max_response_tokens - (used - self.prompt_tokens), self.limits.max_length - used
        )

    def _open(self, message: str, system: str) -> bool:
        """Append the first prompt, unless it is too long."""
        prompt = self.renderer.initial_prompt(self.environment.tools, message, system)
        if len(prompt) > self.limits.max_prompt_tokens or len(prompt) >= self.limits.max_length:
            return False
        user_start = self.renderer.user_start(prompt)
        record = self.record
        span = record.append(prompt[:user_start], 0)
        if user_start:
            record.note("system", self.renderer.decode(prompt[:user_start]), turn_id=0, span=span)
        record.note("user", message, turn_id=1, span=record.append(prompt[user_start:], 1))
        self.prompt_tokens = len(prompt)
        record.counts["prompt_tokens"] = float(len(prompt))
        return True

    def _continue(self, message: str, turn: int) -> bool:
        span = self._append(self.renderer.user_turn(message), turn)
        if span is not None:
            self.record.note("user", message, turn_id=turn + 1, span=span)
        return span is not None

    def _append(self, block: Sequence[int], turn: int) -> tuple[int, int] | None:
        """Append a block if room is left for an answer to it, closing a cut message first."""
        closing = [] if self.unanswered is None else self.renderer.close(self.unanswered)
        ids = [*closing, *block]
        if len(ids) >= self.room:
            return None
        self.unanswered = None
        return self.record.append(ids, turn + 1)

    async def _turn(self, turn: int, session: Session) -> None:
        """Let the policy work on one user turn, then judge its calls."""
        calls: list[ToolCall] = []
        changed: list[bool] = []
        for step in range(1, self.limits.max_steps_per_turn + 1):
            parsed = await self._generate(turn)
            if not parsed.items:
                break
            execution = execute(parsed, session, self.limits, self.record)
            calls += execution.calls
            changed += execution.changed
            last = step == self.limits.max_steps_per_turn
            self.record.count("step_limit_turns", last)
            self._show_results(execution, turn, last=last)
            if self.exhausted:
                break
        golden = self.task.turns[turn]
        self.record.count("extra_calls", count_extra_calls(golden, calls))
        self.record.turn_rewards[turn] = turn_reward(
            golden, calls, changed=changed, extra_calls=self.extra_calls
        )

    def _show_results(self, execution: Execution, turn: int, *, last: bool) -> None:
        """Append tool results; nobody reads those of the last step of the last turn."""
        end = len(self.record.tokens)
        span: tuple[int, int] | None = (end, end)
        if not (last and turn == self.task.num_turns - 1):
            contents = [tool_output(result, self.limits, self.record) for _, result in execution.results]
            span = self._append(self.renderer.tool_results(contents, generate=not last), turn)
            self.exhausted = self.exhausted or span is None
        for name, result in execution.results:
            self.record.note(
                "tool",
                result.content,
                turn_id=turn + 1,
                span=span or (end, end),
                name=name,
                is_error=result.is_error,
            )

    async def _generate(self, turn: int) -> ParsedToolCalls:
        """Call the model once and append what it sampled."""
        record = self.record
        request = GenerationRequest(
            sequence_id=self.name,
            tokens=np.asarray(record.tokens, np.int32),
            max_new_tokens=min(self.limits.max_call_tokens, self.room),
            temperature=self.sampling.temperature,
            top_p=self.sampling.top_p,
            top_k=self.sampling.top_k,
            stop_ids=self.renderer.stop_ids,
            seed=call_seed(self.seed, self.task.id, self.sample_index, len(record.stop_reasons)),
        )
        answer: Generation = await self.engine.generate(request)
        fault = check_generation(request, answer.tokens, answer.logprobs)  # type: ignore[arg-type]
        if fault:
            raise EngineError(f"the engine {fault} in {self.name}")
        span = record.append(answer.tokens, turn + 1, answer.logprobs)  # type: ignore[arg-type]
        self.unanswered = [int(token) for token in answer.tokens]
        text = self.renderer.text(self.unanswered)
        parsed = parse_tool_calls(text, in_reasoning=self.renderer.opens_reasoning)
        record.note(
            "assistant",
            text,
            turn_id=turn + 1,
            span=span,
            tool_calls=[call.to_json() for call in parsed.calls],
            errors=list(parsed.errors),
            finish_reason=answer.finish_reason,
        )
        record.stop_reasons.append(answer.finish_reason)
        record.policy_versions.append(answer.policy_version)
        record.count("model_calls")
        if answer.finish_reason == "length":
            record.count("length_stops")
            self.exhausted = self.room <= 0
        return parsed
