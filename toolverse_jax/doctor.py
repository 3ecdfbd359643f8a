"""Checks an installation and says what was found."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import sys

from toolverse_jax.errors import ToolverseError
from toolverse_jax.paths import content_root


@dataclasses.dataclass(frozen=True, kw_only=True)
class Check:
    """One thing looked at."""

    name: str
    ok: bool
    found: str


_PACKAGES = ("jax", "flax", "optax", "orbax-checkpoint", "grain", "transformers", "mcp", "networkx", "numpy")


def run_checks() -> list[Check]:
    """Return the checks in order; nothing is changed and nothing is downloaded."""
    version = sys.version.split()[0]
    checks = [Check(name="python", ok=sys.version_info >= (3, 12), found=version)]
    for package in _PACKAGES:
        try:
            checks.append(Check(name=package, ok=True, found=importlib.metadata.version(package)))
        except importlib.metadata.PackageNotFoundError:
            checks.append(Check(name=package, ok=False, found="not installed; run launch/setup.sh"))
    checks.append(_content())
    checks.append(_devices())
    return checks


def _content() -> Check:
    try:
        root = content_root()
    except ToolverseError as error:
        return Check(name="content folders", ok=False, found=str(error))
    count = sum(1 for _ in (root / "envs").glob("*/env.json"))
    return Check(name="content folders", ok=count > 0, found=f"{count} environments in {root / 'envs'}")


def _devices() -> Check:
    try:
        import jax

        devices = jax.devices()
    except (ImportError, RuntimeError) as error:
        return Check(name="devices", ok=False, found=f"JAX finds no device: {error}")
    kinds = sorted({f"{device.platform} ({device.device_kind})" for device in devices})
    return Check(name="devices", ok=True, found=f"{len(devices)} x {', '.join(kinds)}")
