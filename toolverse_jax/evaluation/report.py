"""Writes the HTML report of a run: one file that opens in a browser without server or network.

A run is a folder with any of `train/` (a run folder of `toolverse train`), `eval/` (results before and
after training), `envs/` and `tasks/`; a run folder of `toolverse train` alone is a run as well. What is
absent is left out. The same run gives the same bytes.
"""

from __future__ import annotations

import dataclasses
import importlib.resources
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolverse_jax.environment.catalog import list_environments
from toolverse_jax.environment.engine import load_environment
from toolverse_jax.errors import ToolverseError
from toolverse_jax.evaluation.comparison_view import ComparisonView, compare_sets
from toolverse_jax.evaluation.results import EvaluationResult, read_result
from toolverse_jax.evaluation.statistics import Scheme
from toolverse_jax.evaluation.training_view import read_metrics, smoothing, training_charts
from toolverse_jax.evaluation.trajectory_view import (
    TrajectoryView,
    choose_trajectories,
    read_trajectories,
    view_trajectory,
)
from toolverse_jax.gust import graph_svg, infer_graph, read_tasks, sanitize, verify_edges
from toolverse_jax.paths import content_root
from toolverse_jax.types import JSON, Task

if TYPE_CHECKING:
    from markupsafe import Markup

_SETS: dict[str, tuple[str, Scheme]] = {
    "heldout_tasks": ("Held-out tasks", "stratified"),
    "heldout_environments": ("Held-out environments", "clustered"),
}
"""Titles of the evaluation sets, and what their intervals are over."""
_NAMESPACE = ' xmlns="http://www.w3.org/2000/svg"'


def write_report(run: Path, out: Path) -> None:
    """Write the report of a run; the file appears whole or not at all.

    Args:
        run: folder of the run, see the module's text.
        out: HTML file to write; its folder is made where it is missing.

    Raises:
        ToolverseError: the folder holds nothing to report, a file in it is damaged, or `out` cannot be
            written.
    """
    text = render_report(run)
    temporary = out.with_name(f".{out.name}.tmp")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, out)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise ToolverseError(f"report {out} cannot be written ({error}); give another --out") from error


def render_report(run: Path) -> str:
    """Return the report of a run as HTML.

    Raises:
        ToolverseError: as for `write_report`.
    """
    import jinja2

    files = _RunFiles.find(run)
    config = _read_config(files.train / "config.json")
    results = {path.stem: read_result(path) for path in files.results()}
    metrics = read_metrics(files.train / "metrics.jsonl")
    step, trajectories = _trajectories(files, config)
    environments = files.environments(config)
    first = trajectories[0].environment if trajectories else ""
    template = importlib.resources.files("toolverse_jax.evaluation") / "templates" / "report.html.jinja"
    sections = {
        "comparisons": list(_comparisons(results)),
        "curves": training_charts(metrics),
        "graph": _graph(environments, first) if environments else None,
        "trajectories": trajectories,
        "settings": list(_settings(config, results)),
    }
    if not any(sections.values()):
        raise ToolverseError(
            f"{run} holds nothing to report; give a folder with train/, eval/ or envs/ in it, or the run folder of `toolverse train`"
        )
    engine = jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    return engine.from_string(template.read_text(encoding="utf-8")).render(
        title=f"Run {run.resolve().name}",
        subtitle=_subtitle(config),
        smoothing=smoothing(metrics),
        trajectories_step=step,
        **sections,
    )


@dataclasses.dataclass(frozen=True)
class _RunFiles:
    """Where the parts of a run lie."""

    root: Path
    train: Path

    @classmethod
    def find(cls, run: Path) -> _RunFiles:
        if not run.is_dir():
            raise ToolverseError(
                f"run folder {run} does not exist; give the folder of a run such as runs/quickstart"
            )
        return cls(run, run / "train" if (run / "train").is_dir() else run)

    def results(self) -> list[Path]:
        wanted = [
            self.root / "eval" / f"{when}_{name}.json" for name in _SETS for when in ("before", "after")
        ]
        return [path for path in wanted if path.is_file()]

    def environments(self, config: Mapping[str, Any]) -> Path | None:
        """Return the folder of the run's environments: its own, else the one it was configured with."""
        own = self.root / "envs"
        return own if own.is_dir() else _configured(config, "environments")

    def tasks(self, config: Mapping[str, Any]) -> Path | None:
        own = self.root / "tasks" / "train.jsonl"
        return own if own.is_file() else _configured(config, "train")

    def last_trajectories(self) -> Path | None:
        return max(
            (self.train / "trajectories").glob("step_*.jsonl"), default=None, key=lambda path: _step_of(path)
        )


def _step_of(path: Path) -> int:
    number = path.stem.removeprefix("step_")
    return int(number) if number.isdecimal() else -1


def _configured(config: Mapping[str, Any], name: str) -> Path | None:
    """Return a path of the configuration's `tasks` section, if it is there on this machine."""
    value = config.get("tasks", {}).get(name)
    if not value:
        return None
    path = Path(value).expanduser()
    if not path.is_absolute() and not path.exists():
        try:
            path = content_root() / path
        except ToolverseError:
            return None
    return path if path.exists() else None


def _read_config(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ToolverseError(f"{path} is not valid JSON ({error}); restore it") from error
    if not isinstance(config, dict) or not isinstance(config.get("tasks", {}), dict):
        raise ToolverseError(f"{path} is not the configuration of a run; restore it")
    return config


def _comparisons(results: Mapping[str, EvaluationResult]) -> Iterator[ComparisonView]:
    for name, (title, scheme) in _SETS.items():
        before, after = results.get(f"before_{name}"), results.get(f"after_{name}")
        if before is not None or after is not None:
            yield compare_sets(title, before, after, scheme)


def _trajectories(files: _RunFiles, config: Mapping[str, Any]) -> tuple[int, list[TrajectoryView]]:
    """Return the step of the last saved trajectories and examples from it."""
    path = files.last_trajectories()
    if path is None:
        return 0, []
    records = read_trajectories(path)
    tasks: dict[str, Task] = {}
    task_file = files.tasks(config)
    if task_file is not None:
        tasks = {task.id: task for task in read_tasks(task_file)}
    try:
        views = [
            view_trajectory(record, records, tasks.get(record["task_id"]))
            for record in choose_trajectories(records)
        ]
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        raise ToolverseError(
            f"{path} is not a trajectory file of this release ({type(error).__name__}: {error}); "
            "delete it to leave it out of the report"
        ) from error
    return _step_of(path), views


def _graph(folder: Path, preferred: str) -> dict[str, str | Markup] | None:
    """Draw the graph of one environment: the preferred one, else the first."""
    from markupsafe import Markup

    names = list_environments(folder)
    if not names:
        return None
    name = preferred if preferred in names else names[0]
    environment = load_environment(folder / name)
    graph = verify_edges(environment, sanitize(infer_graph(environment.spec))[0])
    # Inside HTML an SVG element needs no namespace, and the page holds no address.
    return {"environment": name, "svg": Markup(graph_svg(graph).replace(_NAMESPACE, ""))}


def _subtitle(config: Mapping[str, Any]) -> str:
    """Say in a line what was run."""
    try:
        estimator, rollout = config["advantage"]["estimator"], config["rollout"]
        return (
            f"Policy {config['policy']['checkpoint']}, {estimator.upper()}, {config['train']['steps']} steps of "
            f"{rollout['groups_per_step']} tasks with {rollout['group_size']} rollouts each, seed {config['seed']}."
        )
    except (AttributeError, KeyError, TypeError):
        return ""


def _settings(
    config: Mapping[str, Any], results: Mapping[str, EvaluationResult]
) -> Iterator[tuple[str, Sequence[tuple[str, str]]]]:
    """Yield the settings by section."""
    plain = {name: value for name, value in config.items() if not isinstance(value, dict)}
    sections = {"run": plain} if plain else {}
    sections |= {name: value for name, value in config.items() if isinstance(value, dict)}
    sections |= {f"eval/{name}": dict(result.settings) for name, result in results.items()}
    for name, values in sections.items():
        yield name, [(key, _shown(value)) for key, value in values.items()]


def _shown(value: JSON) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
