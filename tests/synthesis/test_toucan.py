from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest

from toolverse_jax.errors import ToolsetError
from toolverse_jax.synthesis.toucan import count, distinct_toolsets, read_archive

REAL = Path(__file__).resolve().parents[3] / "shared" / "data" / "toucan_mcp_servers.tar.xz"
SCHEMA = {"type": "object", "properties": {}}


def _server(name: str, tools: int, *, real: bool, answered: bool = True) -> dict:
    key, value = ("input_schema", SCHEMA) if real else ("parameters", [{"name": "x"}])
    listed = [{"name": f"tool_{n}", "description": "", key: value} for n in range(tools)]
    both = {
        "remote_server_response": {"tools": listed if answered else []},
        "server_info_crawled": {
            "tools": listed[:2] if answered else listed,
            "overview": "Things.",
            "license": "MIT",
        },
    }
    return {
        "labels": {"primary_label": "Tools", "secondary_labels": []},
        "metadata": {"server_name": name, **both},
    }


DOCUMENTS = {
    "b.json": _server("scraped", 5, real=False, answered=False),
    "a.json": _server("small", 4, real=True),
    "c.json": _server("answering", 5, real=True),
}


def _archive(path: Path, documents: dict[str, dict]) -> Path:
    with tarfile.open(path, "w:xz") as tar:
        for name, document in documents.items():
            content = json.dumps(document).encode()
            info = tarfile.TarInfo(f"mcp_servers/{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def test_servers_come_sorted_with_the_longer_of_their_two_tool_lists(tmp_path):
    servers = list(read_archive(_archive(tmp_path / "servers.tar.xz", DOCUMENTS)))
    assert [(s.file, len(s.tools), s.real_schemas) for s in servers] == [
        ("a.json", 4, True),
        ("b.json", 5, False),
        ("c.json", 5, True),
    ]


def test_a_duplicate_with_schemas_is_preferred(tmp_path):
    path = _archive(tmp_path / "servers.tar.xz", DOCUMENTS)
    assert [server.file for server in distinct_toolsets(read_archive(path))] == ["c.json"]
    assert count(path) == {
        "servers": 3,
        "tools": 14,
        "distinct_toolsets": 2,
        "toolsets_5_20": 1,
        "tools_5_20": 5,
        "toolsets_5_20_real_schemas": 1,
    }


def test_a_folder_reads_like_the_archive(tmp_path):
    archive = _archive(tmp_path / "servers.tar.xz", DOCUMENTS)
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path / "unpacked", filter="data")
    assert list(read_archive(tmp_path / "unpacked")) == list(read_archive(archive))


def test_a_scraped_server_keeps_its_parameter_list_in_place_of_a_schema(tmp_path):
    servers = list(read_archive(_archive(tmp_path / "servers.tar.xz", DOCUMENTS)))
    toolset = servers[1].to_toolset()
    assert toolset.tools[0].input_schema == {"parameters": [{"name": "x"}]}
    assert (toolset.source, toolset.licence, toolset.labels) == ("toucan:b.json", "MIT", ("Tools",))


def test_a_damaged_archive_is_named_and_yields_nothing(tmp_path):
    whole = _archive(
        tmp_path / "whole.tar.xz", {f"{n}.json": _server(f"s{n}", 9, real=True) for n in range(60)}
    )
    cut = tmp_path / "cut.tar.xz"
    cut.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    tail = tmp_path / "tail.tar.xz"
    tail.write_bytes(whole.read_bytes()[:-1])
    junk = tmp_path / "junk.tar.xz"
    junk.write_bytes(b"hello" * 300)
    for path in (cut, tail, junk):
        with pytest.raises(ToolsetError, match="damaged or truncated") as caught:
            next(read_archive(path))
        assert str(path) in str(caught.value)
    with pytest.raises(ToolsetError, match="cannot read the archive"):
        next(read_archive(tmp_path / "absent.tar.xz"))


def test_a_file_that_is_no_server_is_named(tmp_path):
    path = _archive(tmp_path / "servers.tar.xz", {"odd.json": {"hello": 1}})
    with pytest.raises(ToolsetError, match=r"odd\.json .* is not a server description"):
        next(read_archive(path))


@pytest.mark.skipif(not REAL.exists(), reason=f"the Toucan archive is not at {REAL}")
def test_the_public_archive_has_the_known_counts():
    assert count(REAL) == {
        "servers": 2120,
        "tools": 17578,
        "distinct_toolsets": 1713,
        "toolsets_5_20": 682,
        "tools_5_20": 6635,
        "toolsets_5_20_real_schemas": 265,
    }
