"""What an author of environments is: something that turns a toolset into a specification."""

from __future__ import annotations

import dataclasses
from typing import Protocol, runtime_checkable

from toolverse_jax.environment.spec import EnvSpec
from toolverse_jax.types import Toolset


@dataclasses.dataclass(frozen=True)
class Rejection:
    """Why a toolset was not turned into an environment."""

    reason: str
    """Code, for histograms: `external_content`, `code_execution`, `user_interface`, `generation`,
    `computation`, `unknown_meaning`, `unknown_argument`, `ignored_arguments`, `no_entity` or `no_link`."""
    detail: str
    """One sentence for people."""


@runtime_checkable
class EnvAuthor(Protocol):
    """Turns a toolset into an environment, or says why it does not."""

    id: str
    """Who writes: `rules@1`, `llm:<model>@1`."""

    def author(self, toolset: Toolset, seed: int = 0) -> EnvSpec | Rejection:
        """Return the specification of an environment for the toolset, or the reason there is none.

        Args:
            toolset: The tools, schemas verbatim.
            seed: Chooses among equally good inventions; the same seed gives the same specification.
        """
        ...
