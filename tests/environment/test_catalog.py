from __future__ import annotations

import shutil

import pytest

from toolverse_jax.environment import list_environments, load_catalog
from toolverse_jax.errors import EnvironmentSpecError


def test_the_catalog_lists_and_loads_folders_with_a_specification(tmp_path, boatyard_folder) -> None:
    shutil.copytree(boatyard_folder, tmp_path / "boatyard")
    (tmp_path / "empty").mkdir()
    assert list_environments(tmp_path) == ("boatyard",)
    assert {name: env.name for name, env in load_catalog(tmp_path).items()} == {"boatyard": "boatyard"}


def test_a_folder_that_is_not_named_like_its_environment_is_refused(tmp_path, boatyard_folder) -> None:
    shutil.copytree(boatyard_folder, tmp_path / "harbour")
    with pytest.raises(EnvironmentSpecError, match="is named 'boatyard'"):
        load_catalog(tmp_path)


def test_a_missing_folder_is_refused(tmp_path) -> None:
    with pytest.raises(EnvironmentSpecError, match="not a folder of environments"):
        list_environments(tmp_path / "nowhere")
