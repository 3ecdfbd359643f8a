from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from toolverse_jax.config import OptimizerConfig
from toolverse_jax.train import make_optimizer, make_schedule


def rates(count, total=10, **settings):
    schedule = make_schedule(OptimizerConfig(learning_rate=1.0, **settings), total)
    return [float(np.asarray(schedule(update))) for update in range(count)]


def test_the_first_update_of_a_warm_up_already_moves():
    np.testing.assert_allclose(rates(6, warmup_steps=4), [0.25, 0.5, 0.75, 1, 1, 1])
    np.testing.assert_allclose(rates(3, warmup_steps=1), [1, 1, 1])
    np.testing.assert_allclose(rates(3), [1, 1, 1])


def test_the_cosine_ends_at_zero_after_the_warm_up():
    # 2 updates of warm-up, then half a cosine over 8.
    expected = [0.5, 1.0] + [0.5 * (1 + np.cos(np.pi * k / 8)) for k in range(9)]
    np.testing.assert_allclose(rates(11, schedule="cosine", warmup_steps=2), expected, atol=1e-6)


def test_norms_and_biases_are_not_decayed():
    params = {
        "embed": jnp.ones((2, 2)),
        "layers": {"mlp_norm": jnp.ones((1, 2)), "attention": {"query_bias": jnp.ones((1, 2))}},
    }
    optimizer = make_optimizer(OptimizerConfig(learning_rate=0.1, weight_decay=0.5), 10)
    zeros = {
        "embed": jnp.zeros((2, 2)),
        "layers": {"mlp_norm": jnp.zeros((1, 2)), "attention": {"query_bias": jnp.zeros((1, 2))}},
    }
    updates, _ = optimizer.update(zeros, optimizer.init(params), params)
    np.testing.assert_allclose(updates["embed"], -0.05)
    np.testing.assert_array_equal(updates["layers"]["mlp_norm"], 0)
    np.testing.assert_array_equal(updates["layers"]["attention"]["query_bias"], 0)
