"""Synthesis: from a set of tools to a validated environment."""

from __future__ import annotations

from toolverse_jax.synthesis.author import EnvAuthor, Rejection
from toolverse_jax.synthesis.export import write_environment
from toolverse_jax.synthesis.normalise import NormalisedTool, NormalisedToolset, normalise_toolset
from toolverse_jax.synthesis.pipeline import Synthesis, split_of, synthesize, synthesize_folder
from toolverse_jax.synthesis.rules import RulesAuthor
from toolverse_jax.synthesis.toolset import read_toolset, toolset_from_json, toolset_to_json
from toolverse_jax.synthesis.validate import ValidationReport, validate

__all__ = [
    "EnvAuthor",
    "NormalisedTool",
    "NormalisedToolset",
    "Rejection",
    "RulesAuthor",
    "Synthesis",
    "ValidationReport",
    "normalise_toolset",
    "read_toolset",
    "split_of",
    "synthesize",
    "synthesize_folder",
    "toolset_from_json",
    "toolset_to_json",
    "validate",
    "write_environment",
]
