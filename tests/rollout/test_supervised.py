"""A golden trajectory is token for token what a rollout of a perfect policy is."""

from __future__ import annotations

import asyncio
import dataclasses

import numpy as np
import pytest

from toolverse_jax.environment import Environment
from toolverse_jax.errors import TaskError
from toolverse_jax.rollout import (
    Renderer,
    ScriptedEngine,
    check_trajectory,
    golden_script,
    golden_trajectory,
    run_episode,
)
from toolverse_jax.types import GoldenCall, Task, TaskTurn


def test_a_golden_trajectory_equals_the_rollout_of_a_policy_that_samples_it(
    task: Task, environment: Environment, renderer: Renderer
):
    golden = golden_trajectory(task, environment, renderer)
    check_trajectory(golden)
    engine = ScriptedEngine(golden_script(task, renderer))
    rollout = asyncio.run(run_episode(task, environment, engine, renderer, seed=9, sample_index=2))
    for name in ("tokens", "loss_mask", "turn_ids", "turn_rewards"):
        assert np.array_equal(getattr(golden, name), getattr(rollout, name)), name


def test_the_loss_covers_the_assistant_and_only_the_assistant(
    task: Task, environment: Environment, renderer: Renderer
):
    golden = golden_trajectory(task, environment, renderer)
    ids = [token for call in golden_script(task, renderer) for token in call]
    assert golden.tokens[golden.loss_mask].tolist() == ids
    learned = renderer.decode(ids)
    assert learned.startswith(
        '<tool_call>\n{"name": "list_boats", "arguments": {}}\n</tool_call><|im_end|>Here.'
    )
    assert learned.endswith("</tool_call><|im_end|>Done.<|im_end|>")


def test_it_works_inside_an_event_loop(task: Task, environment: Environment, renderer: Renderer):
    async def inside() -> int:
        return len(golden_trajectory(task, environment, renderer).tokens)

    assert asyncio.run(inside()) == len(golden_trajectory(task, environment, renderer).tokens)


def test_a_golden_trace_that_does_not_play_is_an_error(
    task: Task, environment: Environment, renderer: Renderer
):
    silent = TaskTurn(user="Nothing to do.", golden=(), answer="Fine.")
    assert (
        golden_trajectory(dataclasses.replace(task, turns=(silent,)), environment, renderer).trace_score == 1
    )
    broken = GoldenCall(tool="get_boat", arguments={"boat_id": "nope"})
    bad = dataclasses.replace(task, turns=(TaskTurn(user="Look.", golden=(broken,)),))
    with pytest.raises(TaskError, match="slipway-1 does not play"):
        golden_trajectory(bad, environment, renderer)
