"""Finds the environments of a folder."""

from __future__ import annotations

from pathlib import Path

from toolverse_jax.environment.engine import Environment, load_environment
from toolverse_jax.errors import EnvironmentSpecError


def list_environments(folder: str | Path) -> tuple[str, ...]:
    """Return the names of the environments in a folder, sorted: its subfolders that hold an `env.json`.

    Raises:
        EnvironmentSpecError: the folder does not exist.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise EnvironmentSpecError(f"{folder} is not a folder of environments; give one such as envs")
    return tuple(sorted(path.parent.name for path in folder.glob("*/env.json")))


def load_catalog(folder: str | Path) -> dict[str, Environment]:
    """Load all environments of a folder, by folder name.

    Raises:
        EnvironmentSpecError: the folder does not exist, one environment is invalid, or its name is
            not that of its folder.
    """
    catalog: dict[str, Environment] = {}
    for name in list_environments(folder):
        environment = load_environment(Path(folder) / name)
        if environment.name != name:
            raise EnvironmentSpecError(
                f"the environment in {Path(folder) / name} is named {environment.name!r}; rename the folder or the environment"
            )
        catalog[name] = environment
    return catalog
