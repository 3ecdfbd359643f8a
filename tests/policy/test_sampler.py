"""The sampler: equal to the trainer's logprobs, independent of the batch, repeatable, no recompilation."""

from __future__ import annotations

import functools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from toolverse_jax.policy import JaxSampler, SampleRequest, hidden_states, load_policy, token_logprobs
from toolverse_jax.policy.decode import decode, prefill

GOLDEN = Path(__file__).parent.parent / "golden"
LENGTH = 384


@pytest.fixture(scope="module")
def policy():
    return load_policy(GOLDEN / "qwen3")


@pytest.fixture
def sampler(policy):
    return JaxSampler(policy, policy.params, slots=4, max_length=LENGTH)


def _prompts(count, seed=0, low=2, high=90):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 96, rng.integers(low, high), dtype=np.int32) for _ in range(count)]


def _request(name, tokens, **changes):
    settings = {"max_new_tokens": 20, "temperature": 0.9, "seed": 5, **changes}
    return SampleRequest(sequence_id=name, tokens=np.asarray(tokens), **settings)


def _sample(sampler, *requests):
    for request in requests:
        sampler.submit(request)
    return {result.sequence_id: result for result in sampler.run()}


@functools.partial(jax.jit, static_argnums=0)
def _row_logprobs(policy, params, tokens, segment_ids, temperature):
    positions = jnp.arange(LENGTH)[None]
    hidden = hidden_states(policy, params, tokens, segment_ids, positions, attention="dense")
    return token_logprobs(policy, params, hidden[:, :-1], tokens[:, 1:], temperature)[0]


def _trainer_logprobs(policy, prompt, result, temperature):
    tokens = np.zeros((1, LENGTH), np.int32)
    size = prompt.size + result.tokens.size
    tokens[0, :size] = np.concatenate([prompt, result.tokens])
    segment_ids = (np.arange(LENGTH) < size).astype(np.int32)[None]
    row = _row_logprobs(policy, policy.params, tokens, segment_ids, np.float32(temperature))
    return np.asarray(row)[0, prompt.size - 1 : size - 1]


def test_logprobs_equal_those_of_the_trainer_over_several_turns(policy, sampler):
    histories = {f"s{i}": prompt for i, prompt in enumerate(_prompts(6))}  # more than there are slots
    rng = np.random.default_rng(1)
    for _ in range(3):
        results = _sample(sampler, *(_request(name, tokens) for name, tokens in histories.items()))
        assert results.keys() == histories.keys()
        for name, result in results.items():
            assert np.isfinite(result.logprobs).all() and result.logprobs.dtype == np.float32
            if name in ("s0", "s5"):
                expected = _trainer_logprobs(policy, histories[name], result, 0.9)
                np.testing.assert_allclose(result.logprobs, expected, atol=1e-4)
            reply = rng.integers(0, 96, rng.integers(1, 40), dtype=np.int32)
            histories[name] = np.concatenate([histories[name], result.tokens, reply])
    assert sampler.stats["reused_tokens"] > 0


def test_a_result_does_not_depend_on_the_batch(policy, sampler):
    prompts = _prompts(4, seed=2)
    requests = [_request(str(i), tokens, seed=i, temperature=0.5 + i / 4) for i, tokens in enumerate(prompts)]
    together = _sample(sampler, *requests)
    for request in (requests[0], requests[3]):
        alone = _sample(JaxSampler(policy, policy.params, slots=1, max_length=LENGTH), request)
        (result,) = alone.values()
        other = together[result.sequence_id]
        np.testing.assert_array_equal(other.tokens, result.tokens)
        np.testing.assert_allclose(other.logprobs, result.logprobs, atol=1e-5)


def test_the_same_submissions_give_the_same_bits(policy):
    def play():
        sampler = JaxSampler(policy, policy.params, slots=4, max_length=LENGTH)
        first = _sample(sampler, *(_request(str(i), p, seed=i) for i, p in enumerate(_prompts(5, seed=3))))
        longer = [
            np.concatenate([p, first[str(i)].tokens, [1, 2]]) for i, p in enumerate(_prompts(5, seed=3))
        ]
        second = _sample(sampler, *(_request(str(i), p, seed=i) for i, p in enumerate(longer)))
        return [(*(r.tokens.tobytes(), r.logprobs.tobytes()),) for r in (*first.values(), *second.values())]

    assert play() == play()


def test_only_new_tokens_are_prefilled(sampler):
    (prompt,) = _prompts(1, low=60)
    result = _sample(sampler, _request("a", prompt))["a"]
    assert sampler.stats["prefill_tokens"] == prompt.size - 1
    longer = np.concatenate([prompt, result.tokens, [3, 4, 5]])
    _sample(sampler, _request("a", longer))
    # The last sampled token and all but the last new one.
    assert sampler.stats["prefill_tokens"] == prompt.size - 1 + 3


def test_siblings_prefill_their_common_prompt_once(policy, sampler):
    (prompt,) = _prompts(1, seed=4, low=80)
    results = _sample(sampler, *(_request(str(i), prompt, seed=i) for i in range(4)))
    assert sampler.stats["prefill_tokens"] == prompt.size - 1
    assert len({result.tokens.tobytes() for result in results.values()}) == 4
    for name in ("0", "3"):
        expected = _trainer_logprobs(policy, prompt, results[name], 0.9)
        np.testing.assert_allclose(results[name].logprobs, expected, atol=1e-4)


def test_a_rewritten_history_is_sampled_as_if_it_were_new(policy, sampler):
    prompt, other = _prompts(2, seed=5, low=50)
    _sample(sampler, _request("a", prompt))
    changed = np.concatenate([prompt[:30], other])
    reused = _sample(sampler, _request("a", changed))["a"]
    fresh = _sample(JaxSampler(policy, policy.params, slots=4, max_length=LENGTH), _request("a", changed))[
        "a"
    ]
    np.testing.assert_array_equal(reused.tokens, fresh.tokens)


def test_stop_tokens_end_a_continuation_and_belong_to_it(policy, sampler):
    (prompt,) = _prompts(1, seed=6)
    free = _sample(sampler, _request("a", prompt))["a"]
    assert free.finish_reason == "length" and free.tokens.size == 20
    stop = int(free.tokens[7])
    position = int(np.flatnonzero(free.tokens == stop)[0])
    for changes, eos in (({"stop_ids": [stop]}, ()), ({}, (stop,))):
        other = JaxSampler(policy, policy.params, slots=4, max_length=LENGTH, eos_ids=eos)
        stopped = _sample(other, _request("a", prompt, **changes))["a"]
        assert stopped.finish_reason == "stop"
        np.testing.assert_array_equal(stopped.tokens, free.tokens[: position + 1])


def test_a_continuation_longer_than_one_run_of_steps_is_seamless(policy, sampler):
    (prompt,) = _prompts(1, seed=7)
    result = _sample(sampler, _request("a", prompt, max_new_tokens=75))["a"]
    assert result.tokens.size == 75
    np.testing.assert_allclose(result.logprobs, _trainer_logprobs(policy, prompt, result, 0.9), atol=1e-4)


def test_the_room_in_the_cache_bounds_a_continuation(sampler):
    prompt = np.ones(LENGTH - 6, np.int32)
    result = _sample(sampler, _request("a", prompt))["a"]
    assert result.tokens.size == 6 and result.finish_reason == "length"


def test_new_parameters_drop_the_cache(policy, sampler):
    (prompt,) = _prompts(1, seed=8, low=40)
    _sample(sampler, _request("a", prompt))
    other = jax.tree.map(lambda leaf: leaf * 1.05, policy.params)
    sampler.set_params(other)
    result = _sample(sampler, _request("a", prompt))["a"]
    fresh = _sample(JaxSampler(policy, other, slots=4, max_length=LENGTH), _request("a", prompt))["a"]
    np.testing.assert_array_equal(result.tokens, fresh.tokens)
    np.testing.assert_array_equal(result.logprobs, fresh.logprobs)
    sampler.submit(_request("a", prompt))
    with pytest.raises(ValueError, match="1 requests are open"):
        sampler.set_params(policy.params)


def test_a_released_sequence_is_dropped_and_others_finish(sampler):
    prompts = _prompts(6, seed=9)
    for index, prompt in enumerate(prompts):
        sampler.submit(_request(str(index), prompt))
    sampler.release("1")
    sampler.release("5")
    assert {result.sequence_id for result in sampler.run()} == {"0", "2", "3", "4"}
    assert sampler.num_open == 0 and sampler.step() == []


def test_requests_may_join_between_steps(policy, sampler):
    prompts = _prompts(3, seed=10)
    sampler.submit(_request("a", prompts[0], max_new_tokens=70))
    results = sampler.step()
    sampler.submit(_request("b", prompts[1], seed=1))
    sampler.submit(_request("c", prompts[2], seed=2))
    results = {result.sequence_id: result for result in (*results, *sampler.run())}
    alone = _sample(
        JaxSampler(policy, policy.params, slots=4, max_length=LENGTH), _request("c", prompts[2], seed=2)
    )
    np.testing.assert_array_equal(results["c"].tokens, alone["c"].tokens)
    np.testing.assert_allclose(
        results["a"].logprobs, _trainer_logprobs(policy, prompts[0], results["a"], 0.9), atol=1e-4
    )


def test_nothing_compiles_after_warm_up(policy):
    def play(seed):
        sampler = JaxSampler(policy, policy.params, slots=4, max_length=LENGTH)
        histories = dict(enumerate(_prompts(6, seed=seed, low=60, high=64)))
        for turn in range(3):
            results = _sample(sampler, *(_request(str(i), p, seed=i) for i, p in histories.items()))
            for index, prompt in histories.items():
                reply = np.full(5 + turn, seed, np.int32)
                histories[index] = np.concatenate([prompt, results[str(index)].tokens, reply])

    play(0)
    before = (decode._cache_size(), prefill._cache_size())
    assert min(before) > 0
    play(1)
    assert (decode._cache_size(), prefill._cache_size()) == before


@pytest.mark.slow
def test_bfloat16_compute_stays_near_the_trainer(policy):
    sampler = JaxSampler(policy, policy.params, slots=1, max_length=LENGTH, dtype=jnp.bfloat16)
    prompt = np.array([7], np.int32)
    result = _sample(sampler, _request("a", prompt))["a"]
    expected = _trainer_logprobs(policy, prompt, result, 0.9)
    assert np.abs(result.logprobs - expected).mean() < 0.1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tokens": []}, "prompt"),
        ({"tokens": [1] * LENGTH}, "prompt"),
        ({"tokens": [96]}, "token ids"),
        ({"max_new_tokens": 0}, "max_new_tokens"),
        ({"temperature": -1.0}, "temperature"),
        ({"top_p": 0.0}, "top_p"),
        ({"stop_ids": range(9)}, "stop ids"),
    ],
)
def test_bad_requests_are_refused(sampler, changes, words):
    with pytest.raises(ValueError, match=words):
        sampler.submit(_request("a", changes.pop("tokens", [1, 2]), **changes))


def test_a_sequence_has_one_open_request_at_most(sampler):
    sampler.submit(_request("a", [1, 2]))
    with pytest.raises(ValueError, match="already has an open request"):
        sampler.submit(_request("a", [1, 2]))
