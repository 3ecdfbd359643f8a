"""Checkpoints of a run: one atomic folder per step, written by Orbax.

A step holds the training state (parameters, optimizer, update counter) and a small JSON record (step,
random key, place in the task stream, configuration). Orbax writes into a temporary folder and renames
it; the manifest, digests of all files and shapes of all arrays, is added last. A step without it was
written partly and is ignored; a step that differs from it is refused, since the array store itself does
not notice a changed byte.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import os
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
_MANIFEST = "manifest.json"


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

    def __init__(self, folder: str | Path, *, keep: int = 2, read_only: bool = False):
        """Open a folder of checkpoints, creating it.

        Args:
            folder: the folder.
            keep: newest steps that are kept.
            read_only: change nothing, so that the folder of a run in progress can be read; a step
                that is being written stays.
        """
        self.folder = Path(folder).absolute()
        if not read_only:
            self._remove_partial_steps()
        options = ocp.CheckpointManagerOptions(
            max_to_keep=keep,
            create=not read_only,
            cleanup_tmp_directories=not read_only,
            read_only=read_only,
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
            if jax.process_index() == 0:
                _write_manifest(self.folder / str(record.step), state)
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
        advice = f"delete the folder {step} to resume from an earlier step"
        if fault := _fault(self.folder / str(step), abstract):
            raise CheckpointError(f"checkpoint step {step} in {self.folder} {fault}; {advice}")
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
        # What is left, such as a full memory or a failing disk, surfaces as nearly any type.
        except Exception as error:
            raise CheckpointError(
                f"checkpoint step {step} in {self.folder} cannot be read ({_first_line(error)}); {advice}"
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
    return (path / _MANIFEST).is_file()


def _write_manifest(folder: Path, state: TrainState) -> None:
    manifest = {"files": _digests(folder), "shapes": _shapes(state)}
    temporary = folder / f".{_MANIFEST}.tmp"
    temporary.write_text(json.dumps(manifest), encoding="utf-8")
    os.replace(temporary, folder / _MANIFEST)


def _fault(folder: Path, abstract: TrainState) -> str:
    """Return what is wrong with a step, empty when nothing is."""
    try:
        manifest = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
        written, shapes = manifest["files"], manifest["shapes"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"has no readable {_MANIFEST} ({type(error).__name__})"
    found = _digests(folder)
    if damaged := sorted(name for name in written if found.get(name) != written[name]):
        what = "changed since it was written" if damaged[0] in found else "missing"
        more = f" (and {len(damaged) - 1} more)" if len(damaged) > 1 else ""
        return f"is damaged: file {damaged[0]} is {what}{more}"
    wanted = _shapes(abstract)
    if other := sorted(k for k in shapes | wanted if shapes.get(k) != wanted.get(k)):
        return f"is of another model: {other[0]} has shape {shapes.get(other[0])}, expected {wanted.get(other[0])}"
    return ""


def _digests(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and _MANIFEST not in path.name)
    return {path.relative_to(folder).as_posix(): _digest(path) for path in files}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()[:32]


def _shapes(state: TrainState) -> dict[str, list[int]]:
    leaves = jax.tree_util.tree_leaves_with_path(state)
    return {jax.tree_util.keystr(path): list(leaf.shape) for path, leaf in leaves}


def _first_line(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0][:200] if text else 'no detail'}"
