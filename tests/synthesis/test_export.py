from __future__ import annotations

import json
import runpy

import pytest

from toolverse_jax.environment import load_environment
from toolverse_jax.synthesis.export import environment_files, pretty_json, spec_to_json, write_environment
from toolverse_jax.synthesis.toolset import read_toolset
from toolverse_jax.synthesis.validate import validate
from toolverse_jax.types import Toolset, ToolSpec

FILES = {"toolset.json", "env.json", "server.py", "validation.json", "README.md"}


@pytest.fixture(scope="module")
def toolset(spec):
    tools = tuple(
        ToolSpec(name=t.name, description=t.description, input_schema=t.input_schema) for t in spec.tools
    )
    return Toolset(
        name=spec.name, tools=tools, source="original", licence="Apache-2.0", labels=("split:train",)
    )


@pytest.fixture(scope="module")
def report(spec):
    return validate(spec)


def test_a_written_environment_loads_and_answers_as_before(tmp_path, toolset, spec, report):
    folder = write_environment(tmp_path / "library", toolset, spec, report)
    assert {file.name for file in folder.iterdir()} == FILES
    environment = load_environment(folder)
    assert environment.spec == spec
    assert read_toolset(folder) == toolset
    assert json.loads((folder / "validation.json").read_text())["accepted"] is True


def test_writing_again_gives_the_same_bytes_and_leaves_nothing_behind(tmp_path, toolset, spec, report):
    folder = write_environment(tmp_path / "library", toolset, spec, report)
    first = {file.name: file.read_bytes() for file in folder.iterdir()}
    write_environment(folder, toolset, spec, report)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == first
    assert [path.name for path in tmp_path.iterdir()] == ["library"]


def test_other_files_of_the_folder_are_kept(tmp_path, toolset, spec, report):
    folder = tmp_path / "library"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    write_environment(folder, toolset, spec, report)
    assert (folder / "notes.txt").read_text() == "mine"


def test_a_failure_leaves_the_old_folder_whole(tmp_path, toolset, spec, report, monkeypatch):
    folder = write_environment(tmp_path / "library", toolset, spec, report)
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    from pathlib import Path

    rename = Path.rename

    def refuse(path, target):
        if path.name.endswith(".new"):
            raise OSError("no space left")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(OSError, match="no space"):
        write_environment(folder, toolset, spec, report)
    monkeypatch.undo()
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["library"]


def test_the_specification_file_leaves_out_defaults_but_keeps_discriminators(spec):
    document = spec_to_json(spec)
    text = json.dumps(document)
    assert '"simulated"' not in text and '"singletons"' not in text
    assert document["version"] == 1
    assert document["operations"][0]["steps"][0]["op"] == "query"


def test_the_server_is_a_few_lines_that_import_cleanly(tmp_path, toolset, spec, report):
    source = environment_files(toolset, spec, report)["server.py"]
    assert source.count("\n") <= 12
    (tmp_path / "server.py").write_text(source)
    runpy.run_path(str(tmp_path / "server.py"), run_name="not main")


def test_the_card_names_every_tool_and_field_and_shows_calls_with_answers(toolset, spec, report):
    card = environment_files(toolset, spec, report)["README.md"]
    for tool in spec.tools:
        assert f"`{tool.name}`" in card
    for entity in spec.entities:
        for field in entity.fields:
            assert f"`{field.name}`" in card
    assert "add_book {" in card and '→ {"book_id": "bk_' in card
    assert "Verdict: **accepted**" in card
    assert len(card.splitlines()) < 80


def test_pretty_json_is_json_and_keeps_short_values_on_a_line():
    value = {"a": [1, 2, {"b": "c"}], "long": ["x" * 60, "y" * 60], "empty": {}}
    text = pretty_json(value)
    assert json.loads(text) == value
    assert '"a": [1, 2, {"b": "c"}]' in text
    assert max(map(len, text.splitlines())) <= 110
