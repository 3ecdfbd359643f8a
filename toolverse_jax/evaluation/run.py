"""Evaluates a checkpoint on a task file with the embedded sampler."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from pathlib import Path

from toolverse_jax.environment import load_environment
from toolverse_jax.errors import TaskError
from toolverse_jax.evaluation.gust import play_tasks
from toolverse_jax.evaluation.results import EpisodeScore, EvaluationResult, write_result
from toolverse_jax.gust import read_tasks
from toolverse_jax.rollout import EpisodeLimits, Renderer, Sampling
from toolverse_jax.types import Trajectory


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluationRequest:
    """Everything an evaluation depends on."""

    policy: str
    """Hugging Face checkpoint folder, or `tiny`."""
    tasks: Path
    envs: Path
    label: str
    temperature: float = 0.0
    max_length: int = 2048
    max_call_tokens: int = 64
    slots: int = 64
    seed: int = 0


def run_evaluation(
    request: EvaluationRequest, out: Path, *, on_progress: Callable[[str], None] = lambda line: None
) -> EvaluationResult:
    """Play every task once and write the result file.

    Raises:
        TaskError: the task file or an environment is missing or invalid.
        CheckpointError: the checkpoint cannot be loaded.
    """
    tasks = read_tasks(request.tasks)
    if not tasks:
        raise TaskError(f"{request.tasks} holds no tasks; build some with `toolverse tasks`")
    environments = {
        name: load_environment(request.envs / name) for name in sorted({task.environment for task in tasks})
    }

    from toolverse_jax.policy import JaxSampler, load_policy
    from toolverse_jax.policy.shipped import resolve_checkpoint
    from toolverse_jax.rollout.jax_engine import JaxEngine
    from toolverse_jax.rollout.tokenizer import load_tokenizer

    folder = resolve_checkpoint(request.policy)
    policy = load_policy(folder)
    renderer = Renderer(load_tokenizer(folder))
    slots = min(request.slots, len(tasks))
    sampler = JaxSampler(policy, policy.params, slots=slots, max_length=request.max_length)
    report = _ProgressReport(len(tasks), on_progress)
    trajectories = play_tasks(
        tasks,
        environments,
        JaxEngine(sampler),
        renderer,
        limits=EpisodeLimits(
            max_prompt_tokens=request.max_length,
            max_response_tokens=request.max_length,
            max_call_tokens=request.max_call_tokens,
            max_length=request.max_length,
        ),
        sampling=Sampling(temperature=request.temperature),
        concurrency=slots,
        seed=request.seed,
        on_episode=report,
    )
    result = EvaluationResult(
        label=request.label,
        settings={
            "policy": request.policy,
            "tasks": request.tasks.name,
            "tasks_blake2b": hashlib.blake2b(request.tasks.read_bytes(), digest_size=16).hexdigest(),
            "temperature": request.temperature,
            "max_length": request.max_length,
            "max_call_tokens": request.max_call_tokens,
            "seed": request.seed,
        },
        episodes=tuple(EpisodeScore.of(trajectory) for trajectory in trajectories),
    )
    write_result(out, result)
    return result


class _ProgressReport:
    """Says how far an evaluation is, about every tenth of it."""

    def __init__(self, total: int, say: Callable[[str], None]) -> None:
        self._total, self._say = total, say
        self._done = 0
        self._solved = 0.0

    def __call__(self, trajectory: Trajectory) -> None:
        self._done += 1
        self._solved += trajectory.trace_score
        every = max(1, self._total // 4)
        if self._done % every == 0 or self._done == self._total:
            self._say(
                f"{self._done}/{self._total} episodes, {self._solved / self._done:.0%} fulfilled so far"
            )
