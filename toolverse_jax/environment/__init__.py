"""Executable environments: specifications, the engine that runs them, sessions, MCP faces, catalog."""

from __future__ import annotations

from toolverse_jax.environment.catalog import list_environments, load_catalog
from toolverse_jax.environment.database import seed_rows
from toolverse_jax.environment.engine import Environment, load_environment, load_spec
from toolverse_jax.environment.operations import Annotations, output_schema
from toolverse_jax.environment.session import JournalEntry, Session, Snapshot
from toolverse_jax.environment.spec import EnvSpec

__all__ = [
    "Annotations",
    "EnvSpec",
    "Environment",
    "JournalEntry",
    "Session",
    "Snapshot",
    "list_environments",
    "load_catalog",
    "load_environment",
    "load_spec",
    "output_schema",
    "seed_rows",
]
