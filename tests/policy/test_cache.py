"""The cache arrays: writes, copies and gathers land where they should."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from toolverse_jax.policy import ModelConfig
from toolverse_jax.policy.cache import Cache, history_bucket, length_bucket

CONFIG = ModelConfig(
    model_type="qwen3",
    vocab_size=8,
    hidden_size=8,
    intermediate_size=8,
    num_layers=2,
    num_heads=2,
    num_kv_heads=2,
    head_dim=4,
)


def _columns(rng, rows, columns):
    keys = tuple(rng.normal(size=(rows, 2, 4, columns)).astype(np.float32) for _ in range(2))
    return keys, tuple(rng.normal(size=(rows, 2, columns, 4)).astype(np.float32) for _ in range(2))


def _indices(*values):
    return np.array(values, np.int32)


@pytest.fixture
def filled():
    """A cache of three slots where slot 2 and slot 0 got five columns each at 10 and 250."""
    cache = Cache(CONFIG, slots=3, length=512, dtype=jnp.float32)
    keys, values = _columns(np.random.default_rng(0), 4, 5)
    cache.write(keys, values, _indices(2, 0, 1, 1), _indices(10, 250, 0, 0), _indices(1, 3, 0, 0), 2)
    return cache, keys, values


def test_a_write_stores_the_counted_rows_only(filled):
    cache, keys, values = filled
    for layer in range(2):
        np.testing.assert_array_equal(cache.keys[layer][2, :, :, 10:15], keys[layer][1])
        np.testing.assert_array_equal(cache.values[layer][0, :, 250:255], values[layer][3])
        assert not np.asarray(cache.keys[layer][1]).any()
    assert np.count_nonzero(cache.keys[0]) == 2 * 2 * 4 * 5


def test_a_copy_moves_whole_slots_in_order(filled):
    cache, keys, _ = filled
    cache.copy(_indices(2, 1, 0), _indices(1, 0, 0), 2)
    np.testing.assert_array_equal(cache.keys[1][1, :, :, 10:15], keys[1][1])
    np.testing.assert_array_equal(cache.keys[1][0], cache.keys[1][1])


def test_a_gather_takes_the_used_blocks_of_the_named_slots(filled):
    cache, keys, values = filled
    got_keys, got_values = cache.gather(_indices(0, 2), 1024, used=255)
    assert got_keys[0].shape == (2, 2, 4, 1024)
    np.testing.assert_array_equal(got_keys[0][0, :, :, 250:255], keys[0][3])
    np.testing.assert_array_equal(got_values[1][1, :, 10:15], values[1][1])
    got_keys, _ = cache.gather(_indices(1, 1), 1024, used=0)
    np.testing.assert_array_equal(got_keys[0][0, :, :, 250:255], keys[0][3])  # nothing asked, nothing copied


def test_growing_and_shrinking_keeps_what_fits(filled):
    cache, _, _ = filled
    before = np.asarray(cache.keys[0])
    cache.resize(1024)
    np.testing.assert_array_equal(cache.keys[0][..., :512], before)
    cache.resize(256)
    np.testing.assert_array_equal(cache.keys[0], before[..., :256])


@pytest.mark.parametrize("length", [1, 256, 257, 2048, 2049, 3073, 40000])
def test_buckets_hold_the_length_in_whole_blocks(length):
    for bucket in (length_bucket(length), history_bucket(length)):
        assert bucket >= length and bucket % 256 == 0
    assert length_bucket(length_bucket(length)) == length_bucket(length)
