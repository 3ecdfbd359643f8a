"""Environment: a specification compiled once, able to open any number of sessions."""

from __future__ import annotations

import json
from collections import OrderedDict
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from toolverse_jax.environment.checks import check_spec
from toolverse_jax.environment.database import Database, seed_database
from toolverse_jax.environment.operations import Annotations, Plan, compile_operation
from toolverse_jax.environment.outputs import RenderRow, compile_row
from toolverse_jax.environment.session import Session
from toolverse_jax.environment.spec import SPEC_VERSION, EnvSpec
from toolverse_jax.errors import EnvironmentSpecError
from toolverse_jax.types import ToolSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

CACHED_SEEDS = 512
"""Start states kept per environment; older ones are rebuilt when asked for again."""
SECONDS_PER_CHANGE = 60
"""How far the logical clock moves with each call that changes the state."""


class Environment:
    """One environment: tools over typed tables, run by an interpreter from a specification.

    Raises:
        EnvironmentSpecError: the specification is inconsistent; the sentence names the place.
    """

    def __init__(self, spec: EnvSpec) -> None:
        check_spec(spec)
        self.spec = spec
        self.name = spec.name
        self.plans: Mapping[str, Plan] = {
            tool.name: compile_operation(spec, spec.operation(tool.name)) for tool in spec.tools
        }
        """Compiled operation by tool name, in the order of `tools`."""
        self.row_renderers: Mapping[str, RenderRow] = {
            entity.name: compile_row(entity.fields, entity.id_name) for entity in spec.entities
        }
        """Entity -> function from a row to all of its fields in external form."""
        self._epoch = datetime.fromisoformat(spec.epoch)
        self._times: list[str] = []
        self._databases: OrderedDict[int, Database] = OrderedDict()

    @cached_property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The tools as a policy sees them; output schemas are derived where the author gave none."""
        return tuple(
            ToolSpec(
                name=tool.name,
                description=tool.description,
                input_schema=tool.input_schema,
                output_schema=tool.output_schema or self.plans[tool.name].output_schema,
            )
            for tool in self.spec.tools
        )

    @property
    def annotations(self) -> dict[str, Annotations]:
        """What each tool does to the state."""
        return {name: plan.annotations for name, plan in self.plans.items()}

    def session(self, seed: int) -> Session:
        """Open a session in the start state of a seed."""
        return Session(self, self.database(seed))

    def database(self, seed: int) -> Database:
        """Return the shared start state of a seed."""
        database = self._databases.get(seed)
        if database is None:
            database = self._databases[seed] = seed_database(self.spec, seed)
            if len(self._databases) > CACHED_SEEDS:
                self._databases.popitem(last=False)
        return database

    def time_at(self, clock: int) -> str:
        """Return the logical time after a number of changing calls, ISO 8601."""
        times = self._times
        while len(times) <= clock:
            times.append((self._epoch + timedelta(seconds=SECONDS_PER_CHANGE * len(times))).isoformat())
        return times[clock]


def load_spec(path: str | Path) -> EnvSpec:
    """Read a specification from an environment folder or its `env.json`.

    Raises:
        EnvironmentSpecError: the file is missing, not JSON, or not a specification.
    """
    path = Path(path)
    file = path / "env.json" if path.is_dir() else path
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise EnvironmentSpecError(
            f"{file} does not exist; give the folder of an environment or its env.json"
        ) from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise EnvironmentSpecError(f"{file} is not readable JSON: {error}") from error
    if not isinstance(data, dict):
        raise EnvironmentSpecError(f"{file} must hold a JSON object, got {type(data).__name__}")
    version = data.get("version", SPEC_VERSION)
    if version != SPEC_VERSION:
        raise EnvironmentSpecError(
            f"{file} has version {version!r}; this release reads version {SPEC_VERSION}"
        )
    try:
        return EnvSpec.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "its root"
        raise EnvironmentSpecError(
            f"{file} is not a valid specification at {place}: {first['msg']}"
        ) from error


def load_environment(path: str | Path) -> Environment:
    """Load an environment from its folder or its `env.json`.

    Raises:
        EnvironmentSpecError: one sentence on what is missing or wrong.
    """
    return Environment(load_spec(path))
