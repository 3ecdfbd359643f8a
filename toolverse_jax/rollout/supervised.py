"""Renders golden traces to tokens exactly as a rollout would, for the supervised warm start and the oracle."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from toolverse_jax.errors import TaskError
from toolverse_jax.rollout.agent_loop import run_episode
from toolverse_jax.rollout.limits import EpisodeLimits
from toolverse_jax.rollout.renderer import Renderer
from toolverse_jax.rollout.scripted_engine import ScriptedEngine
from toolverse_jax.types import Task, Trajectory

if TYPE_CHECKING:
    from toolverse_jax.environment import Environment

DEFAULT_ANSWER = "Done."
"""What the golden assistant says where a turn has no answer of its own."""


def golden_script(task: Task, renderer: Renderer) -> list[list[int]]:
    """Return the ids of each model call of a golden trace: one call a message, then the answer."""
    script: list[list[int]] = []
    for turn in task.turns:
        script += [renderer.assistant("", [call.as_tool_call()]) for call in turn.golden]
        script.append(renderer.assistant(turn.answer or DEFAULT_ANSWER))
    return script


def golden_trajectory(
    task: Task,
    environment: Environment,
    renderer: Renderer,
    *,
    limits: EpisodeLimits | None = None,
    system: str = "",
) -> Trajectory:
    """Play the golden trace through the agent loop and return its trajectory.

    The loss mask covers the assistant's tokens, stop tokens included; logprobs there are 0.

    Args:
        limits: default: no limit that a golden trace could reach.

    Raises:
        TaskError: the golden trace does not complete the task with every turn rewarded and no tool error.
    """
    steps = max((len(turn.golden) for turn in task.turns), default=0) + 1
    trajectory = _run_to_end(
        run_episode(
            task,
            environment,
            ScriptedEngine(golden_script(task, renderer)),
            renderer,
            limits=limits or _unlimited(steps),
            system=system,
        )
    )
    errors = int(trajectory.stats["tool_errors"])
    if trajectory.status != "completed" or errors or not trajectory.trace_score:
        rewards = [float(reward) for reward in trajectory.turn_rewards]
        raise TaskError(
            f"the golden trace of task {task.id} does not play: status {trajectory.status}, turn rewards {rewards}, {errors} tool errors"
            f"{', ' + trajectory.error if trajectory.error else ''}; rebuild the task for its environment"
        )
    return trajectory


def _unlimited(steps: int) -> EpisodeLimits:
    return EpisodeLimits(
        max_prompt_tokens=1 << 24,
        max_response_tokens=1 << 24,
        max_call_tokens=1 << 24,
        max_length=1 << 24,
        max_steps_per_turn=steps,
    )


def _run_to_end(coroutine: Coroutine[Any, Any, Trajectory]) -> Trajectory:
    """Run a coroutine that never waits; works inside and outside of an event loop."""
    try:
        coroutine.send(None)
    except StopIteration as finished:
        return finished.value
    coroutine.close()
    raise AssertionError("a scripted episode waited for something")
