"""EnvSpec: an environment as data, never as code.

One interpreter (`environment.engine`) runs every specification; servers, readable Python and cards
are exports of it. Expressions are JSON arrays `[operator, operand, ...]`, see `EXPRESSION_OPERATORS`;
anything that is not an array whose first item is a known operator is a literal.

Identifiers. Rows are keyed inside the engine by `"<entity>:<n>"` (n from 0, seed rows first). What
a caller sees is an identifier derived from the episode seed, so it cannot be guessed or memorised.
Fields of type `ref` hold the internal key and are shown as the identifier of the row they point to.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict
from pydantic import Field as PydanticField

from toolverse_jax.types import JSON

SPEC_VERSION = 1

EXPRESSION_OPERATORS = {
    "arg": 1,  # ["arg", name] -> the argument, null when absent
    "field": 2,  # ["field", binding, name] -> a field of a bound row
    "singleton": 2,  # ["singleton", name, field]
    "now": 0,  # logical time of the call, ISO 8601
    "id": 1,  # ["id", binding] -> internal key of a bound row
    "count": 1,  # ["count", binding] -> number of rows in a bound list
    "sum": 2,  # ["sum", binding, field]
    "coalesce": None,  # first operand that is not null
    "add": 2,
    "sub": 2,
    "mul": 2,
    "eq": 2,
    "ne": 2,
    "lt": 2,
    "le": 2,
    "gt": 2,
    "ge": 2,
    "in": 2,
    "and": None,
    "or": None,
    "not": 1,
}
"""Operator -> number of operands (None: any)."""

Expr = Any
"""A JSON expression, checked when the specification is compiled."""

ErrorCode = Literal[
    "invalid_arguments",
    "unknown_tool",
    "not_found",
    "already_exists",
    "precondition_failed",
    "conflict",
    "permission_denied",
    "dependency_exists",
    "limit_exceeded",
    "unsupported",
]


class Record(BaseModel):
    """Base of all records of a specification: unknown keys are errors, instances are frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


# --- data -------------------------------------------------------------------------------------


class Choices(Record):
    """Draw a value from a list."""

    kind: Literal["choices"] = "choices"
    values: tuple[JSON, ...] = PydanticField(min_length=1)


class Compose(Record):
    """Draw one word from each list and join them."""

    kind: Literal["compose"] = "compose"
    parts: tuple[tuple[str, ...], ...]
    separator: str = " "


class NumberRange(Record):
    """Draw a number from `low, low + step, ..., high`."""

    kind: Literal["range"] = "range"
    low: float
    high: float
    step: float = 1


class DateRange(Record):
    """Draw a date (or date-time) some days from the epoch of the environment."""

    kind: Literal["date"] = "date"
    low_days: int
    high_days: int


class ValueKind(Record):
    """Draw a value of a general kind: person, email, phone, city, url, sentence, code, colour, ..."""

    kind: Literal["value"] = "value"
    value: str


Generator = Annotated[
    Choices | Compose | NumberRange | DateRange | ValueKind, PydanticField(discriminator="kind")
]

FieldType = Literal[
    "string", "integer", "number", "boolean", "date", "datetime", "enum", "ref", "array", "object", "json"
]


class FieldSpec(Record):
    """A field of an entity or singleton."""

    name: str
    type: FieldType = "string"
    description: str = ""
    enum: tuple[JSON, ...] | None = None
    ref: str | None = None
    """Entity that a `ref` field points to."""
    unique: bool = False
    """No two rows share a value; generation respects it and inserts are refused with `already_exists`."""
    nullable: bool = False
    default: JSON = None
    generator: Generator | None = None
    """How seeding draws values. None: `enum` and `ref` draw from their own domain, others use `default`."""
    visible_in: tuple[Literal["list", "detail"], ...] = ("list", "detail")
    """A field shown only in `detail` forces a lookup of the single row."""


class IdScheme(Record):
    """How identifiers of an entity look: `prefix`, then `length` characters of `alphabet`."""

    prefix: str = ""
    length: int = 5
    alphabet: Literal["hex", "digits", "alnum"] = "alnum"
    type: Literal["string", "integer"] = "string"


class Lifecycle(Record):
    """A state machine over one field: verb -> (states it starts from, state it ends in)."""

    field: str
    transitions: dict[str, tuple[tuple[str, ...], str]]


class Entity(Record):
    """A table of rows."""

    name: str
    plural: str
    fields: tuple[FieldSpec, ...]
    id_name: str = "id"
    """Name under which a row's identifier is shown."""
    id_scheme: IdScheme = IdScheme()
    label_field: str | None = None
    """Field by which a person names a row, such as `title`."""
    lifecycle: Lifecycle | None = None
    on_delete: Literal["restrict", "cascade", "nullify"] = "restrict"
    """What deleting a row does to rows that point to it."""
    population: tuple[int, int] = (3, 5)
    """Inclusive range of the number of rows generated for an episode."""
    seed: tuple[dict[str, JSON], ...] = ()
    """Rows that exist in every episode, before the generated ones; `ref` fields hold internal keys."""

    def field(self, name: str) -> FieldSpec:
        for candidate in self.fields:
            if candidate.name == name:
                return candidate
        raise KeyError(name)


class Singleton(Record):
    """One named record: settings, a balance, a counter."""

    name: str
    fields: tuple[FieldSpec, ...]


# --- operations -------------------------------------------------------------------------------


class Filter(Record):
    """Keep rows whose `field` matches the argument; an absent argument keeps all."""

    arg: str
    field: str
    match: Literal["exact", "ci", "contains", "ge", "le"] = "exact"


class Lookup(Record):
    """Bind the row named by an argument (its identifier, or `field`); `not_found` otherwise."""

    op: Literal["lookup"] = "lookup"
    entity: str
    arg: str
    field: str | None = None
    """None: the argument is an identifier; else the unique field it is compared with."""
    bind: str = "row"
    optional: bool = False
    """An absent argument binds null instead of failing."""


class Query(Record):
    """Bind the list of rows that pass the filters, in order of creation or sorted."""

    op: Literal["query"] = "query"
    entity: str
    filters: tuple[Filter, ...] = ()
    where: Expr = None
    """Condition over the binding `row` and earlier bindings."""
    sort_field: str | None = None
    descending: bool = False
    limit_arg: str | None = None
    offset_arg: str | None = None
    limit: int | None = None
    bind: str = "rows"


class Insert(Record):
    """Insert a row; fields without a value take their default. Binds the new row."""

    op: Literal["insert"] = "insert"
    entity: str
    values: dict[str, Expr]
    bind: str = "row"


class Update(Record):
    """Replace fields of a bound row. Null expressions are skipped when `skip_null`."""

    op: Literal["update"] = "update"
    entity: str
    row: str = "row"
    values: dict[str, Expr]
    skip_null: bool = True


class Delete(Record):
    """Delete a bound row, honouring `on_delete` of its entity."""

    op: Literal["delete"] = "delete"
    entity: str
    row: str = "row"


class Transition(Record):
    """Move a bound row through its entity's lifecycle; `precondition_failed` from a wrong state."""

    op: Literal["transition"] = "transition"
    entity: str
    row: str = "row"
    verb: str


class Adjust(Record):
    """Add an amount to a numeric field of a bound row; `limit_exceeded` outside the bounds."""

    op: Literal["adjust"] = "adjust"
    entity: str
    row: str = "row"
    field: str
    amount: Expr
    minimum: float | None = None
    maximum: float | None = None


class SetSingleton(Record):
    """Replace fields of a singleton."""

    op: Literal["set_singleton"] = "set_singleton"
    singleton: str
    values: dict[str, Expr]
    skip_null: bool = True


Step = Annotated[
    Lookup | Query | Insert | Update | Delete | Transition | Adjust | SetSingleton,
    PydanticField(discriminator="op"),
]


class Guard(Record):
    """A condition checked after lookups and before any change; false answers with the error code."""

    condition: Expr
    code: ErrorCode = "precondition_failed"
    message: str


class Output(Record):
    """What a successful call returns.

    `record`: the bound row as an object; `list`: `{plural: [rows]}`; `scalar`: only `extra`;
    `singleton`: the fields of a singleton.
    """

    shape: Literal["record", "list", "scalar", "singleton"]
    source: str = "row"
    """Binding of the row or rows, or the name of the singleton."""
    entity: str | None = None
    fields: tuple[str, ...] | None = None
    """Fields shown besides the identifier; None: all fields visible in `detail` (record) or `list`."""
    extra: dict[str, Expr] = {}
    """Further members of the result by name."""


VerbClass = Literal[
    "list",
    "search",
    "get",
    "create",
    "update",
    "delete",
    "transition",
    "adjust",
    "aggregate",
    "settings",
    "other",
]

ArgRole = Literal["id", "natural_key", "field", "filter", "query", "limit", "offset", "amount", "ignored"]


class ArgBinding(Record):
    """What a parameter means: used by the author, the dependency graph, grounding and instructions."""

    role: ArgRole
    entity: str | None = None
    """Entity identified (`id`, `natural_key`), or owning the field."""
    field: str | None = None
    match: Literal["exact", "ci", "contains", "ge", "le"] = "exact"


class Operation(Record):
    """What one tool does."""

    tool: str
    verb: VerbClass
    entity: str | None = None
    args: dict[str, ArgBinding] = {}
    guards: tuple[Guard, ...] = ()
    steps: tuple[Step, ...] = ()
    output: Output
    simulated: Literal["full", "canned", "none"] = "full"
    """Honesty flag: whether the tool really does what its description says."""


class ToolInterface(Record):
    """A tool's public face; `input_schema` is normalised, `input_schema_raw` verbatim when it differs."""

    name: str
    description: str
    input_schema: dict[str, JSON]
    input_schema_raw: dict[str, JSON] | None = None
    output_schema: dict[str, JSON] | None = None
    changes: tuple[str, ...] = ()
    """Notes of what normalisation changed."""


class EnvSpec(Record):
    """A whole environment."""

    version: int = SPEC_VERSION
    name: str
    domain: str = ""
    description: str = ""
    source: dict[str, JSON] = {}
    """Origin: file, server, stratum (full, split, composite, scraped), licence."""
    author: str
    """Who wrote it: `rules@1`, `llm:<model>@1` or `manual`."""
    epoch: str = "2031-03-03T09:00:00"
    """Start of the logical clock."""
    entities: tuple[Entity, ...] = ()
    singletons: tuple[Singleton, ...] = ()
    tools: tuple[ToolInterface, ...]
    operations: tuple[Operation, ...]

    def entity(self, name: str) -> Entity:
        for candidate in self.entities:
            if candidate.name == name:
                return candidate
        raise KeyError(name)

    def operation(self, tool: str) -> Operation:
        for candidate in self.operations:
            if candidate.tool == tool:
                return candidate
        raise KeyError(tool)

    def tool(self, name: str) -> ToolInterface:
        for candidate in self.tools:
            if candidate.name == name:
                return candidate
        raise KeyError(name)
