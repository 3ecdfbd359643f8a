"""Where the training loop gets its rollouts from: the collector with the embedded sampler."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from toolverse_jax.config import RunConfig
from toolverse_jax.policy import Params, Policy
from toolverse_jax.types import Task, Trajectory


class Rollouts(Protocol):
    """Groups of rollouts, whole groups only, and metrics with keys `rollout/...`."""

    def __iter__(self) -> Iterator[Sequence[Trajectory]]: ...

    def metrics(self) -> Mapping[str, float]: ...


class RolloutSource(Protocol):
    """Plays tasks with given parameters.

    The result must depend on the arguments alone, not on earlier calls: a resumed run starts with a
    new source and has to see the same rollouts.
    """

    def collect(
        self, tasks: Sequence[Task], *, params: Params, version: int, seed: int, group_size: int
    ) -> Rollouts:
        """Play each task `group_size` times."""
        ...

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens, for people."""
        ...


class EmbeddedRollouts:
    """Rollouts sampled in this process by `policy.sampler.JaxSampler`."""

    def __init__(self, config: RunConfig, policy: Policy, checkpoint: Path, environments: Mapping[str, Any]):
        """Load the tokenizer.

        Args:
            config: of the run.
            policy: the network.
            checkpoint: Hugging Face folder that holds the tokenizer.
            environments: by name.
        """
        from toolverse_jax.rollout import Renderer, load_tokenizer

        self._config, self._policy, self._environments = config, policy, environments
        self._tokenizer = load_tokenizer(checkpoint)
        self._renderer = Renderer(self._tokenizer)

    def collect(
        self, tasks: Sequence[Task], *, params: Params, version: int, seed: int, group_size: int
    ) -> Rollouts:
        from toolverse_jax.policy.sampler import JaxSampler
        from toolverse_jax.rollout import collect
        from toolverse_jax.rollout.jax_engine import JaxEngine

        rollout = self._config.rollout
        # A new sampler each time: slots and cache sizes that earlier steps left behind change float
        # rounding, and with it the rollouts of a run that resumes. Compiled programs are shared.
        sampler = JaxSampler(
            self._policy,
            params,
            slots=rollout.slots,
            max_length=rollout.max_length,
            eos_ids=self._policy.config.eos_ids,
            dtype=self._config.policy.compute_dtype,
        )
        return collect(
            tasks,
            self._environments,
            JaxEngine(sampler, policy_version=version),
            self._renderer,
            group_size=group_size,
            seed=seed,
            policy_version=version,
            config=rollout,
        )

    def decode(self, tokens: Sequence[int]) -> str:
        return self._tokenizer.decode(list(tokens), skip_special_tokens=False)
