"""Validation of an environment: laws, mutation check, honesty gate, and the report of all three."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from toolverse_jax.environment import Environment
from toolverse_jax.environment.spec import EnvSpec
from toolverse_jax.errors import EnvironmentSpecError
from toolverse_jax.synthesis.interface_checks import Check
from toolverse_jax.synthesis.laws import all_checks
from toolverse_jax.synthesis.mutation import MutationReport, check_mutants
from toolverse_jax.synthesis.probe import OpenSession, Probe
from toolverse_jax.synthesis.read_laws import is_mutator
from toolverse_jax.types import JSON

REPORT_VERSION = 1
MIN_KILL_RATE = 0.9
MIN_FULL_FRACTION = 0.7
MAX_IGNORED_FRACTION = 0.2
MIN_ROWS = 3
LAYERS = ("schema", "output", "laws", "semantics", "isolation")
MAX_REASONS = 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class LayerCount:
    """Checks of one layer."""

    passed: int = 0
    failed: int = 0
    unreached: int = 0
    """Situations that no seed and no arguments led to; nothing is known about them."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ValidationReport:
    """What validation found out about one environment."""

    environment: str
    accepted: bool
    reasons: tuple[str, ...]
    """Why it was rejected, one sentence each; empty when it was accepted."""
    checks: dict[str, LayerCount]
    """Layer -> counts."""
    unreached: tuple[str, ...]
    """Situations nothing is known about, as `tool: law`."""
    mutation: MutationReport | None
    """None where the laws failed already: a broken environment has nothing to mutate."""
    honesty: dict[str, JSON]
    """Figures of the honesty gate."""

    def to_json(self) -> dict[str, JSON]:
        """Return the report as JSON with keys in a fixed order."""
        mutation: dict[str, JSON] | None = None
        if self.mutation is not None:
            mutation = {
                "killed": self.mutation.killed,
                "total": self.mutation.total,
                "stillborn": self.mutation.stillborn,
                "kill_rate": round(self.mutation.kill_rate, 4),
                "by_kind": {kind: f"{k}/{n}" for kind, (k, n) in self.mutation.by_kind.items()},
                "survivors": list(self.mutation.survivors),
            }
        return {
            "version": REPORT_VERSION,
            "environment": self.environment,
            "accepted": self.accepted,
            "reasons": list(self.reasons),
            "checks": {layer: dataclasses.asdict(count) for layer, count in self.checks.items()},
            "unreached": list(self.unreached),
            "mutation": mutation,
            "honesty": self.honesty,
        }


def validate(
    spec: EnvSpec, *, open_session: OpenSession | None = None, seeds: tuple[int, ...] = (0, 1, 2, 3)
) -> ValidationReport:
    """Try every law on an environment, then its mutants, then judge its honesty.

    Args:
        spec: the specification; what its tools declare is what the laws expect.
        open_session: opens the session of a seed; default: the interpreter on `spec`.
        seeds: episode seeds to look at.
    """
    if open_session is None:
        try:
            open_session = Environment(spec).session
        except EnvironmentSpecError as error:
            return _unusable(spec, str(error))
    probe = Probe(spec, open_session, seeds=seeds)
    checks = list(all_checks(probe))
    honesty, complaints = judge_honesty(probe)
    failures = [c for c in checks if c.passed is False]
    reasons = [_sentence(c) for c in failures[:MAX_REASONS]]
    if len(failures) > MAX_REASONS:
        reasons.append(f"{len(failures) - MAX_REASONS} more checks failed.")
    mutation = None if failures else check_mutants(spec, probe)
    if mutation is not None and mutation.kill_rate < MIN_KILL_RATE:
        reasons.append(
            f"The laws noticed {mutation.killed} of {mutation.total} mutants; at least {MIN_KILL_RATE:.0%} are needed."
        )
    reasons += complaints
    return ValidationReport(
        environment=spec.name,
        accepted=not reasons,
        reasons=tuple(reasons),
        checks=_counts(checks),
        unreached=tuple(dict.fromkeys(f"{c.tool}: {c.law}" for c in checks if c.passed is None)),
        mutation=mutation,
        honesty=honesty,
    )


def _unusable(spec: EnvSpec, reason: str) -> ValidationReport:
    return ValidationReport(
        environment=spec.name,
        accepted=False,
        reasons=(reason,),
        checks={},
        unreached=(),
        mutation=None,
        honesty={},
    )


def _sentence(check: Check) -> str:
    place = f"{check.tool}: " if check.tool else ""
    return f"{place}{check.law}" + (f" ({check.detail})" if check.detail else "") + "."


def _counts(checks: Iterable[Check]) -> dict[str, LayerCount]:
    tally = {layer: [0, 0, 0] for layer in LAYERS}
    for check in checks:
        tally[check.layer][{True: 0, False: 1, None: 2}[check.passed]] += 1
    return {
        layer: LayerCount(passed=passed, failed=failed, unreached=unreached)
        for layer, (passed, failed, unreached) in tally.items()
    }


def judge_honesty(probe: Probe) -> tuple[dict[str, JSON], list[str]]:
    """Return the figures of the honesty gate and what speaks against the environment."""
    operations = probe.spec.operations
    full = sum(operation.simulated == "full" for operation in operations) / len(operations)
    roles = [
        b.role for operation in operations if operation.simulated != "none" for b in operation.args.values()
    ]
    ignored = roles.count("ignored") / len(roles) if roles else 0.0
    mutators = [operation for operation in operations if is_mutator(operation)]
    readable = {operation.entity for operation in operations if not is_mutator(operation)}
    seen = [operation.tool for operation in mutators if operation.entity in readable]
    constant = [operation.tool for operation in operations if _is_constant(probe, operation.tool)]
    rows = min((len(table) for table in probe.first_tables(probe.seeds[0]).values()), default=0)
    figures: dict[str, JSON] = {
        "full_fraction": round(full, 4),
        "ignored_fraction": round(ignored, 4),
        "mutators": len(mutators),
        "mutators_with_reader": len(seen),
        "read_only": not mutators,
        "constant_tools": constant,
        "fewest_rows": rows,
    }
    complaints = []
    if full < MIN_FULL_FRACTION:
        complaints.append(
            f"Only {full:.0%} of the tools do what they say; at least {MIN_FULL_FRACTION:.0%} must."
        )
    if ignored > MAX_IGNORED_FRACTION:
        complaints.append(
            f"{ignored:.0%} of the parameters have no effect; at most {MAX_IGNORED_FRACTION:.0%} may."
        )
    if mutators and not seen:
        complaints.append("No change that a tool makes can be read by another tool.")
    if constant:
        complaints.append(f"The answers of {', '.join(constant)} never vary.")
    if rows < MIN_ROWS:
        complaints.append(f"An entity has only {rows} rows at the start; at least {MIN_ROWS} are needed.")
    return figures, complaints


def _is_constant(probe: Probe, tool: str) -> bool:
    """Tell whether a tool gave one and the same successful answer in every first state."""
    answers = []
    for seed in probe.seeds:
        for optional in (False, True):
            arguments = probe.working(tool, seed, optional=optional)
            if arguments is not None:
                answers.append(probe.session(seed).call(tool, arguments).content)
    return len(answers) > 1 and len(set(answers)) == 1
