"""The partition rules, the mesh, and a sharded step that equals the unsharded one."""

from __future__ import annotations

import functools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import P

from toolverse_jax.config import MeshConfig
from toolverse_jax.errors import ConfigError
from toolverse_jax.policy import (
    abstract_params,
    batch_sharding,
    hidden_states,
    load_model_config,
    load_policy,
    loss_token_logprobs,
    make_mesh,
    param_shardings,
    param_specs,
)
from toolverse_jax.policy.names import flatten

GOLDEN = Path(__file__).parent.parent / "golden"

SPECS = {
    "embed": P("tensor", "fsdp"),
    "final_norm": P(None),
    "head": P("tensor", "fsdp"),
    "layers/attention/key": P(None, "fsdp", "tensor", None),
    "layers/attention/key_bias": P(None, "tensor", None),
    "layers/attention/key_norm": P(None, None),
    "layers/attention/out": P(None, "tensor", None, "fsdp"),
    "layers/attention/out_bias": P(None, None),
    "layers/attention/query": P(None, "fsdp", "tensor", None),
    "layers/attention/query_bias": P(None, "tensor", None),
    "layers/attention/query_norm": P(None, None),
    "layers/attention/value": P(None, "fsdp", "tensor", None),
    "layers/attention/value_bias": P(None, "tensor", None),
    "layers/attention_norm": P(None, None),
    "layers/mlp/down": P(None, "tensor", "fsdp"),
    "layers/mlp/gate": P(None, "fsdp", "tensor"),
    "layers/mlp/up": P(None, "fsdp", "tensor"),
    "layers/mlp_norm": P(None, None),
}


@pytest.mark.parametrize("name", ["qwen2", "qwen3", "qwen3_bias"])
def test_every_parameter_has_its_listed_spec(name):
    specs = flatten(param_specs(abstract_params(load_model_config(GOLDEN / name))))
    assert specs == {path: SPECS[path] for path in specs}


def test_the_list_has_no_parameter_that_does_not_exist():
    paths = {
        p for n in ("qwen2", "qwen3_bias") for p in flatten(abstract_params(load_model_config(GOLDEN / n)))
    }
    assert paths == set(SPECS)


def test_a_parameter_without_a_rule_is_an_error():
    with pytest.raises(ValueError, match="layers/router matches no rule"):
        param_specs({"layers": {"router": jnp.zeros((2, 3))}})
    with pytest.raises(ValueError, match="names 1 axes"):
        param_specs({"final_norm": jnp.zeros((2, 3))})


def test_an_axis_that_does_not_divide_is_replicated():
    mesh = make_mesh(MeshConfig(fsdp=2, tensor=4))
    specs = param_specs(abstract_params(load_model_config(GOLDEN / "qwen2")), mesh)
    attention = specs["layers"]["attention"]
    assert attention["key"] == P(None, "fsdp", None, None)  # 2 key-value heads over 4
    assert attention["query"] == P(None, "fsdp", "tensor", None)


def test_one_mesh_axis_takes_what_is_left():
    assert dict(make_mesh(MeshConfig(tensor=2)).shape) == {"data": 1, "fsdp": 4, "tensor": 2, "context": 1}
    for sizes in ({"fsdp": 3}, {"data": -1}, {"tensor": 0}, {"tensor": 16}):
        with pytest.raises(ConfigError, match="mesh"):
            make_mesh(MeshConfig(**sizes))


def test_a_sharded_rematerialised_step_equals_the_plain_one():
    policy = load_policy(GOLDEN / "qwen3_bias")
    rng = np.random.default_rng(0)
    tokens = rng.integers(0, 96, (4, 64))
    segment_ids = np.repeat([[1] * 30 + [2] * 30 + [0] * 4], 4, axis=0)
    positions = np.repeat([[*range(30), *range(30), 0, 0, 0, 0]], 4, axis=0)
    mask = (rng.random((4, 64)) < 0.3) & (positions > 0)

    def loss(remat, params, tokens, segment_ids, positions, mask):
        hidden = hidden_states(
            policy, params, tokens, segment_ids, positions, attention="chunked", remat=remat
        )
        logprobs, entropy = loss_token_logprobs(policy, params, hidden, tokens, mask, budget=32)
        return logprobs.sum() + 0.1 * entropy.sum()

    batch = (tokens, segment_ids, positions, mask)
    expected, expected_grads = jax.jit(jax.value_and_grad(functools.partial(loss, "none")))(
        policy.params, *batch
    )
    mesh = make_mesh(MeshConfig(fsdp=2, tensor=2, context=2))
    shardings = param_shardings(policy.params, mesh)
    params = jax.device_put(policy.params, shardings)
    batch = jax.device_put(batch, batch_sharding(mesh))
    with jax.set_mesh(mesh):
        step = jax.jit(jax.value_and_grad(functools.partial(loss, "full")), out_shardings=(None, shardings))
        value, grads = step(params, *batch)
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    assert grads["layers"]["mlp"]["up"].sharding.spec == P(None, "fsdp", "tensor")
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=2e-4, rtol=1e-4), grads, expected_grads)
