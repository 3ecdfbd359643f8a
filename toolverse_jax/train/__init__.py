"""Training: state, jitted step, optimizer, checkpoints, metrics, the loop and the supervised start."""

from __future__ import annotations

from toolverse_jax.train.checkpoint import Checkpoints, RunRecord
from toolverse_jax.train.loop import TrainResult, train
from toolverse_jax.train.metrics import MetricsWriter, read_metrics
from toolverse_jax.train.optimizer import make_optimizer, make_schedule
from toolverse_jax.train.rollout_source import EmbeddedRollouts, RolloutSource
from toolverse_jax.train.run_folder import RunFolder
from toolverse_jax.train.signal import group_advantages, signal_metrics
from toolverse_jax.train.state import TrainState, abstract_state, init_state
from toolverse_jax.train.step import TrainStep, policy_objective, supervised_objective
from toolverse_jax.train.supervised import SupervisedTrainer, warm_start

__all__ = [
    "Checkpoints",
    "EmbeddedRollouts",
    "MetricsWriter",
    "RolloutSource",
    "RunFolder",
    "RunRecord",
    "SupervisedTrainer",
    "TrainResult",
    "TrainState",
    "TrainStep",
    "abstract_state",
    "group_advantages",
    "init_state",
    "make_optimizer",
    "make_schedule",
    "policy_objective",
    "read_metrics",
    "signal_metrics",
    "supervised_objective",
    "train",
    "warm_start",
]
