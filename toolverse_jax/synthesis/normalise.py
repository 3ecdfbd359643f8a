"""Normalises the tools of a toolset: plain JSON Schemas, and a note for every change.

The raw schema is kept verbatim beside the normalised one.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from toolverse_jax.synthesis.schema_repair import repair_schema
from toolverse_jax.types import JSON, Toolset

_UI_NOISE = re.compile(r"^\s*Deploy Server\b.*\bTry in Playground\s*$", re.IGNORECASE | re.DOTALL)
_NO_DESCRIPTION = re.compile(
    r"^\s*(description not available|no description( available| provided)?)\.?\s*$", re.I
)
_BUTTON_WORDS = frozenset(
    {"true", "false", "add", "item", "delete", "remove", "submit", "run", "reset", "copy"}
)
_IDENTIFIER = re.compile(r"^[A-Za-z_$][\w$.-]*$")
_ARGS_HEADING = re.compile(r"^[ \t]*(?:Args|Arguments|Parameters|Params)[ \t]*:[ \t]*$", re.MULTILINE)
_ARGS_END = re.compile(r"^[ \t]*(?:Returns?|Raises?|Yields?|Examples?|Notes?|Usage)[ \t]*:", re.IGNORECASE)
_ARGS_ENTRY = re.compile(r"^[ \t]*[-*]?[ \t]*`?([A-Za-z_]\w*)`?[ \t]*(?:\(([^)]*)\))?[ \t]*:[ \t]*(.*)$")


@dataclasses.dataclass(frozen=True, kw_only=True)
class NormalisedTool:
    """One tool after normalisation."""

    name: str
    description: str
    input_schema: dict[str, JSON]
    """A plain object schema: no references, no nullable unions, every keyword valid."""
    raw_schema: dict[str, JSON]
    """The schema as it was given."""
    changes: tuple[str, ...] = ()
    """Notes of what was changed."""

    @property
    def properties(self) -> dict[str, dict[str, Any]]:
        return self.input_schema["properties"]

    @property
    def required(self) -> tuple[str, ...]:
        return tuple(self.input_schema.get("required", ()))


@dataclasses.dataclass(frozen=True, kw_only=True)
class NormalisedToolset:
    """A toolset with normalised tools."""

    toolset: Toolset
    tools: tuple[NormalisedTool, ...]
    scraped: bool = False
    """Some tool had only a scraped list of parameter names: their types are guesses."""
    changes: tuple[str, ...] = ()
    """Notes about the set as a whole."""

    @property
    def name(self) -> str:
        return self.toolset.name


def normalise_toolset(toolset: Toolset) -> NormalisedToolset:
    """Return the toolset with plain schemas and clean descriptions.

    A second tool of the same name is dropped with a note on the set.
    """
    tools: dict[str, NormalisedTool] = {}
    set_notes: list[str] = []
    scraped = False
    for tool in toolset.tools:
        if tool.name in tools:
            set_notes.append(f"a second tool named {tool.name!r} was dropped")
            continue
        raw = dict(tool.input_schema)
        notes: list[str] = []
        description = clean_description(tool.description, notes)
        if _is_scraped(raw):
            scraped = True
            schema: dict[str, Any] = _schema_from_names(tool.name, raw["parameters"], notes)
        else:
            schema = repair_schema(raw, notes)
        description = recover_argument_descriptions(description, schema, notes)
        tools[tool.name] = NormalisedTool(
            name=tool.name, description=description, input_schema=schema, raw_schema=raw, changes=tuple(notes)
        )
    return NormalisedToolset(
        toolset=toolset, tools=tuple(tools.values()), scraped=scraped, changes=tuple(set_notes)
    )


def clean_description(text: str, notes: list[str]) -> str:
    """Return the description without texts that belong to a web page, not to the tool."""
    if _UI_NOISE.match(text) or _NO_DESCRIPTION.match(text):
        notes.append("the description was text of a web page and was removed")
        return ""
    lines = [re.sub(r"[ \t]+", " ", line).rstrip() for line in text.strip().splitlines()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines))


def recover_argument_descriptions(description: str, schema: dict[str, Any], notes: list[str]) -> str:
    """Move the entries of a docstring's `Args:` block to the parameters that have no description.

    Returns:
        The description without the block; unchanged where the block names no parameter.
    """
    heading = _ARGS_HEADING.search(description)
    if heading is None:
        return description
    properties: dict[str, Any] = schema["properties"]
    lines = description[heading.end() :].splitlines()
    entries, length = _read_entries(lines, set(properties))
    if not entries:
        return description
    recovered = []
    for name, text in entries.items():
        if text and not properties[name].get("description"):
            properties[name]["description"] = text
            recovered.append(name)
    if recovered:
        notes.append(f"descriptions of {', '.join(recovered)} were taken from the tool's docstring")
    rest = "\n".join(lines[length:]).strip()
    parts = [description[: heading.start()].strip(), rest]
    notes.append("the argument block of the docstring was removed from the description")
    return "\n\n".join(part for part in parts if part)


def _read_entries(lines: list[str], known: set[str]) -> tuple[dict[str, str], int]:
    entries: dict[str, str] = {}
    current: str | None = None
    for index, line in enumerate(lines):
        if _ARGS_END.match(line):
            return entries, index
        entry = _ARGS_ENTRY.match(line)
        if entry is not None and entry[1] in known:
            current = str(entry[1])
            entries[current] = str(entry[3]).strip()
        elif not line.strip():
            if entries and not any(_names_parameter(rest, known) for rest in lines[index + 1 :]):
                return entries, index
        elif current is not None:
            entries[current] = f"{entries[current]} {line.strip()}".strip()
    return entries, len(lines)


def _names_parameter(line: str, known: set[str]) -> bool:
    entry = _ARGS_ENTRY.match(line)
    return entry is not None and entry.group(1) in known


def _is_scraped(raw: dict[str, Any]) -> bool:
    return isinstance(raw.get("parameters"), list) and "properties" not in raw and "type" not in raw


def _schema_from_names(tool: str, parameters: list[Any], notes: list[str]) -> dict[str, Any]:
    """Return a schema for a scraped list of parameter names: all strings, and said to be guesses."""
    properties: dict[str, Any] = {}
    required: list[str] = []
    dropped: list[str] = []
    for parameter in parameters:
        name = parameter.get("name") if isinstance(parameter, dict) else parameter
        if not isinstance(name, str) or not _is_parameter_name(name, tool):
            dropped.append(str(name))
            continue
        properties[name] = {"type": "string"}
        if isinstance(parameter, dict) and isinstance(parameter.get("description"), str):
            properties[name]["description"] = clean_description(parameter["description"], [])
        if isinstance(parameter, dict) and parameter.get("required") is True:
            required.append(name)
    notes.append("scraped: the server gave no schema; parameters are strings by assumption")
    if dropped:
        notes.append(
            f"scraped: page texts {', '.join(map(repr, dropped))} were no parameters and were dropped"
        )
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = list(dict.fromkeys(required))
    return schema


def _is_parameter_name(name: str, tool: str) -> bool:
    return bool(_IDENTIFIER.match(name)) and name != tool and name.lower() not in _BUTTON_WORDS
