from __future__ import annotations

import jsonschema
import pytest

from toolverse_jax.synthesis.arguments import schema_value
from toolverse_jax.synthesis.probe import seeded


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "enum": ["a", "b"]},
        {"type": "string", "format": "date"},
        {"type": "string", "minLength": 30},
        {"type": "string", "maxLength": 3},
        {"type": "integer", "minimum": 7, "maximum": 7},
        {"type": "number", "exclusiveMinimum": 0},
        {"type": "boolean"},
        {"type": "array", "items": {"type": "integer"}, "minItems": 2},
        {"type": "object", "properties": {"x": {"type": "string"}, "y": {}}, "required": ["x"]},
        {"anyOf": [{"type": "null"}, {"type": "integer"}]},
        {"type": ["null", "string"]},
        {"const": 4},
    ],
)
def test_a_drawn_value_satisfies_its_schema(schema):
    for n in range(20):
        jsonschema.validate(
            schema_value(schema, seeded(n)), schema, format_checker=jsonschema.FormatChecker()
        )


def test_examples_are_preferred_and_taken_ones_avoided():
    schema = {"type": "string", "examples": ["one", "two"]}
    assert {schema_value(schema, seeded(n), avoid={"one"}) for n in range(10)} == {"two"}


def test_the_same_seed_draws_the_same_value():
    schema = {"type": "integer", "minimum": 0, "maximum": 1000}
    assert [schema_value(schema, seeded(n)) for n in range(5)] == [
        schema_value(schema, seeded(n)) for n in range(5)
    ]
