"""One-page cards: what an environment holds and does, for a person who has never seen it."""

from __future__ import annotations

import json
from collections.abc import Iterator

from toolverse_jax.environment import Environment
from toolverse_jax.environment.spec import Entity, EnvSpec, FieldSpec, Operation
from toolverse_jax.synthesis.probe import Probe
from toolverse_jax.synthesis.validate import ValidationReport
from toolverse_jax.types import JSON, Toolset

EXAMPLE_SEED = 0
_EXAMPLE_VERBS = (
    ("list", "search"),
    ("get", "aggregate"),
    ("create",),
    ("update", "adjust", "transition", "delete"),
)
"""One call of each group is shown: the first tool that reads, the last one that writes."""


def environment_card(toolset: Toolset, spec: EnvSpec, report: ValidationReport) -> str:
    """Return the Markdown page of an environment; the same input gives the same text."""
    lines = [f"# {spec.name}", "", toolset.overview or spec.description or "An environment.", ""]
    lines += [f"Source: {toolset.source or 'unknown'}, licence: {toolset.licence or 'unknown'}. ", ""]
    lines[-2] = (
        lines[-2].strip() + f" Author: `{spec.author}`. Labels: {', '.join(toolset.labels) or 'none'}."
    )
    lines += ["## Rows", "", "| entity | identifier | fields |", "|---|---|---|"]
    lines += [_entity_line(entity) for entity in spec.entities]
    for singleton in spec.singletons:
        lines.append(f"| {singleton.name} (one record) | | {_fields(singleton.fields)} |")
    lines += ["", "## Tools", "", "| tool | parameters | what it does |", "|---|---|---|"]
    lines += [_tool_line(spec, operation) for operation in spec.operations]
    lines += ["", f"## Example (episode seed {EXAMPLE_SEED})", "", "```text"]
    lines += list(_example(spec))
    lines += ["```", "", "## Validation", "", *_figures(report), ""]
    return "\n".join(lines)


def _entity_line(entity: Entity) -> str:
    low, high = entity.population
    text = f"| {entity.name} | `{entity.id_name}` | {_fields(entity.fields)} |"
    states = ""
    if entity.lifecycle is not None:
        moves = [
            f"{verb}: {' or '.join(s)} → {end}" for verb, (s, end) in entity.lifecycle.transitions.items()
        ]
        states = f"<br>{'; '.join(moves)}"
    rows = f"{low + len(entity.seed)} to {high + len(entity.seed)} rows at the start"
    return text[:-2] + f"{states}<br>{rows} |"


def _fields(fields: tuple[FieldSpec, ...]) -> str:
    return ", ".join(_field(field) for field in fields) or "none"


def _field(field: FieldSpec) -> str:
    kind = f"→ {field.ref}" if field.ref else field.type
    if field.enum:
        kind = " / ".join(str(value) for value in field.enum)
    hidden = "" if "list" in field.visible_in else ", detail only"
    return f"`{field.name}` ({kind}{', unique' if field.unique else ''}{hidden})"


def _tool_line(spec: EnvSpec, operation: Operation) -> str:
    tool = spec.tool(operation.tool)
    required = tool.input_schema.get("required", ())
    names = [f"`{n}`" if n in required else f"`{n}`?" for n in tool.input_schema.get("properties", {})]
    guards = "".join(f" Refused ({guard.code}): {guard.message.rstrip('.')}." for guard in operation.guards)
    text = " ".join((tool.description + guards).replace("|", "\\|").split())
    return f"| `{tool.name}` | {', '.join(names) or '-'} | {text} |"


def _example(spec: EnvSpec) -> Iterator[str]:
    """Yield a few calls on one session, each with its answer."""
    environment = Environment(spec)
    probe = Probe(spec, environment.session, seeds=(EXAMPLE_SEED,))
    session = environment.session(EXAMPLE_SEED)
    for verbs in _EXAMPLE_VERBS:
        fitting = [operation for operation in spec.operations if operation.verb in verbs]
        for operation in fitting if "list" in verbs else reversed(fitting):
            arguments = _first_success(probe, session, operation.tool)
            if arguments is not None:
                yield f"{operation.tool} {json.dumps(arguments, ensure_ascii=False)}"
                yield f"  → {session.call(operation.tool, arguments).content}"
                break


def _first_success(probe: Probe, session, tool: str) -> dict[str, JSON] | None:
    for arguments in probe.candidates(tool, EXAMPLE_SEED, probe.tables(session), limit=16):
        if not session.fork().call(tool, arguments).is_error:
            return arguments
    return None


def _figures(report: ValidationReport) -> list[str]:
    verdict = "accepted" if report.accepted else "rejected"
    lines = [f"Verdict: **{verdict}**.", "", "| layer | passed | failed | not reached |", "|---|---|---|---|"]
    lines += [
        f"| {layer} | {count.passed} | {count.failed} | {count.unreached} |"
        for layer, count in report.checks.items()
    ]
    if report.mutation is not None:
        mutation = report.mutation
        share = f"{mutation.killed} of {mutation.total} ({mutation.kill_rate:.0%})"
        lines += ["", f"Broken copies of the specification that the checks noticed: {share}."]
        if mutation.survivors:
            lines += ["Not noticed: " + "; ".join(f"`{name}`" for name in mutation.survivors) + "."]
    lines += [f"- {reason}" for reason in report.reasons]
    return lines
