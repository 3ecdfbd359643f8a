"""ModelConfig: the architecture of a dense Qwen2 or Qwen3 decoder, read from a checkpoint's own config.json."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from toolverse_jax.errors import CheckpointError

_MODEL_TYPES = {"qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM"}
_DTYPES = ("float32", "bfloat16", "float16")
_DEFAULT_ROPE_THETA = 10_000.0
_QWEN3_HEAD_DIM = 128
"""Width of a head where a qwen3 config.json names none (the default of transformers)."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Architecture of one policy; hashable, so it may be static under `jax.jit`."""

    model_type: str
    """`qwen2` (biases on q, k, v) or `qwen3` (norms on q, k)."""
    vocab_size: int
    """Rows of the embedding table, padding rows included."""
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    rope_theta: float = _DEFAULT_ROPE_THETA
    rms_norm_eps: float = 1e-6
    tie_word_embeddings: bool = False
    attention_bias: bool = False
    """Biases on the query, key and value projections."""
    max_position_embeddings: int = 32768
    """Longest context, in tokens."""
    initializer_range: float = 0.02
    dtype: str = "float32"
    """Type of the weights on disk; in memory they are float32."""
    bos_token_id: int | None = None
    eos_token_id: int | tuple[int, ...] | None = None
    pad_token_id: int | None = None

    def __post_init__(self) -> None:
        for name in (
            "vocab_size",
            "hidden_size",
            "intermediate_size",
            "num_layers",
            "num_heads",
            "num_kv_heads",
        ):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise CheckpointError(f"model config: {name} must be a positive whole number, got {value!r}")
        if self.num_heads % self.num_kv_heads:
            raise CheckpointError(
                f"model config: num_attention_heads ({self.num_heads}) must be a multiple of "
                f"num_key_value_heads ({self.num_kv_heads})"
            )
        if not isinstance(self.head_dim, int) or self.head_dim < 2 or self.head_dim % 2:
            raise CheckpointError(f"model config: head_dim must be even and >= 2, got {self.head_dim!r}")
        if self.dtype not in _DTYPES:
            raise CheckpointError(
                f"model config: dtype must be one of {', '.join(_DTYPES)}, got {self.dtype!r}; convert the checkpoint"
            )

    @property
    def qk_norm(self) -> bool:
        """True where queries and keys are normalised per head (qwen3)."""
        return self.model_type == "qwen3"

    @property
    def attention_output_bias(self) -> bool:
        """True where the output projection has a bias: qwen3 with `attention_bias`, never qwen2."""
        return self.attention_bias and self.model_type == "qwen3"

    @property
    def eos_ids(self) -> tuple[int, ...]:
        """The end-of-sequence ids, possibly none."""
        if self.eos_token_id is None:
            return ()
        return (self.eos_token_id,) if isinstance(self.eos_token_id, int) else self.eos_token_id

    @classmethod
    def from_hf(cls, config: Mapping[str, Any]) -> ModelConfig:
        """Read the content of a Hugging Face config.json, in the form of transformers 4 or 5.

        Raises:
            CheckpointError: the architecture is not a dense Qwen2 or Qwen3, a needed key is missing,
                or a feature we do not implement is switched on.
        """
        model_type = config.get("model_type")
        if model_type not in _MODEL_TYPES:
            raise CheckpointError(
                f"model_type {model_type!r} is not supported; use a dense checkpoint of type "
                f"{' or '.join(sorted(_MODEL_TYPES))}"
            )
        _refuse_unsupported(config)
        heads = _need(config, "num_attention_heads")
        kv_heads = config.get("num_key_value_heads")
        eos = config.get("eos_token_id")
        return cls(
            model_type=model_type,
            vocab_size=_need(config, "vocab_size"),
            hidden_size=_need(config, "hidden_size"),
            intermediate_size=_need(config, "intermediate_size"),
            num_layers=_need(config, "num_hidden_layers"),
            num_heads=heads,
            num_kv_heads=heads if kv_heads is None else kv_heads,
            head_dim=_head_dim(config, model_type, heads),
            rope_theta=_rope_theta(config),
            rms_norm_eps=float(config.get("rms_norm_eps", 1e-6)),
            tie_word_embeddings=bool(config.get("tie_word_embeddings", False)),
            attention_bias=model_type == "qwen2" or bool(config.get("attention_bias", False)),
            max_position_embeddings=int(config.get("max_position_embeddings", 32768)),
            initializer_range=float(config.get("initializer_range", 0.02)),
            dtype=str(config.get("dtype") or config.get("torch_dtype") or "float32").removeprefix("torch."),
            bos_token_id=config.get("bos_token_id"),
            eos_token_id=tuple(eos) if isinstance(eos, list | tuple) else eos,
            pad_token_id=config.get("pad_token_id"),
        )

    def to_hf(self) -> dict[str, Any]:
        """Return a config.json that transformers (4 and 5) and vLLM load."""
        eos = self.eos_token_id
        config: dict[str, Any] = {
            "architectures": [_MODEL_TYPES[self.model_type]],
            "attention_dropout": 0.0,
            "bos_token_id": self.bos_token_id,
            "dtype": self.dtype,
            "eos_token_id": list(eos) if isinstance(eos, tuple) else eos,
            "head_dim": self.head_dim,
            "hidden_act": "silu",
            "hidden_size": self.hidden_size,
            "initializer_range": self.initializer_range,
            "intermediate_size": self.intermediate_size,
            "max_position_embeddings": self.max_position_embeddings,
            "model_type": self.model_type,
            "num_attention_heads": self.num_heads,
            "num_hidden_layers": self.num_layers,
            "num_key_value_heads": self.num_kv_heads,
            "pad_token_id": self.pad_token_id,
            "rms_norm_eps": self.rms_norm_eps,
            "rope_parameters": {"rope_theta": self.rope_theta, "rope_type": "default"},
            "rope_theta": self.rope_theta,
            "tie_word_embeddings": self.tie_word_embeddings,
            "torch_dtype": self.dtype,
            "use_cache": True,
            "use_sliding_window": False,
            "vocab_size": self.vocab_size,
        }
        if self.model_type == "qwen3":
            config["attention_bias"] = self.attention_bias
        return config


def _need(config: Mapping[str, Any], key: str) -> Any:
    if config.get(key) is None:
        raise CheckpointError(f"config.json has no {key!r}; is this the config.json of a Qwen checkpoint?")
    return config[key]


def _head_dim(config: Mapping[str, Any], model_type: str, heads: int) -> int:
    if config.get("head_dim") is not None:
        return config["head_dim"]
    if model_type == "qwen3" and "head_dim" not in config:
        return _QWEN3_HEAD_DIM
    hidden = _need(config, "hidden_size")
    if hidden % heads:
        raise CheckpointError(
            f"config.json has no head_dim and hidden_size {hidden} is not a multiple of {heads} heads; set head_dim"
        )
    return hidden // heads


def _rope_theta(config: Mapping[str, Any]) -> float:
    parameters = config.get("rope_parameters") or {}
    theta = parameters.get("rope_theta", config.get("rope_theta", _DEFAULT_ROPE_THETA))
    return float(theta)


def _refuse_unsupported(config: Mapping[str, Any]) -> None:
    """Raise CheckpointError for a feature that would silently change what the model computes."""
    activation = config.get("hidden_act", "silu")
    if activation != "silu":
        raise CheckpointError(f"hidden_act {activation!r} is not supported; only 'silu' is")
    for key in ("rope_parameters", "rope_scaling"):
        scaling = config.get(key) or {}
        kind = scaling.get("rope_type", scaling.get("type", "default"))
        if kind != "default":
            raise CheckpointError(
                f"{key} of type {kind!r} is not supported; remove it from config.json to use the unscaled context"
            )
        nested = [name for name, value in scaling.items() if isinstance(value, Mapping)]
        if nested:
            raise CheckpointError(f"{key} per layer type ({', '.join(nested)}) is not supported")
        if scaling.get("partial_rotary_factor", 1.0) != 1.0:
            raise CheckpointError(
                f"partial_rotary_factor {scaling['partial_rotary_factor']} is not supported; only 1.0 is"
            )
    if _sliding_layers(config):
        raise CheckpointError(
            f"sliding-window attention is not supported, and {_sliding_layers(config)} layers use it; "
            "choose a checkpoint with use_sliding_window false"
        )


def _sliding_layers(config: Mapping[str, Any]) -> int:
    if not config.get("use_sliding_window", False) or config.get("sliding_window", 4096) is None:
        return 0
    layers = _need(config, "num_hidden_layers")
    kinds = config.get("layer_types")
    if kinds is not None:
        return sum(kind == "sliding_attention" for kind in kinds)
    return max(0, layers - config.get("max_window_layers", 28))
