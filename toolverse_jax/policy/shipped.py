"""The policy that ships with the project, and how a checkpoint is named."""

from __future__ import annotations

from pathlib import Path

from toolverse_jax.errors import CheckpointError

TINY = "tiny"
"""Name of the shipped policy: Qwen3 architecture, about a million parameters."""


def resolve_checkpoint(name: str | Path, *, relative_to: Path | None = None) -> Path:
    """Return the Hugging Face folder that a checkpoint name stands for.

    Args:
        name: `tiny`, or a folder.
        relative_to: where a relative folder is looked for besides the working directory.

    Raises:
        CheckpointError: there is no such folder.
    """
    if str(name) == TINY:
        folder = Path(__file__).resolve().parent / TINY
        if not (folder / "config.json").is_file():
            raise CheckpointError(
                f"the shipped tiny policy is missing from {folder}; make it with `make tiny-policy`"
            )
        return folder
    places = [Path(name)] if relative_to is None else [Path(name), relative_to / name]
    for place in places:
        if (place / "config.json").is_file():
            return place
    tried = " or ".join(str(place) for place in dict.fromkeys(places))
    raise CheckpointError(
        f"no checkpoint at {tried} (no config.json there); give a Hugging Face checkpoint folder, or `tiny`"
    )
