"""Laws that every environment keeps, by the kind of its tools.

A law is stated over calls and tables as a caller sees them: it knows what a tool *declares* (verb,
entity, bindings of its parameters, conditions), never how the interpreter does it. So an
environment whose tools do something else than they declare breaks a law.
"""

from __future__ import annotations

from collections.abc import Iterator

from toolverse_jax.synthesis.declared_laws import declared_checks
from toolverse_jax.synthesis.interface_checks import Check, isolation_checks, output_checks, schema_checks
from toolverse_jax.synthesis.probe import Probe
from toolverse_jax.synthesis.read_laws import (
    fabricated_identifier_checks,
    is_mutator,
    read_checks,
    unsupported_checks,
)
from toolverse_jax.synthesis.write_laws import write_checks


def tool_checks(probe: Probe, tool: str) -> Iterator[Check]:
    """Yield every check that concerns one tool, the cheap ones that find most first."""
    operation = probe.operations[tool]
    if operation.simulated == "none":
        yield from unsupported_checks(probe, operation)
        return
    yield from fabricated_identifier_checks(probe, operation)
    yield from (write_checks if is_mutator(operation) else read_checks)(probe, operation)
    yield from declared_checks(probe, operation)
    yield from output_checks(probe, tool)
    yield from schema_checks(probe, tool)


def all_checks(probe: Probe) -> Iterator[Check]:
    """Yield every check of an environment."""
    for tool in probe.operations:
        yield from tool_checks(probe, tool)
    yield from isolation_checks(probe)
