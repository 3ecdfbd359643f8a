"""Every environment of `envs/` is complete, accepted, and what its toolset regenerates to."""

from __future__ import annotations

import json
import re

import pytest

from toolverse_jax.environment import load_environment
from toolverse_jax.paths import envs_dir
from toolverse_jax.synthesis import RulesAuthor, read_toolset, split_of, synthesize
from toolverse_jax.synthesis.export import environment_files

FOLDERS = sorted(path for path in envs_dir().iterdir() if path.is_dir() and not path.name.startswith("."))
FILES = {"toolset.json", "env.json", "server.py", "validation.json", "README.md"}


@pytest.fixture(params=FOLDERS, ids=lambda folder: folder.name)
def folder(request):
    return request.param


def test_there_are_nine_environments_for_training_and_three_held_out():
    splits = [split_of(read_toolset(folder)) for folder in FOLDERS]
    assert (splits.count("train"), splits.count("held-out")) == (9, 3)


def test_the_table_of_environments_agrees_with_the_folders():
    table = re.findall(
        r"^\| `(\w+)` \| (train|held-out) \|", (envs_dir() / "README.md").read_text(), re.MULTILINE
    )
    assert dict(table) == {folder.name: split_of(read_toolset(folder)) for folder in FOLDERS}


def test_an_environment_is_complete_and_bears_the_name_of_its_folder(folder):
    assert {path.name for path in folder.iterdir() if path.is_file()} >= FILES
    environment = load_environment(folder)
    assert environment.name == folder.name == read_toolset(folder).name


def test_an_environment_is_accepted(folder):
    report = json.loads((folder / "validation.json").read_text())
    assert report["accepted"] is True and report["reasons"] == []
    assert report["mutation"]["kill_rate"] >= 0.9


def test_the_committed_files_are_what_the_toolset_regenerates_to(folder):
    synthesis = synthesize(read_toolset(folder), RulesAuthor())
    assert synthesis.spec is not None and synthesis.report is not None, synthesis.reason
    for name, text in environment_files(synthesis.toolset, synthesis.spec, synthesis.report).items():
        assert (folder / name).read_text(encoding="utf-8") == text, f"{name} is stale: synthesise envs/ again"


def test_tools_and_parameters_are_described_for_people(folder):
    for tool in read_toolset(folder).tools:
        assert 2 <= len(tool.description.split()) <= 12 and tool.description.endswith(".")
        for name, schema in tool.input_schema["properties"].items():
            assert schema.get("description"), f"{tool.name}.{name}"


def test_answers_stay_short(folder):
    environment = load_environment(folder)
    session = environment.session(0)
    for tool in environment.tools:
        if not tool.input_schema.get("required"):
            assert len(session.call(tool.name, {}).content) < 600


def test_some_call_needs_an_identifier_that_itself_needed_one(folder):
    """Depth three: a row that points to a row that points to a row, each reachable by tools."""
    spec = load_environment(folder).spec
    parents = {e.name: [f.ref for f in e.fields if f.ref] for e in spec.entities}

    def depth(entity: str) -> int:
        return 1 + max((depth(parent) for parent in parents[entity]), default=0)

    assert max(depth(entity) for entity in parents) >= (2 if folder.name == "bakery_orders" else 3)
