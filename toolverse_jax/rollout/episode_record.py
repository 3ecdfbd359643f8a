"""Collects an episode token by token and turns it into a Trajectory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from toolverse_jax.types import JSON, Task, Trajectory, TrajectoryStatus

COUNTERS = (
    "model_calls",
    "tool_calls",
    "tool_errors",
    "parse_errors",
    "unknown_tools",
    "skipped_calls",
    "extra_calls",
    "cut_outputs",
    "length_stops",
    "step_limit_turns",
    "prompt_tokens",
    "sampled_tokens",
    "tokens",
)
"""Keys of `Trajectory.stats`, always all of them."""


class EpisodeRecord:
    """The tokens, masks, messages and counts of a running episode. Tokens are only ever appended."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.tokens: list[int] = []
        self.messages: list[Mapping[str, JSON]] = []
        self.counts: dict[str, float] = dict.fromkeys(COUNTERS, 0.0)
        self.stop_reasons: list[str] = []
        self.policy_versions: list[int] = []
        self.turn_rewards = np.zeros(task.num_turns, np.float32)
        self.turn_reached = np.zeros(task.num_turns, np.bool_)
        self._loss_mask: list[bool] = []
        self._logprobs: list[float] = []
        self._turn_ids: list[int] = []

    def append(
        self, ids: Sequence[int], turn_id: int, logprobs: Sequence[float] | None = None
    ) -> tuple[int, int]:
        """Append ids, sampled ones with their logprobs; return their span `[start, end)`."""
        start = len(self.tokens)
        self.tokens += [int(token) for token in ids]
        self._turn_ids += [turn_id] * len(ids)
        self._loss_mask += [logprobs is not None] * len(ids)
        self._logprobs += [float("nan")] * len(ids) if logprobs is None else [float(x) for x in logprobs]
        return start, len(self.tokens)

    def note(self, role: str, content: str, *, turn_id: int, span: tuple[int, int], **more: JSON) -> None:
        """Add a message for people; its span covers its tokens, framing included."""
        self.messages.append({"role": role, "content": content, "turn": turn_id, "span": list(span), **more})

    def count(self, name: str, amount: float = 1) -> None:
        self.counts[name] += amount

    def trajectory(self, *, status: TrajectoryStatus, error: str = "", **fields: Any) -> Trajectory:
        """Return the episode as a frozen record."""
        self.counts["tokens"] = float(len(self.tokens))
        self.counts["sampled_tokens"] = float(sum(self._loss_mask))
        return Trajectory(
            task_id=self.task.id,
            environment=self.task.environment,
            tokens=np.asarray(self.tokens, np.int32),
            loss_mask=np.asarray(self._loss_mask, np.bool_),
            sampler_logprobs=np.asarray(self._logprobs, np.float32),
            turn_ids=np.asarray(self._turn_ids, np.int16),
            turn_rewards=self.turn_rewards,
            turn_reached=self.turn_reached,
            status=status,
            stop_reasons=tuple(self.stop_reasons),
            policy_version=min(self.policy_versions, default=0),
            messages=tuple(self.messages),
            stats=dict(self.counts),
            error=error,
            **fields,
        )


def check_trajectory(trajectory: Trajectory) -> None:
    """Check the invariants of a Trajectory; see `types.Trajectory`.

    Raises:
        AssertionError: one does not hold; the message names the trajectory.
    """
    where = f"trajectory {trajectory.task_id}#{trajectory.sample_index}: "
    length, turns = len(trajectory.tokens), len(trajectory.turn_rewards)
    wanted = {"tokens": np.int32, "loss_mask": np.bool_, "sampler_logprobs": np.float32, "turn_ids": np.int16}
    for name, dtype in wanted.items():
        array = getattr(trajectory, name)
        assert array.dtype == dtype, f"{where}{name} is {array.dtype}, not {np.dtype(dtype)}"
        assert array.shape == (length,), f"{where}{name} has shape {array.shape}, not ({length},)"
    mask, logprobs, turn_ids = trajectory.loss_mask, trajectory.sampler_logprobs, trajectory.turn_ids
    assert np.array_equal(np.isnan(logprobs), ~mask), f"{where}logprobs are not NaN exactly off the loss mask"
    assert np.all(np.isfinite(logprobs[mask])), f"{where}a loss token has a logprob that is not finite"
    assert not length or not mask[0], f"{where}the first token carries loss but nothing predicts it"
    assert np.all(trajectory.tokens >= 0), f"{where}a token id is negative"
    assert np.all(np.diff(turn_ids) >= 0), f"{where}turn ids go back"
    assert np.all(turn_ids[mask] >= 1), f"{where}a loss token belongs to no user turn"
    assert np.all((turn_ids >= 0) & (turn_ids <= turns)), f"{where}a turn id is beyond {turns} turns"
    reached = trajectory.turn_reached
    assert reached.shape == (turns,) and reached.dtype == np.bool_, f"{where}turn_reached has a wrong shape"
    assert np.all(np.diff(reached.astype(np.int8)) <= 0), f"{where}a turn was reached before an earlier one"
    assert np.all(trajectory.turn_rewards[~reached] == 0), f"{where}a turn never reached has a reward"
    assert np.all(np.isfinite(trajectory.turn_rewards)), f"{where}a turn reward is not finite"
    present = set(np.unique(turn_ids[turn_ids > 0]).tolist())
    assert present == {index + 1 for index in range(turns) if reached[index]}, (
        f"{where}tokens of turns {sorted(present)} do not fit the turns reached"
    )
    position = 0
    for start, end in dict.fromkeys(tuple(message["span"]) for message in trajectory.messages):
        assert position == start <= end, f"{where}message spans have a gap at token {position}"
        position = end
    assert not trajectory.messages or position == length, f"{where}messages end before the tokens do"
