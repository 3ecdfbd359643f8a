"""Metrics of a run: one JSON object per step in `metrics.jsonl`.

Keys are `area/name`; areas are `reward`, `signal`, `policy`, `optimizer`, `rollout`, `batch`,
`validation`, and `time`, which holds everything that depends on the clock. Two runs of one
configuration agree in all keys outside `time`.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path

from toolverse_jax.errors import CheckpointError
from toolverse_jax.types import JSON


class MetricsWriter:
    """Appends one line per step; starting at a step cuts off what lies beyond it."""

    def __init__(self, path: str | Path, *, after_step: int = 0):
        """Open the file.

        Args:
            path: the JSONL file, created where it is missing.
            after_step: last step whose line is kept, so that a resumed run leaves the file as if it
                had never stopped.

        Raises:
            CheckpointError: lines of steps up to `after_step` are missing.
        """
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        kept = [line for line in _whole_lines(self.path) if json.loads(line)["step"] <= after_step]
        if len(kept) != after_step:
            raise CheckpointError(
                f"{self.path} holds {len(kept)} of the {after_step} steps before the checkpoint; "
                "restore the file or start in another run folder"
            )
        temporary = self.path.with_name(f".{self.path.name}.tmp")
        temporary.write_text("".join(kept), encoding="utf-8")
        os.replace(temporary, self.path)

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        """Append the line of a step; keys in order of their names, `time/...` last."""
        line: dict[str, JSON] = {"step": step}
        for name in sorted(metrics, key=lambda name: (name.startswith("time/"), name)):
            value = float(metrics[name])
            line[name] = value if math.isfinite(value) else None
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, separators=(",", ":")) + "\n")


def read_metrics(path: str | Path) -> list[dict[str, JSON]]:
    """Read the lines of a metrics file; a cut-off last line is left out."""
    return [json.loads(line) for line in _whole_lines(Path(path))]


def _whole_lines(path: Path) -> list[str]:
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return [line for line in lines if line.endswith("\n")]
