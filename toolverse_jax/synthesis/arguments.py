"""Draw values that satisfy a JSON Schema, for calling tools nobody has described further."""

from __future__ import annotations

import random
from collections.abc import Mapping, Set
from typing import Any

from toolverse_jax.types import JSON


def schema_value(schema: Mapping[str, Any], rng: random.Random, *, avoid: Set[Any] = frozenset()) -> JSON:
    """Draw a value that satisfies a JSON Schema, from its enum or examples where it has them."""
    for key in ("anyOf", "oneOf"):
        branches = [part for part in schema.get(key, ()) if part.get("type") != "null"]
        if branches:
            return schema_value(branches[0], rng, avoid=avoid)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return rng.choice(schema["enum"])
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((name for name in kind if name != "null"), "string")
    if schema.get("examples"):
        fresh = [value for value in schema["examples"] if not isinstance(value, str) or value not in avoid]
        if fresh:
            return rng.choice(fresh)
    if kind in ("integer", "number"):
        low = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
        high = schema.get("maximum", schema.get("exclusiveMaximum", low + 10) - 1)
        return rng.randint(int(low), int(max(low, min(high, low + 10))))
    if kind == "boolean":
        return rng.random() < 0.5
    if kind == "array":
        size = max(1, schema.get("minItems", 1))
        return [schema_value(schema.get("items", {}), rng) for _ in range(size)]
    if kind == "object" or "properties" in schema:
        names = schema.get("required", schema.get("properties", {}))
        return {name: schema_value(schema.get("properties", {}).get(name, {}), rng) for name in names}
    return _text(schema, rng)


def _text(schema: Mapping[str, Any], rng: random.Random) -> str:
    day = rng.randint(10, 28)
    by_format = {
        "date": f"2031-04-{day}",
        "date-time": f"2031-04-{day}T10:00:00",
        "time": f"{day % 12 + 8:02d}:30:00",
        "email": f"person{day}@example.org",
        "uri": f"https://example.org/{day}",
        "uuid": f"00000000-0000-4000-8000-0000000000{day}",
    }
    text = by_format.get(schema.get("format", ""), f"sample {day}")
    text = text.ljust(schema.get("minLength", 0), "x")
    return text[: schema["maxLength"]] if "maxLength" in schema else text
