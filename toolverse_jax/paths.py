"""Finds the content folders (`envs/`, `tasks/`, `launch/`) that live beside the package."""

from __future__ import annotations

import os
from pathlib import Path

from toolverse_jax.errors import ToolverseError


def content_root() -> Path:
    """Return the folder that holds `envs/`, `tasks/` and `launch/`.

    Looked up in this order: `$TOOLVERSE_ROOT`, the checkout above an editable install, the
    working directory.

    Raises:
        ToolverseError: none of the places holds an `envs/` folder.
    """
    tried: list[Path] = []
    from_environment = os.environ.get("TOOLVERSE_ROOT")
    candidates = [Path(from_environment)] if from_environment else []
    candidates += [Path(__file__).resolve().parent.parent, Path.cwd()]
    for candidate in candidates:
        if (candidate / "envs").is_dir():
            return candidate
        tried.append(candidate)
    places = ", ".join(str(path) for path in tried)
    raise ToolverseError(
        f"no envs/ folder found (looked in {places}); set TOOLVERSE_ROOT to a checkout of toolverse_jax"
    )


def envs_dir() -> Path:
    """Return the folder of shipped environments."""
    return content_root() / "envs"


def tasks_dir() -> Path:
    """Return the folder of shipped tasks."""
    return content_root() / "tasks"


def launch_dir() -> Path:
    """Return the folder of launch scripts and configurations."""
    return content_root() / "launch"
