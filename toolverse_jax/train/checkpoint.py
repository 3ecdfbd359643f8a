"""Checkpoints of a run: one atomic folder per step, written by Orbax.

A step holds the training state (parameters, optimizer, update counter) and a small JSON record (step,
random key, place in the task stream, configuration). Orbax writes into a temporary folder and renames
it, so a run that is killed leaves whole steps only; what is not whole is ignored.
"""

from __future__ import annotations

import dataclasses
import logging
import shutil
from pathlib import Path
from typing import Any

import jax
import orbax.checkpoint as ocp

from toolverse_jax.errors import CheckpointError
from toolverse_jax.train.state import TrainState
from toolverse_jax.types import JSON

_log = logging.getLogger(__name__)

_STATE, _RUN = "state", "run"
_METADATA = "_CHECKPOINT_METADATA"


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunRecord:
    """The part of a checkpoint that is not arrays on a mesh."""

    step: int
    """Finished training steps."""
    key: list[int]
    """Data of the random key that the next step splits."""
    task_stream: dict[str, JSON]
    """From `TaskStream.get_state`."""
    config: str
    """From `config_fingerprint`."""


class Checkpoints:
    """The checkpoints of one run folder."""

    def __init__(self, folder: str | Path, *, keep: int = 2):
        """Open a folder of checkpoints, creating it.

        Args:
            folder: the folder.
            keep: newest steps that are kept.
        """
        self.folder = Path(folder).absolute()
        self._remove_partial_steps()
        options = ocp.CheckpointManagerOptions(
            max_to_keep=keep,
            create=True,
            cleanup_tmp_directories=True,
            # The next step donates the state, so it must be on disk before the loop goes on.
            enable_async_checkpointing=False,
        )
        self._manager = ocp.CheckpointManager(self.folder, options=options, item_names=(_STATE, _RUN))

    def latest_step(self) -> int | None:
        """Return the newest step that was written whole, or None."""
        return max((int(path.name) for path in self._step_folders() if _is_whole(path)), default=None)

    def save(self, state: TrainState, record: RunRecord) -> None:
        """Write a step and delete the steps that are too old.

        Raises:
            CheckpointError: it cannot be written.
        """
        try:
            self._manager.save(
                record.step,
                args=ocp.args.Composite(
                    **{
                        _STATE: ocp.args.StandardSave(state),  # type: ignore[call-arg]
                        _RUN: ocp.args.JsonSave(dataclasses.asdict(record)),  # type: ignore[call-arg]
                    }
                ),
                force=True,
            )
            self._manager.wait_until_finished()
        except (OSError, ValueError) as error:
            raise CheckpointError(
                f"checkpoint step {record.step} cannot be written to {self.folder}: {_first_line(error)}"
            ) from error

    def restore(self, abstract: TrainState, step: int | None = None) -> tuple[TrainState, RunRecord]:
        """Read a step.

        Args:
            abstract: shapes, types and shardings, from `abstract_state`.
            step: which one; default: the newest.

        Raises:
            CheckpointError: there is none, or it is damaged or of another model.
        """
        step = self.latest_step() if step is None else step
        if step is None or not (self.folder / str(step)).is_dir():
            found = "no checkpoint" if step is None else f"no checkpoint step {step}"
            raise CheckpointError(f"{self.folder} holds {found}; give the checkpoints folder of a run")
        try:
            restored = self._manager.restore(
                step,
                args=ocp.args.Composite(
                    **{
                        _STATE: ocp.args.StandardRestore(abstract),  # type: ignore[call-arg]
                        _RUN: ocp.args.JsonRestore(),  # type: ignore[call-arg]
                    }
                ),
            )
            return restored[_STATE], RunRecord(**restored[_RUN])
        # A damaged file surfaces as nearly any type, from JSON to the array store's own.
        except Exception as error:
            raise CheckpointError(
                f"checkpoint step {step} in {self.folder} is damaged or of another model ({_first_line(error)}); "
                f"delete the folder {step} to resume from an earlier step"
            ) from error

    def _step_folders(self) -> list[Path]:
        return [path for path in self.folder.glob("*") if path.name.isdecimal()]

    def _remove_partial_steps(self) -> None:
        """Remove what a kill left of a step, for example half-way through its deletion."""
        if jax.process_index() == 0:
            for path in self._step_folders():
                if not _is_whole(path):
                    _log.warning("removing the partly written checkpoint %s", path)
                    shutil.rmtree(path)

    def close(self) -> None:
        """Release the manager's threads."""
        self._manager.close()

    def __enter__(self) -> Checkpoints:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def _is_whole(path: Path) -> bool:
    return all((path / part).exists() for part in (_STATE, _RUN, _METADATA))


def _first_line(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0][:200] if text else 'no detail'}"
