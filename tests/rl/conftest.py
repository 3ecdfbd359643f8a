"""Checks the shape annotations of toolverse_jax.rl while its tests run."""

from __future__ import annotations

from jaxtyping import install_import_hook

install_import_hook("toolverse_jax.rl", "beartype.beartype")
