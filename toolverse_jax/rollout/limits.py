"""How long an episode may get, and how its tokens are sampled."""

from __future__ import annotations

import dataclasses

from toolverse_jax.config import RolloutConfig
from toolverse_jax.errors import ConfigError


@dataclasses.dataclass(frozen=True, kw_only=True)
class EpisodeLimits:
    """Bounds of one episode; the defaults are those of `RolloutConfig`."""

    max_prompt_tokens: int = 8192
    """A longer first prompt ends the episode before it starts."""
    max_response_tokens: int = 24000
    """Tokens after the first prompt, tool results included."""
    max_call_tokens: int = 1024
    """Tokens of one model call."""
    max_length: int = 32768
    """Tokens of the whole episode."""
    max_steps_per_turn: int = 8
    """Model calls within one user turn; the next user message follows when they are used up."""
    max_calls_per_step: int = 16
    """Tool calls of one message that are executed; one error answers all further ones."""
    max_tool_output_characters: int = 8000

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            if getattr(self, field.name) < 1:
                raise ConfigError(f"{field.name} must be >= 1, got {getattr(self, field.name)}")

    @classmethod
    def from_config(cls, config: RolloutConfig) -> EpisodeLimits:
        """Take the limits of a run."""
        shared = {field.name for field in dataclasses.fields(config)}
        names = [field.name for field in dataclasses.fields(cls) if field.name in shared]
        return cls(**{name: getattr(config, name) for name in names})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sampling:
    """How tokens are drawn."""

    temperature: float = 1.0
    """0 is greedy."""
    top_p: float = 1.0
    top_k: int = 0
    """0: no limit."""

    @classmethod
    def from_config(cls, config: RolloutConfig) -> Sampling:
        """Take the sampling of a run."""
        return cls(temperature=config.temperature, top_p=config.top_p)
