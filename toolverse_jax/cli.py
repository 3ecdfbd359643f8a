"""The `toolverse` command. Parses before anything heavy is imported, so `--help` answers at once.

Results go to standard output, progress and errors to standard error. Exit status: 0 done, 1 a check
failed, 2 bad input (one sentence says what, the value found and what to do), 130 interrupted.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolverse_jax import __version__
from toolverse_jax.errors import EnvironmentSpecError, ToolverseError

if TYPE_CHECKING:
    from toolverse_jax.config import RunConfig

app = typer.Typer(
    name="toolverse",
    help="Agentic reinforcement learning of tool-using language models, in JAX.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
ingest_app = typer.Typer(help="Read third-party toolsets and print what they hold.", no_args_is_help=True)
app.add_typer(ingest_app, name="ingest")

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line.")]


def main() -> None:
    """Run the command line; turn errors of input into one sentence and exit status 2."""
    # transformers advises to install PyTorch, which is not needed here.
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
    try:
        app()
    except ToolverseError as error:
        print(f"toolverse: {error}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        place = f" {error.filename}" if error.filename else ""
        print(
            f"toolverse: cannot read or write{place} ({error.strerror or error}); check path and permissions",
            file=sys.stderr,
        )
        sys.exit(2)
    except KeyboardInterrupt:
        print(
            "toolverse: interrupted; the same line continues where this one can be resumed", file=sys.stderr
        )
        sys.exit(130)


def _version(value: bool) -> None:
    if value:
        print(f"toolverse_jax {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True)] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log what the library does.")] = False,
) -> None:
    del version
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING, format="%(name)s: %(message)s", stream=sys.stderr
    )


def _emit(result: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(result, sort_keys=True))
        return
    width = max(len(key) for key in result)
    for key, value in result.items():
        shown = f"{value:,.4g}" if isinstance(value, float) else value
        print(f"{key.replace('_', ' '):<{width}}  {shown}")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# --- toolsets and environments ----------------------------------------------------------------


@ingest_app.command("toucan")
def ingest_toucan(
    source: Annotated[Path, typer.Argument(help="mcp_servers.tar.xz, or the unpacked folder.")],
    as_json: JsonFlag = False,
) -> None:
    """Read the public archive of crawled MCP servers and print what it holds.

    Example: toolverse ingest toucan toucan_mcp_servers.tar.xz
    """
    from toolverse_jax.synthesis import toucan

    _emit(toucan.count(source), as_json)


@app.command()
def synthesize(
    toolsets: Annotated[Path, typer.Argument(help="Folder of <name>/toolset.json.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder the environments are written to.")],
    seed: Annotated[int, typer.Option(help="Seed of the author's choices.")] = 0,
    as_json: JsonFlag = False,
) -> None:
    """Author an environment for every toolset, validate it and export it.

    Writes <out>/<name>/{toolset.json, env.json, server.py, validation.json, README.md} for each accepted
    environment; exit status 1 if one is not accepted.

    Example: toolverse synthesize envs --out runs/envs
    """
    from toolverse_jax.synthesis.pipeline import Synthesis, synthesize_folder

    def progress(done: int, total: int, latest: Synthesis) -> None:
        verdict = "accepted" if latest.accepted else f"rejected ({latest.reason})"
        _say(f"  [{done}/{total}] {latest.toolset.name}: {verdict}")

    results = synthesize_folder(toolsets, out, seed=seed, on_progress=progress)
    accepted = [result for result in results if result.accepted]
    tools = sum(len(result.toolset.tools) for result in accepted)
    _emit({"toolsets": len(results), "accepted": len(accepted), "tools": tools, "folder": str(out)}, as_json)
    if len(accepted) < len(results):
        raise typer.Exit(1)


@app.command()
def tasks(
    envs: Annotated[Path, typer.Argument(help="Folder of environments.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder the task files are written to.")],
    train: Annotated[int, typer.Option(help="Training tasks per training environment.", min=1)] = 40,
    evaluation: Annotated[int, typer.Option(help="Evaluation tasks per environment.", min=1)] = 16,
    min_turns: Annotated[int, typer.Option(min=1)] = 3,
    max_turns: Annotated[int, typer.Option(min=1)] = 5,
    seed: int = 0,
    as_json: JsonFlag = False,
) -> None:
    """Sample long-horizon tasks with golden traces for all environments of a folder.

    Writes train.jsonl, heldout_tasks.jsonl (training environments, other seeds, rows and identifiers),
    heldout_environments.jsonl and SHA256SUMS. The same seed gives the same bytes.

    Example: toolverse tasks envs --out runs/tasks
    """
    from toolverse_jax.gust.collection import build_collection

    result = build_collection(
        envs,
        out,
        train_per_environment=train,
        evaluation_per_environment=evaluation,
        min_turns=min_turns,
        max_turns=max_turns,
        seed=seed,
        on_progress=lambda line: _say(f"  {line}"),
    )
    _emit(result, as_json)


@app.command()
def serve(
    environment: Annotated[Path, typer.Argument(help="An environment folder; with --http a folder of them.")],
    seed: Annotated[int, typer.Option(help="Episode seed of the session (stdio).")] = 0,
    http: Annotated[bool, typer.Option("--http", help="Serve streamable HTTP instead of stdio.")] = False,
    host: str = "127.0.0.1",
    port: int = 8765,
) -> None:
    """Serve environments under the Model Context Protocol.

    Over stdio one session of one environment. Over HTTP any number of sessions, each at
    /environments/<name>/seeds/<seed>/sessions/<session>/mcp.

    Example: toolverse serve envs/marina_berths
    """
    from toolverse_jax.environment import load_catalog, load_environment
    from toolverse_jax.environment.mcp_server import serve_http, serve_stdio

    if not http:
        serve_stdio(environment, seed)
    elif (environment / "env.json").is_file():
        loaded = load_environment(environment)
        serve_http({loaded.name: loaded}, host=host, port=port)
    elif catalog := load_catalog(environment):
        serve_http(catalog, host=host, port=port)
    else:
        raise EnvironmentSpecError(
            f"{environment} holds no environment (*/env.json); write some with `toolverse synthesize`"
        )


# --- training and evaluation ------------------------------------------------------------------


@app.command()
def train(
    run: Annotated[Path, typer.Option("--run", "-r", help="Run folder; the same line again resumes.")],
    config: Annotated[Path | None, typer.Option("--config", "-c", help="RunConfig as TOML.")] = None,
    overrides: Annotated[list[str] | None, typer.Option("--set", help="key.path=value, repeatable.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Train a policy with multi-turn rollouts; running the same line again resumes, bit for bit on CPU.

    Example: toolverse train --config launch/configs/quickstart.toml --run runs/quickstart/train
    """
    from toolverse_jax.config import load_config

    resolved: RunConfig = load_config(config, overrides or ())
    from toolverse_jax.train import train as run_training

    def progress(step: int, metrics: dict[str, float]) -> None:
        _say(
            f"  step {step}/{resolved.train.steps}: turn reward {metrics['reward/mean_turn']:.3f}, "
            f"trace score {metrics['reward/trace_score']:.3f}, "
            f"{metrics['time/rollout_s']:.1f} s rollouts + {metrics['time/train_s']:.1f} s update"
        )

    result = run_training(resolved, run, progress=progress)
    _emit({"steps": result.steps, "resumed_from": result.resumed_from, "policy": str(result.final)}, as_json)


@app.command("eval")
def evaluate(
    policy: Annotated[str, typer.Option(help="Hugging Face checkpoint folder, or `tiny`.")],
    tasks_file: Annotated[Path, typer.Option("--tasks", help="Task file (JSONL).")],
    envs: Annotated[Path, typer.Option(help="Folder of the environments the tasks name.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Result file (JSON).")],
    label: Annotated[str, typer.Option(help="Name of this result in reports.")] = "",
    temperature: Annotated[float, typer.Option(help="0: greedy.", min=0.0)] = 0.0,
    max_length: Annotated[int, typer.Option(help="Longest episode in tokens.", min=2)] = 2048,
    max_call_tokens: Annotated[int, typer.Option(help="Longest model call in tokens.", min=1)] = 64,
    slots: Annotated[int, typer.Option(help="Episodes played at once.", min=1)] = 64,
    seed: int = 0,
    as_json: JsonFlag = False,
) -> None:
    """Play every task of a file once and write the scores, with 95 % intervals.

    Example: toolverse eval --policy tiny --tasks runs/tasks/heldout_tasks.jsonl --envs envs --out r.json
    """
    from toolverse_jax.evaluation.run import EvaluationRequest, run_evaluation

    request = EvaluationRequest(
        policy=policy,
        tasks=tasks_file,
        envs=envs,
        label=label or policy,
        temperature=temperature,
        max_length=max_length,
        max_call_tokens=max_call_tokens,
        slots=slots,
        seed=seed,
    )
    result = run_evaluation(request, out, on_progress=lambda line: _say(f"  {line}"))
    summary = result.summary("stratified")
    if as_json:
        print(json.dumps(summary, sort_keys=True))
        return
    print(f"{summary['label']}: {summary['tasks']} tasks in {summary['environments']} environments")
    for measure in ("trace_score", "turn_accuracy"):
        print(f"  {measure.replace('_', ' ')}  {result.estimate(measure, 'stratified')}")


@app.command()
def export(
    run: Annotated[Path, typer.Argument(help="Run folder of `toolverse train`.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Checkpoint folder to write.")],
    step: Annotated[int | None, typer.Option(help="Training step; default: the latest saved one.")] = None,
    dtype: Annotated[str, typer.Option(help="float32 or bfloat16.")] = "bfloat16",
) -> None:
    """Write a saved training step as a Hugging Face checkpoint that transformers and vLLM load.

    Example: toolverse export runs/quickstart/train --out runs/policy
    """
    from toolverse_jax.train.export import export_step

    written = export_step(run, out, step=step, dtype=dtype)
    print(f"step {written} of {run} written to {out}")


@app.command()
def view(
    run: Annotated[
        Path, typer.Argument(help="Folder of a run: train/, eval/ and envs/ are used where present.")
    ],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Default: <run>/report.html.")] = None,
) -> None:
    """Write a self-contained HTML report of a run: curves, comparison, graph, whole trajectories.

    Example: toolverse view runs/quickstart
    """
    from toolverse_jax.evaluation.report import write_report

    path = out or run / "report.html"
    write_report(run, path)
    print(path)


# --- tools for people -------------------------------------------------------------------------


@app.command()
def bench(
    name: Annotated[str, typer.Argument(help="What to measure; `toolverse bench list` names all.")],
    as_json: JsonFlag = False,
) -> None:
    """Measure one part of the system on this machine.

    Example: toolverse bench engine --json
    """
    from toolverse_jax.evaluation.benchmarks import BENCHMARKS, run_benchmark

    if name == "list":
        for known, description in BENCHMARKS.items():
            print(f"{known:<10} {description}")
        return
    _emit(run_benchmark(name), as_json)


@app.command()
def doctor(as_json: JsonFlag = False) -> None:
    """Check the installation: Python, packages, devices, content folders.

    Exit status 1 if something is wrong.

    Example: toolverse doctor --json
    """
    from toolverse_jax.doctor import run_checks

    checks = run_checks()
    if as_json:
        print(json.dumps({check.name: {"ok": check.ok, "found": check.found} for check in checks}))
    else:
        for check in checks:
            print(f"{'ok ' if check.ok else 'BAD'} {check.name:<22} {check.found}")
    if not all(check.ok for check in checks):
        raise typer.Exit(1)


if __name__ == "__main__":
    main()
