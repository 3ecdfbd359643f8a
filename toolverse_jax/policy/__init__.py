"""The policy network: Qwen2 and Qwen3 in Flax NNX, token logprobs, sharding, checkpoints, sampler."""

from __future__ import annotations

from toolverse_jax.policy.attention import attention
from toolverse_jax.policy.config import ModelConfig
from toolverse_jax.policy.hf import iterate_hf_tensors, load_model_config, load_policy, save_policy_hf
from toolverse_jax.policy.logprobs import loss_budget, loss_token_logprobs, token_logprobs
from toolverse_jax.policy.model import (
    Params,
    Policy,
    Qwen,
    abstract_params,
    head_weights,
    hidden_states,
    init_policy,
)
from toolverse_jax.policy.sampler import JaxSampler, SampleRequest, SampleResult
from toolverse_jax.policy.sharding import (
    PARTITION_RULES,
    batch_sharding,
    make_mesh,
    param_shardings,
    param_specs,
)

__all__ = [
    "PARTITION_RULES",
    "JaxSampler",
    "ModelConfig",
    "Params",
    "Policy",
    "Qwen",
    "SampleRequest",
    "SampleResult",
    "abstract_params",
    "attention",
    "batch_sharding",
    "head_weights",
    "hidden_states",
    "init_policy",
    "iterate_hf_tensors",
    "load_model_config",
    "load_policy",
    "loss_budget",
    "loss_token_logprobs",
    "make_mesh",
    "param_shardings",
    "param_specs",
    "save_policy_hf",
    "token_logprobs",
]
