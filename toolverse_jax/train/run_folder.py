"""The files of a run folder: config.json, metrics.jsonl, checkpoints/, trajectories/, final/."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from toolverse_jax.config import RunConfig, config_fingerprint, config_to_dict
from toolverse_jax.errors import ConfigError
from toolverse_jax.types import JSON, Trajectory


class RunFolder:
    """Paths of a run, and the files that people read."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.config = self.path / "config.json"
        self.metrics = self.path / "metrics.jsonl"
        self.checkpoints = self.path / "checkpoints"
        self.trajectories = self.path / "trajectories"
        self.final = self.path / "final"

    def claim(self, config: RunConfig) -> None:
        """Write the resolved configuration, or check that it is the one the folder was made with.

        Raises:
            ConfigError: the folder belongs to a run of another configuration.
        """
        if not self.config.exists():
            self.path.mkdir(parents=True, exist_ok=True)
            _write(self.config, json.dumps(config_to_dict(config), indent=2) + "\n")
            return
        try:
            before = json.loads(self.config.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ConfigError(
                f"{self.config} is not valid JSON ({error}); restore it or start in another run folder"
            ) from error
        # Through JSON, so that both sides have the same types.
        now = json.loads(config_fingerprint(config))
        changed = sorted(_differences(before, now))
        if changed:
            shown = "; ".join(changed[:3]) + (f"; and {len(changed) - 3} more" if len(changed) > 3 else "")
            raise ConfigError(
                f"run folder {self.path} belongs to a run of another configuration ({shown}); "
                "use the same configuration to resume it, or give another run folder"
            )

    def write_trajectories(
        self,
        step: int,
        samples: Sequence[tuple[Trajectory, np.ndarray]],
        decode: Callable[[Sequence[int]], str],
    ) -> None:
        """Write the rollouts of a step as JSON lines for people, text instead of token ids."""
        self.trajectories.mkdir(exist_ok=True)
        lines = [
            json.dumps(_readable(trajectory, advantages, decode), ensure_ascii=False)
            for trajectory, advantages in samples
        ]
        _write(self.trajectories / f"step_{step:06d}.jsonl", "".join(line + "\n" for line in lines))


def _readable(
    trajectory: Trajectory, advantages: np.ndarray, decode: Callable[[Sequence[int]], str]
) -> dict[str, JSON]:
    return {
        "task_id": trajectory.task_id,
        "group_id": trajectory.group_id,
        "environment": trajectory.environment,
        "sample_index": trajectory.sample_index,
        "policy_version": trajectory.policy_version,
        "status": trajectory.status,
        "stop_reasons": list(trajectory.stop_reasons),
        "turn_rewards": [float(reward) for reward in trajectory.turn_rewards],
        "turn_reached": [bool(reached) for reached in trajectory.turn_reached],
        "turn_advantages": [round(float(value), 6) for value in advantages],
        "stats": dict(trajectory.stats),
        "messages": [dict(message) for message in trajectory.messages],
        "spans": list(_spans(trajectory, advantages, decode)),
    }


def _spans(
    trajectory: Trajectory, advantages: np.ndarray, decode: Callable[[Sequence[int]], str]
) -> Iterator[dict[str, JSON]]:
    """Yield runs of tokens that share turn and loss mask, and so the advantage."""
    key = trajectory.turn_ids.astype(np.int64) * 2 + trajectory.loss_mask
    starts = np.flatnonzero(np.diff(key, prepend=-1))
    for start, end in zip(starts, [*starts[1:], len(key)], strict=True):
        turn, loss = int(trajectory.turn_ids[start]), bool(trajectory.loss_mask[start])
        yield {
            "turn": turn,
            "loss": loss,
            "advantage": round(float(advantages[turn - 1]), 6) if loss else 0.0,
            "tokens": int(end - start),
            "text": decode(trajectory.tokens[start:end].tolist()),
        }


def _differences(before: JSON, now: JSON, where: str = "") -> Iterator[str]:
    if isinstance(before, dict) and isinstance(now, dict):
        for key in {**before, **now}:
            yield from _differences(before.get(key), now.get(key), f"{where}.{key}" if where else key)
    elif before != now:
        yield f"{where} was {before!r}, is {now!r}"


def _write(path: Path, text: str) -> None:
    """Write a file that appears whole or not at all."""
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)
