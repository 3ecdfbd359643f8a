"""Chunked logprobs against the full softmax, and the variant that looks at loss tokens only."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from toolverse_jax.policy import (
    ModelConfig,
    Policy,
    head_weights,
    loss_budget,
    loss_token_logprobs,
    token_logprobs,
)

CONFIG = ModelConfig(
    model_type="qwen3",
    vocab_size=37,
    hidden_size=16,
    intermediate_size=16,
    num_layers=1,
    num_heads=2,
    num_kv_heads=1,
    head_dim=8,
    initializer_range=0.5,
)
TOKEN_LOGPROBS = jax.jit(token_logprobs, static_argnums=0, static_argnames="chunk")
LOSS_TOKEN_LOGPROBS = jax.jit(loss_token_logprobs, static_argnums=0, static_argnames="budget")


@pytest.fixture(scope="module")
def policy():
    rng = np.random.default_rng(1)
    params = {name: jnp.asarray(rng.normal(size=(37, 16)) / 2, jnp.float32) for name in ("embed", "head")}
    return Policy.from_config(CONFIG, params)


@pytest.fixture(scope="module")
def batch():
    rng = np.random.default_rng(0)
    hidden = jnp.asarray(rng.normal(size=(3, 29, 16)), jnp.float32)
    tokens = jnp.asarray(rng.integers(0, 37, (3, 29)))
    mask = rng.random((3, 29)) < 0.3
    mask[:, 0] = False
    return hidden, tokens, mask


def _reference(policy, hidden, targets, temperature):
    logits = hidden @ head_weights(policy, policy.params).T / temperature
    table = jax.nn.log_softmax(logits)
    chosen = jnp.take_along_axis(table, targets[..., None], axis=-1)[..., 0]
    return chosen, -jnp.sum(jnp.exp(table) * table, axis=-1)


@pytest.mark.parametrize("chunk", [8, 512])
def test_chunked_logprobs_and_entropy_equal_the_full_softmax(policy, batch, chunk):
    hidden, targets, _ = batch
    found = TOKEN_LOGPROBS(policy, policy.params, hidden, targets, 0.7, chunk=chunk)
    for left, right in zip(found, _reference(policy, hidden, targets, 0.7), strict=True):
        assert left.dtype == jnp.float32
        np.testing.assert_allclose(left, right, atol=1e-5)


def test_gradients_equal_those_of_the_full_softmax(policy, batch):
    hidden, targets, _ = batch

    def loss(function, params, hidden):
        logprobs, entropy = function(params, hidden)
        return jnp.sum(logprobs * jnp.arange(29)) + 0.3 * jnp.sum(entropy**2)

    def chunked(params, hidden):
        return token_logprobs(policy, params, hidden, targets, 1.3, chunk=8)

    def full(params, hidden):
        logits = hidden @ head_weights(policy, params).T / 1.3
        table = jax.nn.log_softmax(logits)
        chosen = jnp.take_along_axis(table, targets[..., None], axis=-1)[..., 0]
        return chosen, -jnp.sum(jnp.exp(table) * table, axis=-1)

    grads = [
        jax.grad(lambda p, h, f=f: loss(f, p, h), argnums=(0, 1))(policy.params, hidden)
        for f in (chunked, full)
    ]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-3, rtol=1e-4), *grads)


def test_loss_tokens_alone_give_the_shifted_logprobs_and_zero_elsewhere(policy, batch):
    hidden, tokens, mask = batch
    expected = TOKEN_LOGPROBS(policy, policy.params, hidden[:, :-1], tokens[:, 1:], 0.7)
    budget = loss_budget(mask, multiple=4)
    assert mask.sum(1).max() <= budget < 29
    found = LOSS_TOKEN_LOGPROBS(policy, policy.params, hidden, tokens, jnp.asarray(mask), 0.7, budget=budget)
    for left, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(left)[:, 1:], np.where(mask[:, 1:], right, 0.0), atol=1e-5)
        assert not np.asarray(left)[:, 0].any()


def test_a_row_beyond_its_budget_is_answered_with_nan(policy, batch):
    hidden, tokens, mask = batch
    logprobs, _ = LOSS_TOKEN_LOGPROBS(policy, policy.params, hidden, tokens, jnp.asarray(mask), budget=2)
    assert np.isnan(np.asarray(logprobs)).any(axis=1).all()


def test_an_all_masked_batch_has_finite_zero_gradients(policy, batch):
    hidden, tokens, mask = batch

    def loss(params):
        logprobs, entropy = loss_token_logprobs(
            policy, params, hidden, tokens, jnp.zeros_like(jnp.asarray(mask)), budget=4
        )
        return logprobs.sum() + entropy.sum()

    grads = jax.jit(jax.grad(loss))(policy.params)
    assert all(bool(jnp.all(leaf == 0)) for leaf in jax.tree.leaves(grads))


def test_the_full_table_of_logits_is_never_built(policy):
    hidden, targets = jnp.zeros((4096, 16)), jnp.zeros(4096, jnp.int32)
    text = str(jax.make_jaxpr(lambda h: token_logprobs(policy, policy.params, h, targets, chunk=64))(hidden))
    assert "4096,37]" not in text and "64,37]" in text


def test_the_budget_is_a_rounded_bound():
    mask = np.zeros((2, 300), bool)
    assert loss_budget(mask) == 128
    mask[1, :130] = True
    assert loss_budget(mask) == 256
    assert loss_budget(np.ones((1, 290), bool)) == 290
