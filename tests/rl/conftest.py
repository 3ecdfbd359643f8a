"""Checks the shape annotations of toolverse_jax.rl while its tests run."""

from __future__ import annotations

import importlib
import sys

from jaxtyping import install_import_hook

PACKAGE = "toolverse_jax.rl"


def _import_checked() -> None:
    """Import the package under the hook, even where another test has imported it before.

    The modules that are there already stay as they are for whoever holds them; only what the tests
    of this folder import from now on is checked.
    """
    for name in sorted(name for name in sys.modules if name == PACKAGE or name.startswith(PACKAGE + ".")):
        del sys.modules[name]
    with install_import_hook(PACKAGE, "beartype.beartype"):
        importlib.import_module(PACKAGE)
        for name in ("benchmark", "losses"):
            importlib.import_module(f"{PACKAGE}.{name}")


_import_checked()
