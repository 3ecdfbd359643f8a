"""RunConfig: one frozen tree that describes a training run, read from TOML and `--set a.b=c`.

Loads without JAX. Unknown keys are errors that name the nearest known key; the resolved tree is
written into the run folder.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import tomllib
import types
import typing
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from toolverse_jax.errors import ConfigError


def _at_least(name: str, value: int, minimum: int) -> None:
    if value < minimum:
        raise ConfigError(f"{name} must be >= {minimum}, got {value}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class PolicyConfig:
    """The policy that is trained."""

    checkpoint: str = "tiny"
    """Hugging Face checkpoint folder, or `tiny` for the policy shipped with the project."""
    compute_dtype: Literal["float32", "bfloat16"] = "float32"
    """Type of activations; parameters, losses and reductions are float32."""
    remat: Literal["none", "full"] = "none"
    """Which activations are recomputed in the backward pass."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TasksConfig:
    """Which tasks a run trains on and is validated with."""

    train: str = "tasks/gust/train.jsonl"
    """Task file, relative to the content root or absolute."""
    validation: str = ""
    """Task file evaluated during training; empty: none."""
    environments: str = "envs"
    """Folder of environments that the tasks refer to."""
    max_turns: int = 0
    """Skip tasks of more user turns; 0: keep all."""

    def __post_init__(self) -> None:
        _at_least("tasks.max_turns", self.max_turns, 0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RolloutConfig:
    """How episodes are played."""

    engine: Literal["jax"] = "jax"
    groups_per_step: int = 8
    """Tasks sampled for each training step."""
    group_size: int = 8
    """Rollouts of each task (K)."""
    temperature: float = 1.0
    top_p: float = 1.0
    max_prompt_tokens: int = 8192
    """Longer first prompts are filtered out before training."""
    max_response_tokens: int = 24000
    """Limit on tokens after the first prompt, over the whole episode."""
    max_call_tokens: int = 1024
    """Limit on tokens of one model call."""
    max_steps_per_turn: int = 8
    """Model calls within one user turn."""
    max_calls_per_step: int = 16
    """Tool calls of one message that are executed."""
    max_tool_output_characters: int = 8000
    slots: int = 64
    """Sequences that the embedded sampler holds at once."""
    max_length: int = 32768
    """Longest sequence of the embedded sampler's cache."""

    def __post_init__(self) -> None:
        if self.group_size < 2:
            raise ConfigError(
                f"rollout.group_size must be >= 2 to form relative advantages, got {self.group_size}; set rollout.group_size"
            )
        for name in ("groups_per_step", "max_call_tokens", "max_steps_per_turn", "slots", "max_length"):
            _at_least(f"rollout.{name}", getattr(self, name), 1)
        if self.temperature <= 0:
            raise ConfigError(
                f"rollout.temperature must be > 0, got {self.temperature}; greedy decoding is for evaluation only"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class AdvantageConfig:
    """How turn rewards become advantages."""

    estimator: Literal["tara", "grpo"] = "tara"
    lambda_: float = 0.5
    """Weight of the future advantage, >= 0."""
    gamma: float = 0.5
    """Discount of later turns, in [0, 1]."""
    gate: bool = True
    """Credit the future only where the turn itself was right (eq. 3)."""
    future_discount_start: Literal[0, 1] = 0
    grpo_return: Literal["trace_score", "mean_turn_reward"] = "mean_turn_reward"
    eps: float = 1e-6

    def __post_init__(self) -> None:
        if self.lambda_ < 0:
            raise ConfigError(f"advantage.lambda_ must be >= 0, got {self.lambda_}")
        if not 0 <= self.gamma <= 1:
            raise ConfigError(f"advantage.gamma must be in [0, 1], got {self.gamma}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class LossConfig:
    """The policy-gradient objective."""

    clip_low: float = 0.2
    clip_high: float = 0.2
    importance_sampling_cap: float = 2.0
    """Upper bound of the sampler-to-trainer weight; 0 switches the correction off."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class OptimizerConfig:
    """AdamW and its schedule."""

    learning_rate: float = 1e-6
    schedule: Literal["constant", "cosine"] = "constant"
    warmup_steps: int = 0
    b1: float = 0.9
    b2: float = 0.98
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """The training loop."""

    steps: int = 100
    minibatches: int = 4
    """Optimizer updates per batch of rollouts."""
    row_length: int = 32768
    """Tokens of one packed row."""
    rows_per_microbatch: int = 1
    checkpoint_every: int = 10
    """Steps between checkpoints; the last step is always saved."""
    keep_checkpoints: int = 2
    save_trajectories_every: int = 10

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            _at_least(f"train.{field.name}", getattr(self, field.name), 1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class MeshConfig:
    """Sizes of the mesh axes; one may be -1 and takes what is left."""

    data: int = 1
    fsdp: int = -1
    tensor: int = 1
    context: int = 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunConfig:
    """A reinforcement-learning run."""

    seed: int = 0
    policy: PolicyConfig = PolicyConfig()
    tasks: TasksConfig = TasksConfig()
    rollout: RolloutConfig = RolloutConfig()
    advantage: AdvantageConfig = AdvantageConfig()
    loss: LossConfig = LossConfig()
    optimizer: OptimizerConfig = OptimizerConfig()
    train: TrainConfig = TrainConfig()
    mesh: MeshConfig = MeshConfig()


def load_config(path: Path | None, overrides: Sequence[str] = ()) -> RunConfig:
    """Read a RunConfig from a TOML file and `key.path=value` overrides (values in TOML syntax).

    Raises:
        ConfigError: the file is missing or not TOML, a key is unknown, or a value is out of range.
    """
    tree: dict[str, Any] = {}
    if path is not None:
        try:
            tree = tomllib.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise ConfigError(
                f"configuration file {path} does not exist; give the path of a TOML file"
            ) from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"configuration file {path} is not valid TOML: {error}") from error
    for override in overrides:
        _apply_override(tree, override)
    return load_config_tree(tree)


def load_config_tree(tree: dict[str, Any]) -> RunConfig:
    """Build a RunConfig from nested plain values, as `config_to_dict` gives them.

    Raises:
        ConfigError: a key is unknown or a value is out of range.
    """
    return _build(RunConfig, tree, where="")


def config_to_dict(config: Any) -> dict[str, Any]:
    """Return a configuration as nested plain values."""
    return dataclasses.asdict(config)


def config_fingerprint(config: Any) -> str:
    """Return a canonical JSON text of a configuration, for comparing runs."""
    return json.dumps(config_to_dict(config), sort_keys=True, separators=(",", ":"))


def _apply_override(tree: dict[str, Any], override: str) -> None:
    key, separator, text = override.partition("=")
    if not separator or not key.strip():
        raise ConfigError(
            f"override {override!r} is not of the form key.path=value; write for example train.steps=40"
        )
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    *parents, leaf = key.strip().split(".")
    node = tree
    for parent in parents:
        node = node.setdefault(parent, {})
        if not isinstance(node, dict):
            raise ConfigError(f"override {override!r} goes through {parent!r}, which is not a section")
    node[leaf] = value


def _build(cls: type, tree: dict[str, Any], where: str) -> Any:
    hints = typing.get_type_hints(cls)
    known = {field.name for field in dataclasses.fields(cls)}
    values: dict[str, Any] = {}
    for key, value in tree.items():
        full = f"{where}{key}"
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {where}{near[0]}?" if near else f"known keys: {', '.join(sorted(known))}"
            raise ConfigError(f"unknown configuration key {full!r}; {hint}")
        hint = hints[key]
        if dataclasses.is_dataclass(hint):
            if not isinstance(value, dict):
                raise ConfigError(
                    f"configuration key {full!r} is a section, got {value!r}; write it as [{full}]"
                )
            values[key] = _build(typing.cast(type, hint), value, where=f"{full}.")
        else:
            values[key] = _coerce(full, hint, value)
    return cls(**values)


def _coerce(name: str, hint: Any, value: Any) -> Any:
    if typing.get_origin(hint) is Literal:
        allowed = typing.get_args(hint)
        if value not in allowed or isinstance(value, bool):
            raise ConfigError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
        return value
    if isinstance(hint, types.UnionType):
        raise TypeError(f"{name}: unions are not supported in configurations")
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not hint:
        raise ConfigError(f"{name} must be of type {hint.__name__}, got {value!r}")
    return value
