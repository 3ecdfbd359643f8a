"""From a toolset to a validated environment folder."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

from toolverse_jax.environment.spec import EnvSpec
from toolverse_jax.errors import ToolsetError
from toolverse_jax.synthesis.author import EnvAuthor, Rejection
from toolverse_jax.synthesis.export import write_environment
from toolverse_jax.synthesis.rules import RulesAuthor
from toolverse_jax.synthesis.toolset import read_toolset
from toolverse_jax.synthesis.validate import ValidationReport, validate
from toolverse_jax.types import Toolset

SPLIT_LABEL = "split:"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Synthesis:
    """What became of one toolset."""

    toolset: Toolset
    spec: EnvSpec | None = None
    report: ValidationReport | None = None
    rejection: Rejection | None = None
    """Why the author declined; None where it wrote a specification, accepted or not."""

    @property
    def accepted(self) -> bool:
        """Whether the environment may be used."""
        return self.report is not None and self.report.accepted

    @property
    def reason(self) -> str:
        """Why it was not accepted, one sentence; empty when it was."""
        if self.rejection is not None:
            return f"{self.rejection.reason}: {self.rejection.detail}"
        return self.report.reasons[0] if self.report is not None and self.report.reasons else ""


Progress = Callable[[int, int, Synthesis], None]
"""Called with (done, total, the latest synthesis)."""


def synthesize(toolset: Toolset, author: EnvAuthor | None = None, *, seed: int = 0) -> Synthesis:
    """Let an author write a specification for a toolset, and validate it.

    Args:
        toolset: the tools.
        author: who writes; default: the rules author.
        seed: seed of the author's own choices.
    """
    written = (author or RulesAuthor()).author(toolset, seed=seed)
    if isinstance(written, Rejection):
        return Synthesis(toolset=toolset, rejection=written)
    return Synthesis(toolset=toolset, spec=written, report=validate(written))


def synthesize_folder(
    envs_dir: str | Path,
    out_dir: str | Path,
    *,
    author: EnvAuthor | None = None,
    seed: int = 0,
    on_progress: Progress | None = None,
) -> list[Synthesis]:
    """Make an environment of every `<envs_dir>/<name>/toolset.json`, in the order of their names.

    Accepted environments are written to `<out_dir>/<name>`, which may be the same folder; others
    are only returned.

    Raises:
        ToolsetError: the folder holds no toolset, or one of them cannot be read.
    """
    files = sorted(Path(envs_dir).glob("*/toolset.json"))
    if not files:
        raise ToolsetError(
            f"no */toolset.json found in {envs_dir}; give the folder that holds the environments"
        )
    done: list[Synthesis] = []
    for file in files:
        synthesis = synthesize(read_toolset(file), author, seed=seed)
        if synthesis.accepted and synthesis.spec is not None and synthesis.report is not None:
            write_environment(
                Path(out_dir) / file.parent.name, synthesis.toolset, synthesis.spec, synthesis.report
            )
        done.append(synthesis)
        if on_progress is not None:
            on_progress(len(done), len(files), synthesis)
    return done


def split_of(toolset: Toolset) -> str:
    """Return the split a toolset is labelled with, `train` or `held-out`; `train` without a label."""
    return next(
        (label[len(SPLIT_LABEL) :] for label in toolset.labels if label.startswith(SPLIT_LABEL)), "train"
    )
