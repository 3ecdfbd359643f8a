"""Reads the crawled MCP server descriptions of the public Toucan repository.

The archive holds one JSON file per server. Its tools are listed twice, as the server answered and as a
web page showed them; the longer list is taken. Servers that answered carry JSON Schemas
(`input_schema`); the others only a scraped list of parameter names (`parameters`), which
`normalise` turns into a flagged schema.
"""

from __future__ import annotations

import dataclasses
import json
import lzma
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from toolverse_jax.errors import ToolsetError
from toolverse_jax.types import JSON, Toolset, ToolSpec

_BLOCK = 1 << 20
_HINT = "give mcp_servers.tar.xz or the unpacked mcp_servers folder of the Toucan repository"

SMALLEST_TOOLSET = 5
LARGEST_TOOLSET = 20
"""A toolset of 5 to 20 tools becomes one environment; others would have to be split or combined."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ToucanServer:
    """One crawled server."""

    file: str
    """Name of its JSON file."""
    name: str
    tools: tuple[dict[str, JSON], ...]
    """Tools as stored: `name`, `description` and `input_schema` or `parameters`."""
    overview: str = ""
    labels: tuple[str, ...] = ()
    licence: str = ""
    repository: str = ""

    @property
    def real_schemas(self) -> bool:
        """Whether every tool carries a JSON Schema of its own."""
        return bool(self.tools) and all("input_schema" in tool for tool in self.tools)

    @property
    def tool_names(self) -> frozenset[str]:
        return frozenset(str(tool["name"]) for tool in self.tools)

    def to_toolset(self) -> Toolset:
        """Return the toolset; scraped tools keep `{"parameters": [...]}` in place of a schema."""
        return Toolset(
            name=self.name,
            tools=tuple(_tool_spec(tool) for tool in self.tools),
            source=f"toucan:{self.file}",
            licence=self.licence,
            overview=self.overview,
            labels=self.labels,
        )


def read_archive(path: str | Path) -> Iterator[ToucanServer]:
    """Yield the servers sorted by file name.

    Args:
        path: The `.tar.xz` archive, or the unpacked folder.

    Raises:
        ToolsetError: the archive is unreadable or truncated, or a file in it is not a server
            description. The whole archive is read before the first server is yielded, so that a
            damaged one yields nothing.
    """
    source = Path(path)
    documents = _read_folder(source) if source.is_dir() else _read_tar(source)
    if not documents:
        raise ToolsetError(f"{source} holds no server descriptions (*.json); {_HINT}")
    servers = [_server(name, documents[name], source) for name in sorted(documents)]
    yield from servers


def distinct_toolsets(
    servers: Iterator[ToucanServer] | list[ToucanServer],
    *,
    smallest: int = SMALLEST_TOOLSET,
    largest: int = LARGEST_TOOLSET,
) -> list[ToucanServer]:
    """Return one server per set of tool names within the size bounds, in order of first appearance.

    Of duplicates, the first that has real schemas is kept, else the first.
    """
    kept: dict[frozenset[str], ToucanServer] = {}
    for server in servers:
        names = server.tool_names
        if not smallest <= len(names) <= largest:
            continue
        known = kept.get(names)
        if known is None or (server.real_schemas and not known.real_schemas):
            kept[names] = server
    return list(kept.values())


def count(path: str | Path) -> dict[str, int]:
    """Count an archive.

    Returns:
        `servers` and `tools` (all of them), `distinct_toolsets` (sets of tool names of any size),
        `toolsets_5_20` and `tools_5_20` (distinct sets of 5 to 20 tools) and
        `toolsets_5_20_real_schemas` (those of them with JSON Schemas).
    """
    servers = list(read_archive(path))
    sized = distinct_toolsets(servers)
    return {
        "servers": len(servers),
        "tools": sum(len(server.tools) for server in servers),
        "distinct_toolsets": len({server.tool_names for server in servers}),
        "toolsets_5_20": len(sized),
        "tools_5_20": sum(len(server.tools) for server in sized),
        "toolsets_5_20_real_schemas": sum(server.real_schemas for server in sized),
    }


def _read_folder(folder: Path) -> dict[str, bytes]:
    files = sorted(folder.glob("*.json")) or sorted(folder.glob("mcp_servers/*.json"))
    documents = {}
    for file in files:
        try:
            documents[file.name] = file.read_bytes()
        except OSError as error:
            raise ToolsetError(f"cannot read {file}: {error.strerror or error}; {_HINT}") from error
    return documents


def _read_tar(archive: Path) -> dict[str, bytes]:
    documents: dict[str, bytes] = {}
    try:
        # Decompressed by lzma, not by tarfile: tarfile takes data that ends early for the end.
        with lzma.open(archive) as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
            for member in tar:
                if member.isfile() and member.name.endswith(".json"):
                    file = tar.extractfile(member)
                    assert file is not None
                    documents[Path(member.name).name] = file.read()
            while stream.read(_BLOCK):
                pass  # only the end of the stream tells that nothing is missing
    except (tarfile.TarError, lzma.LZMAError, EOFError) as error:
        raise _damaged(archive, len(documents), str(error)) from error
    except OSError as error:
        raise ToolsetError(
            f"cannot read the archive {archive}: {error.strerror or error}; {_HINT}"
        ) from error
    return documents


def _damaged(archive: Path, files: int, reason: str) -> ToolsetError:
    found = f"{files} whole files, then: {reason or 'the data ends early'}"
    return ToolsetError(f"the archive {archive} is damaged or truncated (found {found}); {_HINT}")


def _server(name: str, content: bytes, source: Path) -> ToucanServer:
    try:
        document = json.loads(content)
        tools = _longer_tool_list(document)
    except (ValueError, TypeError, AttributeError) as error:
        raise ToolsetError(f"{name} in {source} is not a server description ({error}); {_HINT}") from error
    metadata = document.get("metadata") or {}
    crawled = metadata.get("server_info_crawled") or {}
    labels = document.get("labels") or {}
    names = [labels.get("primary_label"), *(labels.get("secondary_labels") or []), labels.get("custom_label")]
    return ToucanServer(
        file=name,
        name=str(metadata.get("server_name") or crawled.get("name") or name),
        tools=tuple(tools),
        overview=str(crawled.get("overview") or ""),
        labels=tuple(dict.fromkeys(str(label) for label in names if label)),
        licence=str(crawled.get("license") or ""),
        repository=str(crawled.get("repository_url") or ""),
    )


def _longer_tool_list(document: Any) -> list[dict[str, JSON]]:
    if not isinstance(document, dict) or not isinstance(document.get("metadata"), dict):
        raise ValueError("it has no 'metadata'")
    metadata = document["metadata"]
    answered = (metadata.get("remote_server_response") or {}).get("tools") or []
    crawled = (metadata.get("server_info_crawled") or {}).get("tools") or []
    tools = answered if len(answered) >= len(crawled) else crawled
    for tool in tools:
        if not isinstance(tool.get("name"), str):
            raise ValueError("a tool has no name")
    return tools


def _tool_spec(tool: dict[str, JSON]) -> ToolSpec:
    if "input_schema" in tool:
        schema = tool["input_schema"]
        schema = schema if isinstance(schema, dict) else {}
    else:
        schema = {"parameters": tool.get("parameters") or []}
    return ToolSpec(
        name=str(tool["name"]), description=str(tool.get("description") or ""), input_schema=schema
    )
