"""The decoder against transformers (golden vectors), and its behaviour on packed rows."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from toolverse_jax.policy import (
    JaxSampler,
    SampleRequest,
    abstract_params,
    head_weights,
    hidden_states,
    init_policy,
    load_model_config,
    load_policy,
)

GOLDEN = Path(__file__).parent.parent / "golden"
NAMES = ("qwen2", "qwen3", "qwen3_bias")


def _logits(policy, tokens, **options):
    tokens = jnp.asarray(tokens)[None]
    positions = jnp.arange(tokens.shape[1])[None]

    @jax.jit
    def run(params):
        hidden = hidden_states(policy, params, tokens, jnp.ones_like(tokens), positions, **options)
        return (hidden @ head_weights(policy, params).T.astype(hidden.dtype))[0]

    return np.asarray(run(policy.params))


@pytest.mark.parametrize("name", NAMES)
def test_logits_equal_those_of_transformers(name):
    policy = load_policy(GOLDEN / name)
    vectors = np.load(GOLDEN / name / "vectors.npz")
    assert np.abs(vectors["logits"]).max() > 1  # the vectors are not degenerate
    np.testing.assert_allclose(_logits(policy, vectors["tokens"]), vectors["logits"], atol=1e-4)


@pytest.mark.parametrize("name", ["qwen2", "qwen3_bias"])  # test_sampler.py runs qwen3
def test_the_sampler_continues_greedily_like_transformers(name):
    policy = load_policy(GOLDEN / name)
    vectors = np.load(GOLDEN / name / "vectors.npz")
    sampler = JaxSampler(policy, policy.params, slots=1, max_length=128)
    count = vectors["greedy"].size
    sampler.submit(
        SampleRequest(sequence_id="a", tokens=vectors["tokens"], max_new_tokens=count, temperature=0.0)
    )
    (result,) = sampler.run()
    np.testing.assert_array_equal(result.tokens, vectors["greedy"])


def test_a_packed_row_equals_its_sequences_alone():
    policy = load_policy(GOLDEN / "qwen3")
    tokens = np.load(GOLDEN / "qwen3" / "vectors.npz")["tokens"]
    first, second = tokens[:17], tokens[17:36]
    row = np.concatenate([first, second, np.zeros(5, np.int32)])[None]
    segment_ids = np.array([[1] * 17 + [2] * 19 + [0] * 5])
    positions = np.array([[*range(17), *range(19), *([0] * 5)]])
    run = jax.jit(hidden_states, static_argnums=0)
    hidden = run(policy, policy.params, row, segment_ids, positions)
    for part, tokens_alone in ((hidden[:, :17], first), (hidden[:, 17:36], second)):
        alone = run(
            policy,
            policy.params,
            tokens_alone[None],
            np.ones((1, tokens_alone.size), np.int32),
            np.arange(tokens_alone.size)[None],
        )
        np.testing.assert_allclose(part, alone, atol=1e-5)


def test_rope_theta_changes_the_logits():
    policy = load_policy(GOLDEN / "qwen3")
    tokens = np.load(GOLDEN / "qwen3" / "vectors.npz")["tokens"]
    other = type(policy).from_config(dataclasses.replace(policy.config, rope_theta=77.0), policy.params)
    assert np.abs(_logits(policy, tokens) - _logits(other, tokens)).max() > 1e-2


def test_bfloat16_compute_stays_near_float32():
    policy = load_policy(GOLDEN / "qwen2")
    tokens = np.load(GOLDEN / "qwen2" / "vectors.npz")["tokens"]
    narrow = _logits(policy, tokens, dtype=jnp.bfloat16).astype(np.float32)
    wide = _logits(policy, tokens)
    assert np.abs(narrow - wide).mean() < 0.02 * np.abs(wide).max()


def test_initial_parameters_have_the_abstract_shapes_and_depend_on_the_key():
    config = load_model_config(GOLDEN / "qwen3_bias")
    first, again = init_policy(config, jax.random.key(1)), init_policy(config, jax.random.key(1))
    shapes = jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), abstract_params(config))
    assert jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), first.params) == shapes
    jax.tree.map(np.testing.assert_array_equal, first.params, again.params)
    other = init_policy(config, jax.random.key(2))
    assert not np.array_equal(first.params["embed"], other.params["embed"])
    layers = first.params["layers"]["mlp"]["up"]
    assert not np.array_equal(layers[0], layers[1])
    assert first == other and hash(first) == hash(other)  # static under jit, whatever the parameters
