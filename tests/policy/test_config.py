"""The architecture read from config.json, old and new forms, and what is refused."""

from __future__ import annotations

import pytest

from toolverse_jax.errors import CheckpointError
from toolverse_jax.policy import ModelConfig

QWEN2 = {
    "model_type": "qwen2",
    "vocab_size": 96,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "hidden_act": "silu",
    "rope_theta": 1_000_000.0,
    "sliding_window": 131072,
    "use_sliding_window": False,
    "torch_dtype": "bfloat16",
    "eos_token_id": 7,
}
QWEN3 = {
    **QWEN2,
    "model_type": "qwen3",
    "head_dim": 16,
    "rope_theta": None,
    "rope_parameters": {"rope_type": "default", "rope_theta": 5000.0},
    "eos_token_id": [7, 9],
}


def test_the_form_of_transformers_4_is_read():
    config = ModelConfig.from_hf(QWEN2)
    assert (config.head_dim, config.rope_theta, config.dtype) == (8, 1e6, "bfloat16")
    assert config.attention_bias and not config.qk_norm and not config.tie_word_embeddings
    assert config.eos_ids == (7,)


def test_the_form_of_transformers_5_is_read():
    config = ModelConfig.from_hf(QWEN3)
    assert (config.head_dim, config.rope_theta) == (16, 5000.0)
    assert config.qk_norm and not config.attention_bias
    assert config.eos_ids == (7, 9)


def test_a_qwen3_without_head_dim_has_the_default_of_transformers():
    assert ModelConfig.from_hf({k: v for k, v in QWEN3.items() if k != "head_dim"}).head_dim == 128


@pytest.mark.parametrize("scaling", [None, {}, {"type": "default"}, {"rope_type": "default"}])
def test_unscaled_positions_are_accepted(scaling):
    assert ModelConfig.from_hf({**QWEN2, "rope_scaling": scaling}).rope_theta == 1e6


@pytest.mark.parametrize(
    "source", [QWEN2, QWEN3, {**QWEN3, "attention_bias": True, "tie_word_embeddings": True}]
)
def test_the_written_form_reads_back_equal(source):
    config = ModelConfig.from_hf(source)
    assert ModelConfig.from_hf(config.to_hf()) == config


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model_type": "qwen3_moe"}, "qwen3_moe"),
        ({"model_type": None}, "None"),
        ({"hidden_act": "gelu"}, "gelu"),
        ({"rope_scaling": {"type": "yarn", "factor": 4.0}}, "yarn"),
        ({"rope_parameters": {"rope_type": "linear", "factor": 2.0}}, "linear"),
        ({"rope_parameters": {"full_attention": {"rope_type": "default"}}}, "full_attention"),
        ({"rope_parameters": {"partial_rotary_factor": 0.5}}, "partial_rotary_factor"),
        ({"use_sliding_window": True, "max_window_layers": 1}, "1 layers"),
        ({"use_sliding_window": True, "layer_types": ["sliding_attention"] * 2}, "2 layers"),
        ({"vocab_size": None}, "vocab_size"),
        ({"num_key_value_heads": 3}, "num_key_value_heads"),
        ({"num_attention_heads": 5, "num_key_value_heads": 5}, "head_dim"),
        ({"head_dim": 7}, "head_dim"),
        ({"torch_dtype": "float8"}, "float8"),
    ],
)
def test_what_we_do_not_compute_is_refused_by_name(change, words):
    with pytest.raises(CheckpointError, match=words):
        ModelConfig.from_hf({**QWEN2, **change})


def test_a_sliding_window_that_no_layer_uses_is_accepted():
    ModelConfig.from_hf({**QWEN2, "use_sliding_window": True, "max_window_layers": 28})
