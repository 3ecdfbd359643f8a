"""Both attention implementations against a loop over tokens, values and gradients."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from toolverse_jax.policy import attention

ATTENTION = jax.jit(attention, static_argnames="implementation")


def _inputs(time, rows=2, heads=4, kv_heads=2, head_dim=8):
    keys = jax.random.split(jax.random.key(0), 4)
    query = jax.random.normal(keys[0], (rows, time, heads, head_dim))
    key = jax.random.normal(keys[1], (rows, time, kv_heads, head_dim))
    value = jax.random.normal(keys[2], (rows, time, kv_heads, head_dim))
    cotangent = jax.random.normal(keys[3], (rows, time, heads, head_dim))
    segment_ids = np.zeros((rows, time), np.int32)
    segment_ids[0, : time // 5] = 1
    segment_ids[0, time // 5 : time - 7] = 2
    segment_ids[1] = 1
    return query, key, value, jnp.asarray(segment_ids), cotangent


def test_dense_attention_equals_a_loop_over_tokens():
    query, key, value, segment_ids, _ = _inputs(19)
    out = ATTENTION(query, key, value, segment_ids, implementation="dense")
    query, key, value, segment_ids, out = map(np.asarray, (query, key, value, segment_ids, out))
    for row in range(2):
        for i in range(19):
            seen = [j for j in range(i + 1) if segment_ids[row, j] == segment_ids[row, i] != 0]
            for head in range(4):
                if not seen:
                    np.testing.assert_array_equal(out[row, i, head], 0.0)
                    continue
                logits = np.array([query[row, i, head] @ key[row, j, head // 2] for j in seen]) / np.sqrt(8)
                weights = np.exp(logits - logits.max())
                expected = weights @ np.array([value[row, j, head // 2] for j in seen]) / weights.sum()
                np.testing.assert_allclose(out[row, i, head], expected, atol=1e-5)


def test_chunked_attention_equals_dense_attention_in_value_and_gradient():
    query, key, value, segment_ids, cotangent = _inputs(700)  # three blocks, the last one padded

    def loss(name, *arrays):
        return jnp.sum(attention(*arrays, segment_ids, implementation=name) * cotangent)

    grad = jax.jit(jax.value_and_grad(loss, argnums=(1, 2, 3)), static_argnums=0)
    dense, chunked = grad("dense", query, key, value), grad("chunked", query, key, value)
    np.testing.assert_allclose(chunked[0], dense[0], rtol=1e-4)
    for left, right in zip(chunked[1], dense[1], strict=True):
        np.testing.assert_allclose(left, right, atol=2e-5)


@pytest.mark.parametrize("name", ["dense", "chunked"])
def test_a_row_of_padding_is_zero_with_finite_gradients(name):
    query, key, value, _, cotangent = _inputs(40)
    nothing = jnp.zeros((2, 40), jnp.int32)
    loss = lambda q, k, v: jnp.sum(attention(q, k, v, nothing, implementation=name) * cotangent)  # noqa: E731
    value_, grads = jax.jit(jax.value_and_grad(loss, argnums=(0, 1, 2)))(query, key, value)
    assert value_ == 0
    assert all(bool(jnp.all(grad == 0)) for grad in grads)


def test_attention_computes_in_the_type_of_the_queries():
    query, key, value, segment_ids, _ = _inputs(64)
    narrow = [x.astype(jnp.bfloat16) for x in (query, key, value)]
    exact = ATTENTION(query, key, value, segment_ids, implementation="dense")
    for name in ("dense", "chunked"):
        out = ATTENTION(*narrow, segment_ids, implementation=name)
        assert out.dtype == jnp.bfloat16
        np.testing.assert_allclose(out.astype(jnp.float32), exact, atol=0.05)
