from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

from toolverse_jax.errors import ToolsetError
from toolverse_jax.paths import envs_dir
from toolverse_jax.synthesis import (
    Rejection,
    RulesAuthor,
    read_toolset,
    split_of,
    synthesize,
    synthesize_folder,
    toolset_from_json,
)


class Declines:
    id = "manual"

    def author(self, toolset, seed=0):
        return Rejection("no_entity", "The tools speak of nothing that could be a row.")


def test_a_toolset_becomes_an_accepted_environment():
    synthesis = synthesize(read_toolset(envs_dir() / "marina_berths"), RulesAuthor())
    assert synthesis.accepted and synthesis.reason == ""
    assert synthesis.spec is not None and synthesis.spec.author == "rules@1"
    assert synthesis.rejection is None


def test_an_author_that_declines_is_reported_with_its_reason():
    synthesis = synthesize(read_toolset(envs_dir() / "marina_berths"), Declines())
    assert not synthesis.accepted
    assert synthesis.spec is None and synthesis.report is None
    assert synthesis.reason == "no_entity: The tools speak of nothing that could be a row."


def test_a_folder_is_done_in_order_of_names_with_progress(tmp_path):
    for name in ("seed_library", "choir_calendar"):
        (tmp_path / "in" / name).mkdir(parents=True)
        shutil.copy(envs_dir() / name / "toolset.json", tmp_path / "in" / name)
    seen = []
    done = synthesize_folder(
        tmp_path / "in",
        tmp_path / "out",
        on_progress=lambda n, total, s: seen.append((n, total, s.toolset.name)),
    )
    assert seen == [(1, 2, "choir_calendar"), (2, 2, "seed_library")]
    assert all(synthesis.accepted for synthesis in done)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["choir_calendar", "seed_library"]


def test_what_is_not_accepted_is_not_written(tmp_path):
    (tmp_path / "in" / "choir").mkdir(parents=True)
    shutil.copy(envs_dir() / "choir_calendar" / "toolset.json", tmp_path / "in" / "choir")
    done = synthesize_folder(tmp_path / "in", tmp_path / "out", author=Declines())
    assert len(done) == 1 and not (tmp_path / "out").exists()


def test_a_folder_without_toolsets_is_an_error(tmp_path):
    with pytest.raises(ToolsetError, match=r"no .*toolset.json found"):
        synthesize_folder(tmp_path, tmp_path)


@pytest.mark.parametrize(
    ("labels", "split"), [(["split:held-out", "x"], "held-out"), (["x"], "train"), ([], "train")]
)
def test_the_split_is_read_from_the_labels(labels, split):
    document = {"name": "t", "labels": labels, "tools": [{"name": "list_things"}]}
    assert split_of(toolset_from_json(document)) == split


def test_importing_synthesis_loads_no_heavy_library():
    code = "import json, sys, toolverse_jax.synthesis; print(json.dumps(sorted(sys.modules)))"
    loaded = json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
    assert not {"jax", "flax", "torch", "transformers", "mcp", "langgraph", "networkx"} & set(loaded)
