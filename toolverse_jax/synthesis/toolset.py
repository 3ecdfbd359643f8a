"""Reads and writes a toolset file: the named tools of one server, schemas verbatim.

The form is `{"version": 1, "name", "overview", "labels", "source", "licence", "tools": [...]}` with tools
`{"name", "description", "input_schema"}`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from toolverse_jax.errors import ToolsetError
from toolverse_jax.types import JSON, Toolset, ToolSpec

TOOLSET_VERSION = 1


def read_toolset(path: str | Path) -> Toolset:
    """Read a toolset file.

    Args:
        path: A `toolset.json`, or the folder that holds it.

    Raises:
        ToolsetError: the file cannot be read, or what it holds is not a toolset.
    """
    file = Path(path)
    if file.is_dir():
        file = file / "toolset.json"
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ToolsetError(f"{file} is not UTF-8 text; save the toolset as UTF-8 JSON") from error
    except OSError as error:
        raise ToolsetError(
            f"cannot read the toolset {file}: {error.strerror or error}; give the path of a toolset.json"
        ) from error
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise ToolsetError(
            f"{file} is not valid JSON ({error.msg} at line {error.lineno}); repair the file"
        ) from error
    return toolset_from_json(document, where=str(file))


def toolset_from_json(document: JSON, *, where: str = "toolset") -> Toolset:
    """Check a parsed toolset document and return the record.

    Args:
        document: The parsed JSON.
        where: Name of the origin, for error messages.

    Raises:
        ToolsetError: the document is not a toolset.
    """
    if not isinstance(document, dict):
        raise ToolsetError(f"{where} holds {_kind(document)}; a toolset is a JSON object")
    version = document.get("version", TOOLSET_VERSION)
    if version != TOOLSET_VERSION:
        raise ToolsetError(f"{where} has version {version!r}; this release reads version {TOOLSET_VERSION}")
    name = document.get("name")
    if not isinstance(name, str) or not name.strip():
        raise ToolsetError(f"{where} has name {name!r}; give the toolset a non-empty name")
    raw_tools = document.get("tools")
    if not isinstance(raw_tools, list) or not raw_tools:
        raise ToolsetError(f"{where} lists no tools; add at least one tool under 'tools'")
    tools = tuple(_tool(raw, index, where) for index, raw in enumerate(raw_tools))
    seen: set[str] = set()
    for tool in tools:
        if tool.name in seen:
            raise ToolsetError(f"{where} lists the tool {tool.name!r} twice; tool names must be distinct")
        seen.add(tool.name)
    labels = document.get("labels", [])
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise ToolsetError(f"{where} has labels {labels!r}; labels are a list of strings")
    texts = {key: document.get(key, "") for key in ("source", "licence", "overview")}
    for key, value in texts.items():
        if not isinstance(value, str):
            raise ToolsetError(f"{where} has {key} {value!r}; {key} is a string")
    return Toolset(name=name.strip(), tools=tools, labels=tuple(labels), **texts)


def toolset_to_json(toolset: Toolset) -> dict[str, JSON]:
    """Return the document that `read_toolset` reads back to the same record."""
    return {
        "version": TOOLSET_VERSION,
        "name": toolset.name,
        "overview": toolset.overview,
        "labels": list(toolset.labels),
        "source": toolset.source,
        "licence": toolset.licence,
        "tools": [
            {"name": tool.name, "description": tool.description, "input_schema": dict(tool.input_schema)}
            for tool in toolset.tools
        ],
    }


def _tool(raw: Any, index: int, where: str) -> ToolSpec:
    if not isinstance(raw, dict):
        raise ToolsetError(f"{where}: tool {index} is {_kind(raw)}; a tool is a JSON object")
    name = raw.get("name")
    if not isinstance(name, str) or not name.strip():
        raise ToolsetError(f"{where}: tool {index} has name {name!r}; give it a non-empty name")
    description = raw.get("description", "")
    if not isinstance(description, str):
        raise ToolsetError(
            f"{where}: tool {name!r} has description {description!r}; a description is a string"
        )
    schema = raw.get("input_schema", {"type": "object", "properties": {}})
    if not isinstance(schema, dict):
        raise ToolsetError(
            f"{where}: tool {name!r} has an input_schema that is {_kind(schema)}; a JSON Schema is an object"
        )
    return ToolSpec(name=name, description=description, input_schema=schema)


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    return {str: "a string", list: "a list", dict: "an object"}.get(type(value), type(value).__name__)
