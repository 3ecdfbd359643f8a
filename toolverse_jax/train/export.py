"""Writes a saved step of a run as a Hugging Face checkpoint."""

from __future__ import annotations

import json
from pathlib import Path

import jax

from toolverse_jax.config import load_config_tree
from toolverse_jax.errors import CheckpointError
from toolverse_jax.paths import content_root
from toolverse_jax.policy import load_policy, make_mesh, save_policy_hf
from toolverse_jax.policy.shipped import resolve_checkpoint
from toolverse_jax.train.checkpoint import Checkpoints
from toolverse_jax.train.optimizer import make_optimizer
from toolverse_jax.train.run_folder import RunFolder
from toolverse_jax.train.state import abstract_state


def export_step(run_dir: Path, out: Path, *, step: int | None = None, dtype: str = "bfloat16") -> int:
    """Write the parameters of a training step to `out`, with the tokenizer of the policy it started from.

    Returns:
        The step that was written.

    Raises:
        CheckpointError: the run has no such step, or its checkpoint is damaged.
    """
    folder = RunFolder(run_dir)
    if not folder.config.is_file() or not folder.checkpoints.is_dir():
        raise CheckpointError(
            f"{run_dir} is not a run folder with checkpoints; give the --run folder of `toolverse train`"
        )
    config = load_config_tree(json.loads(folder.config.read_text(encoding="utf-8")))
    mesh = make_mesh(config.mesh)
    start = resolve_checkpoint(config.policy.checkpoint, relative_to=content_root())
    policy = load_policy(start, mesh=mesh)
    optimizer = make_optimizer(config.optimizer, config.train.steps * config.train.minibatches)
    with Checkpoints(folder.checkpoints, read_only=True) as checkpoints:
        state, record = checkpoints.restore(abstract_state(policy.params, optimizer, mesh), step)
    save_policy_hf(policy, jax.device_get(state.params), out, dtype=dtype, tokenizer_files_from=start)
    return record.step
