"""Task files: one task per line as JSON, the same bytes for the same tasks, errors that name the line."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from toolverse_jax.errors import TaskError
from toolverse_jax.types import JSON, Binding, GoldenCall, Task, TaskTurn

TASK_VERSION = 1
CHECKSUM_FILE = "SHA256SUMS"


def task_to_json(task: Task) -> dict[str, JSON]:
    """Return a task as a JSON object with its format version."""
    return {"version": TASK_VERSION, **dataclasses.asdict(task)}


def task_from_json(data: JSON) -> Task:
    """Read what `task_to_json` wrote, strictly.

    Raises:
        TaskError: another version, or a member that is missing, unknown or of the wrong type.
    """
    if not isinstance(data, Mapping):
        raise TaskError(f"a task must be a JSON object, found {_shown(data)}; build the task file again")
    version = data.get("version")
    if version != TASK_VERSION or isinstance(version, bool):
        found = "no version" if "version" not in data else f"version {_shown(version)}"
        raise TaskError(
            f"task {_shown(data.get('id'))} has {found}, this release reads version {TASK_VERSION}; build the task file again"
        )
    members = {key: value for key, value in data.items() if key != "version"}
    _refuse_unknown(Task, members, "")
    try:
        task = _adapter().validate_json(json.dumps(members), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        member = ".".join(map(str, first["loc"])) or "task"
        found = "nothing" if first["type"].startswith("missing") else _shown(first["input"])
        raise TaskError(
            f"task {_shown(data.get('id'))} is invalid at {member}: found {found} ({first['msg']}); build the task file again"
        ) from error
    if not task.environment:
        raise TaskError(f"task {task.id!r} names no environment (found ''); build the task file again")
    if not task.turns:
        raise TaskError(f"task {task.id!r} has no turns; build the task file again")
    return task


def write_tasks(path: str | Path, tasks: Iterable[Task]) -> None:
    """Write a task file: UTF-8, sorted keys, one task per line; the file appears whole or not at all.

    Raises:
        TaskError: a task holds a value that JSON cannot express, such as NaN.
    """
    lines = []
    for task in tasks:
        try:
            line = json.dumps(
                task_to_json(task),
                sort_keys=True,
                ensure_ascii=False,
                allow_nan=False,
                separators=(",", ":"),
            )
            lines.append(line.encode() + b"\n")
        except (TypeError, ValueError) as error:
            raise TaskError(
                f"task {task.id!r} cannot be written as JSON ({error}); correct its values"
            ) from error
    _write_atomically(Path(path), b"".join(lines))


def read_tasks(path: str | Path, *, environments: Collection[str] | None = None) -> list[Task]:
    """Read a task file.

    Args:
        path: the file.
        environments: names of known environments; None: any name is accepted.

    Raises:
        TaskError: the file is missing or not UTF-8, or a line is cut off, invalid, repeats an id, or
            names an environment that is not known. The sentence names file and line.
    """
    path = Path(path)
    try:
        text = path.read_bytes().decode()
    except FileNotFoundError as error:
        raise TaskError(
            f"task file {path} does not exist; build it with `toolverse tasks` or correct the path"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"task file {path} cannot be read as UTF-8 text ({error}); build it again") from error
    tasks: list[Task] = []
    lines: dict[str, int] = {}
    # Only newlines separate tasks: str.splitlines would also split at characters inside strings.
    for number, line in enumerate(text.removesuffix("\n").split("\n") if text else (), start=1):
        where = f"{path}, line {number}"
        try:
            task = task_from_json(json.loads(line))
        except json.JSONDecodeError as error:
            raise TaskError(
                f"{where}: found {_shown(line)}, which is not a whole JSON object ({error.msg} at column {error.colno}); "
                "build the task file again"
            ) from error
        except TaskError as error:
            raise TaskError(f"{where}: {error}") from error
        if environments is not None and task.environment not in environments:
            raise TaskError(
                f"{where}: task {task.id!r} needs environment {task.environment!r}, which is not among the "
                f"{len(environments)} environments found; add its folder or build the task file again"
            )
        if task.id in lines:
            raise TaskError(
                f"{where}: task id {task.id!r} was used in line {lines[task.id]} already; build the task file again"
            )
        lines[task.id] = number
        tasks.append(task)
    return tasks


def split_environments(
    environments: Iterable[str], *, eval_fraction: float, seed: int = 0
) -> dict[str, tuple[str, ...]]:
    """Split environments into `train` and `eval`; whole environments, so nothing of one is seen in training.

    An environment's rank depends on its name and the seed alone. Each side is sorted by name.
    """
    if not 0 <= eval_fraction <= 1:
        raise ValueError(f"eval_fraction must be in [0, 1], got {eval_fraction}")
    names = sorted(set(environments))
    ranked = sorted(names, key=lambda name: hashlib.blake2b(f"{seed}/{name}".encode()).digest())
    num_eval = round(len(names) * eval_fraction)
    return {"train": tuple(sorted(ranked[num_eval:])), "eval": tuple(sorted(ranked[:num_eval]))}


def split_tasks(tasks: Iterable[Task], eval_environments: Collection[str]) -> dict[str, list[Task]]:
    """Split tasks into `train` and `eval` by environment, keeping their order."""
    split: dict[str, list[Task]] = {"train": [], "eval": []}
    for task in tasks:
        split["eval" if task.environment in eval_environments else "train"].append(task)
    return split


def write_checksums(folder: str | Path, names: Sequence[str]) -> None:
    """Write `SHA256SUMS` for files of a folder, in the format of `sha256sum`."""
    folder = Path(folder)
    lines = [f"{_sha256(folder / name)}  {name}\n" for name in sorted(names)]
    _write_atomically(folder / CHECKSUM_FILE, "".join(lines).encode())


def verify_checksums(folder: str | Path) -> tuple[str, ...]:
    """Check the files that `SHA256SUMS` lists and return their names.

    Raises:
        TaskError: the list is missing or malformed, or a file is missing or differs.
    """
    folder = Path(folder)
    try:
        lines = (folder / CHECKSUM_FILE).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError as error:
        raise TaskError(f"{folder / CHECKSUM_FILE} does not exist; write it with the task files") from error
    names = []
    for number, line in enumerate(lines, start=1):
        expected, separator, name = line.partition("  ")
        if not separator or len(expected) != 64:
            raise TaskError(
                f"{folder / CHECKSUM_FILE}, line {number}: found {_shown(line)}, not a checksum and a name"
            )
        if not (folder / name).is_file():
            raise TaskError(
                f"{folder / name} is listed in {CHECKSUM_FILE} and does not exist; fetch it again"
            )
        found = _sha256(folder / name)
        if found != expected:
            raise TaskError(
                f"{folder / name} has SHA-256 {found[:12]}..., {CHECKSUM_FILE} says {expected[:12]}...; fetch it again"
            )
        names.append(name)
    return tuple(names)


@functools.cache
def _adapter() -> TypeAdapter[Task]:
    return TypeAdapter(Task)


def _refuse_unknown(cls: type, data: Mapping[str, JSON], where: str) -> None:
    """Refuse members that a record does not have; their loss would go unnoticed otherwise."""
    known = {field.name for field in dataclasses.fields(cls)}
    for key, value in data.items():
        if key not in known:
            raise TaskError(f"unknown member {where}{key!r}; known are {', '.join(sorted(known))}")
        nested = _NESTED.get((cls, key))
        if nested is None:
            continue
        for label, item in _walk(value, f"{where}{key}"):
            _refuse_unknown(nested, item, f"{label}.")


_NESTED: dict[tuple[type, str], type] = {
    (Task, "turns"): TaskTurn,
    (TaskTurn, "golden"): GoldenCall,
    (TaskTurn, "any_of"): GoldenCall,
    (GoldenCall, "bindings"): Binding,
}


def _walk(value: JSON, label: str) -> Iterable[tuple[str, Mapping[str, JSON]]]:
    """Yield the records inside nested lists, or inside the mapping of bindings."""
    if isinstance(value, list | tuple):
        for index, item in enumerate(value):
            if isinstance(item, Mapping):
                yield f"{label}[{index}]", item
            else:
                yield from _walk(item, f"{label}[{index}]")
    elif isinstance(value, Mapping):
        yield from ((f"{label}.{key}", item) for key, item in value.items() if isinstance(item, Mapping))


def _shown(value: JSON, limit: int = 60) -> str:
    text = repr(value)
    return text if len(text) <= limit else text[:limit] + "..."


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_atomically(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
