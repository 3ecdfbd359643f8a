"""The wheel holds the package and nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from toolverse_jax import __version__

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel, built without network from a copy of what it is made of."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE", "envs"):
        path = ROOT / name
        (shutil.copytree if path.is_dir() else shutil.copy)(path, source / name)
    ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
    shutil.copytree(ROOT / "toolverse_jax", source / "toolverse_jax", ignore=ignored)
    out = tmp_path_factory.mktemp("wheel")
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)],
        cwd=source,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (path,) = out.iterdir()
    return zipfile.ZipFile(path)


def test_the_only_top_level_name_is_the_package(wheel):
    top = {name.split("/")[0] for name in wheel.namelist()}
    assert top == {"toolverse_jax", f"toolverse_jax-{__version__}.dist-info"}


def test_every_module_and_data_file_of_the_package_is_in_the_wheel(wheel):
    package = ROOT / "toolverse_jax"
    files = {
        path.relative_to(ROOT).as_posix()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert files <= set(wheel.namelist())
    assert "toolverse_jax/evaluation/templates/report.html.jinja" in files


def test_the_shipped_policy_is_in_the_wheel(wheel):
    folder = "toolverse_jax/policy/tiny/"
    if not (ROOT / folder / "config.json").is_file():
        pytest.skip("the tiny policy is not in this tree; make it with `make tiny-policy`")
    names = {name.removeprefix(folder) for name in wheel.namelist() if name.startswith(folder)}
    assert {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"} <= names


def test_the_wheel_offers_the_command_and_names_its_licence(wheel):
    info = f"toolverse_jax-{__version__}.dist-info"
    assert "toolverse = toolverse_jax.cli:main" in wheel.read(f"{info}/entry_points.txt").decode()
    metadata = wheel.read(f"{info}/METADATA").decode()
    assert "License-Expression: Apache-2.0" in metadata
    assert "Requires-Python: >=3.12" in metadata


def test_the_report_is_written_from_the_wheel_alone(wheel, tmp_path):
    site = tmp_path / "site"
    wheel.extractall(site)
    run = tmp_path / "pilot"
    shutil.copytree(ROOT / "envs" / "marina_berths", run / "envs" / "marina_berths")
    code = (
        f"import sys; sys.path.insert(0, {str(site)!r})\n"
        "import toolverse_jax; from pathlib import Path\n"
        f"assert toolverse_jax.__file__.startswith({str(site)!r}), toolverse_jax.__file__\n"
        "from toolverse_jax.evaluation.report import write_report\n"
        "write_report(Path('pilot'), Path('report.html'))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "marina_berths" in (tmp_path / "report.html").read_text(encoding="utf-8")
