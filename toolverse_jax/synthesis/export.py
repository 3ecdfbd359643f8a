"""Writes an environment folder: the specification, its toolset, a server, a card, the validation report."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from toolverse_jax.environment.spec import EnvSpec
from toolverse_jax.synthesis.cards import environment_card
from toolverse_jax.synthesis.toolset import toolset_to_json
from toolverse_jax.synthesis.validate import ValidationReport
from toolverse_jax.types import JSON, Toolset

LINE_WIDTH = 110
_ALWAYS_WRITTEN = frozenset({"kind", "op", "version"})
_SERVER = '''"""Serves this environment to any MCP client over stdio: `python server.py [episode seed]`."""

import sys
from pathlib import Path

from toolverse_jax.environment.mcp_server import serve_stdio

if __name__ == "__main__":
    serve_stdio(Path(__file__).parent, seed=int(sys.argv[1]) if len(sys.argv) > 1 else 0)
'''


def write_environment(folder: str | Path, toolset: Toolset, spec: EnvSpec, report: ValidationReport) -> Path:
    """Write or replace an environment folder; it is never seen half-written.

    Other files that the folder holds are kept. The same input gives the same bytes.

    Args:
        folder: the environment's own folder, such as `envs/marina_berths`.
        toolset: the tools the specification was made from.
        spec: the specification.
        report: what validation found; `validation.json` says whether the environment is accepted.

    Returns:
        The folder.
    """
    target = Path(folder)
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_name(f".{target.name}.{os.getpid()}.new")
    old = target.with_name(f".{target.name}.{os.getpid()}.old")
    try:
        if target.is_dir():
            shutil.copytree(target, fresh)
        else:
            fresh.mkdir()
        for name, text in environment_files(toolset, spec, report).items():
            (fresh / name).write_text(text, encoding="utf-8")
        if target.is_dir():
            target.rename(old)
        try:
            fresh.rename(target)
        except OSError:
            if old.is_dir():
                old.rename(target)
            raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
    return target


def environment_files(toolset: Toolset, spec: EnvSpec, report: ValidationReport) -> dict[str, str]:
    """Return the text of every file of an environment folder by name."""
    return {
        "toolset.json": pretty_json(toolset_to_json(toolset)) + "\n",
        "env.json": pretty_json(spec_to_json(spec)) + "\n",
        "validation.json": pretty_json(report.to_json()) + "\n",
        "server.py": _SERVER,
        "README.md": environment_card(toolset, spec, report),
    }


def spec_to_json(spec: EnvSpec) -> dict[str, JSON]:
    """Return a specification as JSON in the order of its fields, without what equals a default."""
    document = _without_defaults(spec)
    again = EnvSpec.model_validate(document)
    assert again.model_dump(mode="json") == spec.model_dump(mode="json"), (
        "a specification must survive its own file"
    )
    return document


def _without_defaults(value: Any) -> Any:
    if isinstance(value, BaseModel):
        kept = {}
        for name, field in type(value).model_fields.items():
            part = getattr(value, name)
            if (
                field.is_required()
                or name in _ALWAYS_WRITTEN
                or part != field.get_default(call_default_factory=True)
            ):
                kept[name] = _without_defaults(part)
        return kept
    if isinstance(value, dict):
        return {name: _without_defaults(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_without_defaults(part) for part in value]
    return value


def pretty_json(value: JSON, *, width: int = LINE_WIDTH, indent: int = 0) -> str:
    """Return JSON for people: what fits on a line stays on it, the rest opens up by two spaces."""
    flat = json.dumps(value, ensure_ascii=False)
    if len(flat) + indent <= width or not value or not isinstance(value, dict | list):
        return flat
    inner = " " * (indent + 2)
    if isinstance(value, dict):
        parts = [
            f"{inner}{json.dumps(name)}: {pretty_json(part, width=width, indent=indent + 2)}"
            for name, part in value.items()
        ]
        return "{\n" + ",\n".join(parts) + "\n" + " " * indent + "}"
    parts = [inner + pretty_json(part, width=width, indent=indent + 2) for part in value]
    return "[\n" + ",\n".join(parts) + "\n" + " " * indent + "]"
