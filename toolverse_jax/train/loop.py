"""The training loop: rollouts, advantages, updates, metrics, checkpoint. The same line resumes it.

Everything a step does follows from the checkpoint before it: the random key, the place in the task
stream and the state. So a run that is stopped anywhere and started again with the same line ends with
bit-equal parameters and, outside `time/...`, the same metrics.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from toolverse_jax.config import RunConfig, config_fingerprint
from toolverse_jax.environment import load_catalog
from toolverse_jax.errors import ConfigError, TaskError
from toolverse_jax.gust import TaskStream, read_tasks
from toolverse_jax.paths import content_root
from toolverse_jax.policy import Policy, load_policy, make_mesh, save_policy_hf
from toolverse_jax.policy.shipped import resolve_checkpoint
from toolverse_jax.train.checkpoint import Checkpoints, RunRecord
from toolverse_jax.train.metrics import MetricsWriter
from toolverse_jax.train.optimizer import make_optimizer, make_schedule
from toolverse_jax.train.rollout_source import EmbeddedRollouts, RolloutSource
from toolverse_jax.train.run_folder import RunFolder
from toolverse_jax.train.signal import group_advantages, has_signal, reward_metrics, signal_metrics
from toolverse_jax.train.state import TrainState, abstract_state, init_state
from toolverse_jax.train.step import TrainStep, policy_objective
from toolverse_jax.train.update import Sample, deal_minibatches, pack_minibatches, update_policy
from toolverse_jax.types import Task

Progress = Callable[[int, dict[str, float]], None]
"""Called after each step with its number and metrics."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainResult:
    """What a finished run leaves."""

    run_dir: Path
    steps: int
    resumed_from: int
    """Step of the checkpoint this call started from, 0 for a new run."""
    final: Path
    """Hugging Face checkpoint folder of the trained policy."""
    state: TrainState


def train(
    config: RunConfig,
    run_dir: str | Path,
    *,
    progress: Progress | None = None,
    rollouts: RolloutSource | None = None,
) -> TrainResult:
    """Train a policy, or go on with a run that was stopped.

    Args:
        config: the run.
        run_dir: run folder; made where it is missing.
        progress: called after each step.
        rollouts: source of rollouts; default: the embedded sampler.

    Raises:
        ConfigError: the folder belongs to a run of another configuration, or sizes do not fit.
        CheckpointError: a checkpoint is damaged.
        TaskError: there is no task to train on.
    """
    run = _Run(config, RunFolder(run_dir), rollouts)
    with Checkpoints(run.folder.checkpoints, keep=config.train.keep_checkpoints) as checkpoints:
        state, key, first = run.start(checkpoints)
        writer = MetricsWriter(run.folder.metrics, after_step=first)
        for step in range(first + 1, config.train.steps + 1):
            state, key, metrics = run.one_step(step, state, key)
            last = step == config.train.steps
            if last or step % config.train.checkpoint_every == 0:
                metrics |= run.validate(step, state)
            # Metrics before the checkpoint: a step that is saved has its line.
            writer.write(step, metrics)
            if last or step % config.train.checkpoint_every == 0:
                began = time.perf_counter()
                checkpoints.save(state, run.record(step, key))
                metrics["time/checkpoint_s"] = time.perf_counter() - began
            if progress is not None:
                progress(step, metrics)
    final = save_policy_hf(
        run.policy, jax.device_get(state.params), run.folder.final, tokenizer_files_from=run.checkpoint
    )
    return TrainResult(
        run_dir=run.folder.path, steps=config.train.steps, resumed_from=first, final=final, state=state
    )


def check_sizes(config: RunConfig) -> None:
    """Check that any rollout fits into a row.

    Raises:
        ConfigError: it does not.
    """
    rollout = config.rollout
    longest = min(rollout.max_length, rollout.max_prompt_tokens + rollout.max_response_tokens)
    if config.train.row_length < longest:
        raise ConfigError(
            f"train.row_length must hold the longest rollout of {longest} tokens, got {config.train.row_length}; "
            "raise it or lower rollout.max_length"
        )


class _Run:
    """What stays the same during a run."""

    def __init__(self, config: RunConfig, folder: RunFolder, rollouts: RolloutSource | None):
        check_sizes(config)
        self.config, self.folder = config, folder
        self.mesh = make_mesh(config.mesh)
        self.checkpoint = resolve_checkpoint(config.policy.checkpoint, relative_to=content_root())
        environments = load_catalog(_content_path(config.tasks.environments)) if rollouts is None else {}
        known = list(environments) if rollouts is None else None
        tasks = [t for t in _read(config.tasks.train, known) if _short_enough(t, config.tasks.max_turns)]
        if not tasks:
            raise TaskError(
                f"{config.tasks.train} holds no task of at most {config.tasks.max_turns} turns; raise tasks.max_turns"
            )
        self.validation = _read(config.tasks.validation, known) if config.tasks.validation else []
        self.stream = TaskStream(tasks, seed=config.seed)
        self.policy: Policy = load_policy(self.checkpoint, mesh=self.mesh)
        # Only after everything that can refuse the configuration.
        folder.claim(config)
        self.rollouts = rollouts or EmbeddedRollouts(config, self.policy, self.checkpoint, environments)
        updates = config.train.steps * config.train.minibatches
        self.schedule = make_schedule(config.optimizer, updates)
        self.optimizer = make_optimizer(config.optimizer, updates)
        self.on_policy = config.train.minibatches == 1
        self.functions = TrainStep(
            self.policy,
            self.policy.params,
            self.optimizer,
            policy_objective(
                clip_low=config.loss.clip_low,
                clip_high=config.loss.clip_high,
                importance_sampling_cap=config.loss.importance_sampling_cap,
                on_policy=self.on_policy,
            ),
            self.mesh,
            temperature=config.rollout.temperature,
            compute_dtype=config.policy.compute_dtype,
            remat=config.policy.remat,
        )
        self.rows = config.train.rows_per_microbatch * self.functions.row_shards

    def start(self, checkpoints: Checkpoints) -> tuple[TrainState, jax.Array, int]:
        """Return state, random key and finished steps, from the newest checkpoint or from nothing."""
        params = self.policy.params
        if checkpoints.latest_step() is None:
            return init_state(params, self.optimizer, self.mesh), jax.random.key(self.config.seed), 0
        state, record = checkpoints.restore(abstract_state(params, self.optimizer, self.mesh))
        if record.config != config_fingerprint(self.config):
            raise ConfigError(
                f"checkpoint step {record.step} in {checkpoints.folder} is of a run of another configuration; "
                "give another run folder"
            )
        self.stream.set_state(record.task_stream)
        return state, jax.random.wrap_key_data(jnp.asarray(record.key, jnp.uint32)), record.step

    def record(self, step: int, key: jax.Array) -> RunRecord:
        return RunRecord(
            step=step,
            key=[int(word) for word in np.asarray(jax.random.key_data(key))],
            task_stream=self.stream.get_state(),
            config=config_fingerprint(self.config),
        )

    def one_step(
        self, step: int, state: TrainState, key: jax.Array
    ) -> tuple[TrainState, jax.Array, dict[str, float]]:
        """Play one batch of tasks and learn from it."""
        config, began = self.config, time.perf_counter()
        key, rollout_key, deal_key = jax.random.split(key, 3)
        tasks = [next(self.stream) for _ in range(config.rollout.groups_per_step)]
        played = self.rollouts.collect(
            tasks,
            params=state.params,
            version=step - 1,
            seed=_seed(rollout_key),
            group_size=config.rollout.group_size,
        )
        groups = list(played)
        rollout_s = time.perf_counter() - began
        advantages = group_advantages(groups, config.advantage)
        samples: list[list[Sample]] = [
            list(zip(group, table, strict=True)) for group, table in zip(groups, advantages, strict=True)
        ]
        kept = [group for group, table in zip(samples, advantages, strict=True) if has_signal(table)]
        minibatches = deal_minibatches(kept, config.train.minibatches, np.random.default_rng(_seed(deal_key)))
        batches = pack_minibatches(minibatches, row_length=config.train.row_length, rows=self.rows)
        rate = float(np.asarray(self.schedule(int(state.update))))
        state, metrics = update_policy(
            state, self.functions, batches, rows=self.rows, on_policy=self.on_policy
        )
        jax.block_until_ready(state)
        train_s = time.perf_counter() - began - rollout_s
        if step % config.train.save_trajectories_every == 0:
            self.folder.write_trajectories(
                step, [sample for group in samples for sample in group], self.rollouts.decode
            )
        metrics |= {"optimizer/learning_rate": rate, **played.metrics()}
        metrics |= reward_metrics(groups) | signal_metrics(groups, advantages)
        metrics |= {
            "time/rollout_s": rollout_s,
            "time/train_s": train_s,
            "time/step_s": time.perf_counter() - began,
            "time/train_tokens_per_s": metrics["batch/tokens"] / max(train_s, 1e-9),
        }
        return state, key, metrics

    def validate(self, step: int, state: TrainState) -> dict[str, float]:
        """Play each validation task once, at the run's sampling settings."""
        if not self.validation:
            return {}
        played = self.rollouts.collect(
            self.validation, params=state.params, version=step, seed=self.config.seed, group_size=1
        )
        return {name.replace("reward/", "validation/"): v for name, v in reward_metrics(list(played)).items()}


def _seed(key: jax.Array) -> int:
    return int(jax.random.bits(key, dtype=np.uint32)) >> 1


def _content_path(name: str) -> Path:
    path = Path(name).expanduser()
    return path if path.is_absolute() or path.exists() else content_root() / path


def _read(name: str, environments: Sequence[str] | None) -> list[Task]:
    return read_tasks(_content_path(name), environments=environments)


def _short_enough(task: Task, max_turns: int) -> bool:
    return max_turns == 0 or task.num_turns <= max_turns
