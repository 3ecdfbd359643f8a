"""Episodes played with the embedded sampler: reproducible, cached, and with the policy's own logprobs."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from toolverse_jax.config import RolloutConfig
from toolverse_jax.environment import Environment
from toolverse_jax.errors import EngineError
from toolverse_jax.policy import (
    JaxSampler,
    ModelConfig,
    Policy,
    hidden_states,
    init_policy,
    token_logprobs,
)
from toolverse_jax.rollout import Collection, GenerationRequest, Renderer, RolloutEngine, collect
from toolverse_jax.rollout.jax_engine import JaxEngine
from toolverse_jax.types import Task

CONFIG = RolloutConfig(
    max_call_tokens=6, max_response_tokens=200, max_steps_per_turn=2, slots=3, max_length=512
)


@pytest.fixture(scope="module")
def policy(tokenizer: Any) -> Policy:
    config = ModelConfig(
        model_type="qwen3",
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=48,
        num_layers=1,
        num_heads=2,
        num_kv_heads=1,
        head_dim=16,
        tie_word_embeddings=True,
    )
    return init_policy(config, jax.random.key(0))


@pytest.fixture(scope="module")
def engine(policy: Policy) -> JaxEngine:
    return JaxEngine(JaxSampler(policy, policy.params, slots=CONFIG.slots, max_length=CONFIG.max_length))


def request(name: str, tokens: list[int], **options: Any) -> GenerationRequest:
    options = {"max_new_tokens": 4, "seed": 1, **options}
    return GenerationRequest(sequence_id=name, tokens=np.asarray(tokens, np.int32), **options)


def run(task: Task, environment: Environment, engine: RolloutEngine, renderer: Renderer) -> Collection:
    tasks = [task, dataclasses.replace(task, id="slipway-2")]
    return collect(tasks, {"slipway": environment}, engine, renderer, group_size=3, seed=7, config=CONFIG)


def test_the_same_seed_gives_the_same_trajectories_bit_for_bit(
    task: Task, environment: Environment, renderer: Renderer, engine: JaxEngine
):
    first, second = (run(task, environment, engine, renderer) for _ in range(2))
    assert len(first) == len(second) == 2 and not first.dropped
    for group, other in zip(first, second, strict=True):
        assert len({member.tokens.tobytes() for member in group}) == 3
        for member, twin in zip(group, other, strict=True):
            assert member.tokens.tobytes() == twin.tokens.tobytes()
            assert member.sampler_logprobs.tobytes() == twin.sampler_logprobs.tobytes()
            assert member.stats["model_calls"] >= 3
    assert engine.sampler.num_open == 0
    assert engine.sampler.stats["reused_tokens"] > engine.sampler.stats["prefill_tokens"]


def test_sampler_logprobs_are_those_of_the_policy_on_the_whole_trajectory(
    task: Task, environment: Environment, renderer: Renderer, engine: JaxEngine, policy: Policy
):
    member = run(task, environment, engine, renderer)[0][0]
    tokens = jnp.asarray(member.tokens)[None]
    ones, positions = jnp.ones_like(tokens), jnp.arange(tokens.shape[1])[None]
    hidden = hidden_states(policy, policy.params, tokens, ones, positions)
    logprobs, _ = token_logprobs(policy, policy.params, hidden[:, :-1], tokens[:, 1:], 1.0)
    where = np.flatnonzero(member.loss_mask)
    np.testing.assert_allclose(
        np.asarray(logprobs)[0, where - 1], member.sampler_logprobs[where], atol=2e-5, rtol=0
    )


def test_a_refused_request_and_parameters_during_an_episode_are_engine_errors(
    engine: JaxEngine, policy: Policy
):
    async def refused() -> None:
        await engine.generate(request("long", [1] * 600))

    async def in_between() -> None:
        waiting = asyncio.create_task(engine.generate(request("a", [1, 2, 3])))
        await asyncio.sleep(0)
        with pytest.raises(EngineError, match="1 episodes are waiting"):
            engine.set_params(policy.params, 2)
        assert len((await waiting).tokens) == 4

    with pytest.raises(EngineError, match="refused a request"):
        asyncio.run(refused())
    asyncio.run(in_between())
    engine.set_params(policy.params, 1)
    assert asyncio.run(engine.generate(request("a", [1, 2, 3]))).policy_version == 1
    engine.set_params(policy.params, 0)


def test_a_cancelled_episode_leaves_the_others_and_no_open_request(engine: JaxEngine):
    async def play() -> tuple[list[int], list[int]]:
        alone = await engine.generate(request("x", [5, 6, 7]))
        engine.release("x")
        kept = asyncio.create_task(engine.generate(request("x", [5, 6, 7])))
        lost = asyncio.create_task(engine.generate(request("y", [8, 9], max_new_tokens=100)))
        await asyncio.sleep(0)
        lost.cancel()
        return alone.tokens.tolist(), (await kept).tokens.tolist()

    alone, kept = asyncio.run(play())
    assert alone == kept and engine.sampler.num_open == 0


def test_a_broken_sampler_fails_every_waiting_episode(policy: Policy):
    class Broken(JaxSampler):
        def step(self) -> Any:
            raise RuntimeError("out of memory")

    engine = JaxEngine(Broken(policy, policy.params, slots=2, max_length=64))

    async def play() -> list[Any]:
        calls = [engine.generate(request(name, [1, 2])) for name in ("a", "b")]
        return await asyncio.gather(*calls, return_exceptions=True)

    answers = asyncio.run(play())
    assert [type(answer) for answer in answers] == [EngineError, EngineError]
    assert "RuntimeError: out of memory" in str(answers[0]) and engine.sampler.num_open == 0
