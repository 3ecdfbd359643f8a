import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from toolverse_jax import __version__
from toolverse_jax.cli import main

ROOT = Path(__file__).parents[1]
VERBS = (
    "synthesize",
    "tasks",
    "serve",
    "train",
    "eval",
    "export",
    "view",
    "bench",
    "doctor",
    "ingest",
)


@pytest.fixture
def toolverse(monkeypatch, capsys):
    """Runs the command in this process; returns exit status, standard output and standard error."""

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["toolverse", *map(str, arguments)])
        status = 0
        try:
            main()
        except SystemExit as end:
            status = int(end.code or 0)
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    """A working directory with bad input in it."""
    (tmp_path / "archive.tar.xz").write_bytes(b"this is no archive")
    (tmp_path / "empty").mkdir()
    toolset = {
        "version": 1,
        "name": "idle",
        "overview": "",
        "labels": [],
        "source": "original",
        "licence": "Apache-2.0",
    }
    (tmp_path / "toolsets" / "idle").mkdir(parents=True)
    (tmp_path / "toolsets" / "idle" / "toolset.json").write_text(json.dumps(toolset | {"tools": []}))
    (tmp_path / "typo.toml").write_text("[train]\nstepz = 3\n")
    (tmp_path / "cut.jsonl").write_text('{"version": 1, "id"')
    (tmp_path / "run" / "eval").mkdir(parents=True)
    (tmp_path / "run" / "eval" / "before_heldout_tasks.json").write_text('{"version": 1')
    (tmp_path / "file").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_help_lists_the_verbs(toolverse):
    status, out, _ = toolverse("--help")
    assert status == 0
    listed = re.findall(r"^  ([a-z]+)  ", out.split("Commands:")[1], re.MULTILINE)
    assert sorted(listed) == sorted(VERBS)


@pytest.mark.parametrize("verb", [verb if verb != "ingest" else "ingest toucan" for verb in VERBS])
def test_each_verb_explains_itself_with_an_example(verb, toolverse):
    status, out, _ = toolverse(*verb.split(), "--help")
    assert status == 0
    assert f"Example: toolverse {verb}" in out


def test_the_version_is_that_of_the_package(toolverse):
    assert toolverse("--version")[:2] == (0, f"toolverse_jax {__version__}\n")


@pytest.mark.parametrize(
    "arguments", [["--help"], ["train", "--help"], ["eval", "--help"], ["bench", "list"]]
)
def test_help_loads_nothing_heavy(arguments):
    code = (
        "import sys\n"
        f"sys.argv = ['toolverse', *{arguments!r}]\n"
        "from toolverse_jax.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = ('jax', 'flax', 'torch', 'vllm', 'transformers', 'orbax', 'mcp')\n"
        "print('loaded:', sorted(set(heavy) & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "loaded: []"


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("ingest toucan archive.tar.xz", "archive.tar.xz"),
        ("ingest toucan absent.tar.xz", "absent.tar.xz"),
        ("synthesize toolsets --out out", "toolsets/idle/toolset.json"),
        ("synthesize absent --out out", "absent"),
        ("tasks absent --out out", "absent"),
        ("tasks empty --out out", "empty"),
        ("serve absent", "absent"),
        ("serve empty", "empty"),
        ("serve absent --http", "absent"),
        ("serve empty --http", "empty"),
        ("train --run out --config typo.toml", "train.stepz"),
        ("train --run out --config absent.toml", "absent.toml"),
        ("train --run out --set train.stepz=3", "train.stepz"),
        ("train --run out --set train.steps=many", "train.steps"),
        ("train --run out --set rollout.group_size=1", "rollout.group_size"),
        ("eval --policy empty --tasks absent.jsonl --envs empty --out out", "absent.jsonl"),
        ("eval --policy empty --tasks cut.jsonl --envs empty --out out", "cut.jsonl, line 1"),
        ("view absent --out out", "absent"),
        ("view empty --out out", "empty"),
        ("view run --out out", "run/eval/before_heldout_tasks.json"),
        ("bench warp", "warp"),
    ],
)
def test_bad_input_is_one_sentence_and_writes_nothing(line, named, toolverse, place):
    before = sorted(place.rglob("*"))
    status, out, err = toolverse(*line.split())
    assert status == 2
    assert out == ""
    assert err.startswith("toolverse: ") and err.count("\n") == 1, err
    assert named in err
    assert sorted(place.rglob("*")) == before


def test_an_evaluation_in_environments_that_are_absent_writes_nothing(toolverse, place, one_task):
    status, _, err = toolverse(
        "eval", "--policy", "empty", "--tasks", one_task, "--envs", "nowhere", "--out", "out"
    )
    assert status == 2 and err.count("\n") == 1 and "nowhere" in err
    assert not (place / "out").exists()


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("train --run out --set tasks.train=absent.jsonl", "absent.jsonl"),
        ("train --run out --set tasks.environments=absent", "absent"),
        ("train --run out --set policy.checkpoint=empty", "empty"),
        ("export absent --out out", "absent"),
        ("export empty --out out", "empty"),
    ],
)
def test_bad_input_of_training_is_one_sentence_and_writes_nothing(
    line, named, toolverse, place, one_task, monkeypatch
):
    monkeypatch.setenv("TOOLVERSE_ROOT", str(ROOT))
    (place / "policy").mkdir()
    (place / "policy" / "config.json").write_text("{}")
    arguments = line.split()
    if arguments[0] == "train":
        defaults = ["--set", f"tasks.train={one_task}", "--set", "policy.checkpoint=policy"]
        arguments[1:1] = defaults  # The last one of a key counts.
    status, out, err = toolverse(*arguments)
    assert status == 2, err
    assert out == ""
    assert err.startswith("toolverse: ") and err.count("\n") == 1, err
    assert named in err
    assert not (place / "out").exists()


def test_a_place_that_cannot_be_written_is_one_sentence(toolverse, place):
    shutil.copytree(ROOT / "envs" / "marina_berths", place / "sets" / "marina_berths")
    status, _, err = toolverse("synthesize", "sets", "--out", "file/below")
    assert status == 2
    assert err.splitlines()[-1].startswith("toolverse: cannot read or write")


def test_an_unknown_verb_is_refused(toolverse):
    status, out, err = toolverse("transmogrify")
    assert status == 2 and out == ""
    assert "No such command 'transmogrify'" in err


def test_figures_are_printed_for_people_or_as_json(toolverse, place):
    shutil.copytree(ROOT / "envs" / "marina_berths", place / "sets" / "marina_berths")
    status, out, err = toolverse("synthesize", "sets", "--out", "made", "--json")
    assert status == 0, err
    figures = json.loads(out.splitlines()[-1])
    assert (figures["toolsets"], figures["accepted"], figures["folder"]) == (1, 1, "made")
    assert "[1/1] marina_berths: accepted" in err
    assert (place / "made" / "marina_berths" / "env.json").is_file()


def test_view_prints_the_report_it_wrote(toolverse, place):
    shutil.copytree(ROOT / "envs" / "marina_berths", place / "pilot" / "envs" / "marina_berths")
    status, out, _ = toolverse("view", "pilot")
    assert (status, out) == (0, "pilot/report.html\n")
    assert "marina_berths" in (place / "pilot" / "report.html").read_text()


def test_bench_lists_what_it_can_measure(toolverse):
    status, out, _ = toolverse("bench", "list")
    assert status == 0
    assert [line.split()[0] for line in out.splitlines()] == ["engine", "sampler", "tara", "train"]


def test_doctor_looks_at_packages_content_and_devices(toolverse, monkeypatch):
    monkeypatch.setenv("TOOLVERSE_ROOT", str(ROOT))
    status, out, _ = toolverse("doctor", "--json")
    checks = json.loads(out)
    assert {"python", "jax", "mcp", "content folders", "devices"} <= set(checks)
    assert status == (0 if all(check["ok"] for check in checks.values()) else 1)
    assert "12 environments" in checks["content folders"]["found"]


def test_doctor_says_what_is_missing(toolverse, monkeypatch):
    monkeypatch.setattr("toolverse_jax.doctor._PACKAGES", ("numpy", "no-such-package"))
    status, out, _ = toolverse("doctor")
    assert status == 1
    assert re.search(r"BAD no-such-package +not installed; run launch/setup\.sh", out)


@pytest.fixture
def one_task(place) -> Path:
    from toolverse_jax.gust import write_tasks
    from toolverse_jax.types import Task, TaskTurn

    path = place / "one.jsonl"
    turn = TaskTurn(user="Which piers are there?", golden=())
    task = Task(id="t", environment="marina_berths", seed=1, turns=(turn,), final_state_hash="")
    write_tasks(path, [task])
    return path
