"""Turns a JSON Schema as servers publish it into a plain one: no references, no nullable unions."""

from __future__ import annotations

import copy
from typing import Any

_REFERENCE_KEYS = ("$ref", "$dynamicRef")
_DROPPED_KEYWORDS = ("$schema", "$id", "$defs", "definitions", "$comment", "$anchor", "$dynamicAnchor")
_MOST_REPAIRS = 50

Schema = dict[str, Any]


def repair_schema(raw: Schema, notes: list[str]) -> Schema:
    """Return an equivalent object schema in plain form.

    Args:
        raw: The schema as given; it is not changed.
        notes: Receives one sentence per kind of change.
    """
    schema = copy.deepcopy(raw)
    schema = _unwrap_nested(schema, notes)
    schema = _Plain(schema, notes).plain(schema, (), is_root=True)
    if schema.get("type") != "object":
        # The engine and every protocol take an object of named arguments.
        if "type" in schema:
            notes.append(f"the root type {schema['type']!r} was replaced by 'object'")
            schema = {"properties": schema.get("properties", {})}
        else:
            notes.append("the missing root type was set to 'object'")
        schema = {"type": "object", **schema}
    if not isinstance(schema.get("properties"), dict):
        schema["properties"] = {}
    given = schema.get("required")
    names = given if isinstance(given, list) else []
    required = [name for name in names if isinstance(name, str) and name in schema["properties"]]
    if given is not None and required != given:
        notes.append("required names that are no parameters were dropped")
    schema.pop("required", None)
    if required:
        schema["required"] = list(dict.fromkeys(required))
    _repair_invalid(schema, notes)
    _drop_bad_defaults(schema, notes)
    return schema


def _unwrap_nested(schema: Schema, notes: list[str]) -> Schema:
    """Undo the mistake of putting the whole schema inside `properties`."""
    inner = schema.get("properties")
    while (
        isinstance(inner, dict)
        and isinstance(inner.get("type"), str)
        and isinstance(inner.get("properties"), dict)
    ):
        notes.append("the whole schema was nested inside 'properties' and was unwrapped")
        schema, inner = inner, inner["properties"]
    return schema


class _Plain:
    """One pass over a schema with its root for references."""

    def __init__(self, root: Schema, notes: list[str]) -> None:
        self.root = root
        self.notes = notes

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def plain(self, schema: Any, seen: tuple[str, ...], *, is_root: bool = False) -> Schema:
        """Return the plain form of a subschema; `seen` holds the references being resolved."""
        if schema is True or schema is None:
            return {}
        if not isinstance(schema, dict):
            self.note("a subschema that is no object was replaced by an open one")
            return {}
        schema = dict(schema)
        for key in _REFERENCE_KEYS:
            if key in schema:
                return self._resolve(schema, key, seen)
        schema = self._unite(schema, seen)
        for key in _DROPPED_KEYWORDS:
            if key in schema:
                del schema[key]
                self.note(f"the keyword {key} was removed")
        if isinstance(schema.get("title"), str):
            del schema["title"]
            self.note("titles were removed")
        schema = self._plain_type(schema)
        return self._children(schema, seen)

    def _resolve(self, schema: Schema, key: str, seen: tuple[str, ...]) -> Schema:
        reference = schema.pop(key)
        siblings = {name: value for name, value in schema.items() if name not in _DROPPED_KEYWORDS}
        if reference in seen:
            self.note(f"the cyclic reference {reference} was cut to an open object")
            return {"type": "object", **siblings}
        target = self._target(reference)
        if target is None:
            self.note(f"the reference {reference!r} leads nowhere and was replaced by an open schema")
            return self.plain(siblings, seen)
        self.note("references were resolved")
        resolved = self.plain(target, (*seen, reference))
        return {**resolved, **self.plain(siblings, seen)}

    def _target(self, reference: Any) -> Any:
        if not isinstance(reference, str) or not reference.startswith("#"):
            return None
        node: Any = self.root
        for part in reference[1:].strip("/").split("/") if reference != "#" else ():
            part = part.replace("~1", "/").replace("~0", "~")
            if isinstance(node, list) and part.isdigit() and int(part) < len(node):
                node = node[int(part)]
            elif isinstance(node, dict) and part in node:
                node = node[part]
            else:
                return None
        return node

    def _unite(self, schema: Schema, seen: tuple[str, ...]) -> Schema:
        """Replace a union with null, or of one member, by that member."""
        for key in ("anyOf", "oneOf", "allOf"):
            members = schema.get(key)
            if not isinstance(members, list):
                continue
            real = [m for m in members if not (isinstance(m, dict) and m.get("type") == "null")]
            nullable = len(real) < len(members)
            if len(real) == 1:
                rest = {name: value for name, value in schema.items() if name != key}
                self.note(
                    "nullable unions became plain types" if nullable else f"{key} of one member was merged"
                )
                schema = {**self.plain(real[0], seen), **rest}
                if schema.get("default", ...) is None:
                    del schema["default"]
            elif real:
                if nullable:
                    self.note("null was removed from a union")
                schema[key] = [self.plain(member, seen) for member in real]
        return schema

    def _plain_type(self, schema: Schema) -> Schema:
        kinds = schema.get("type")
        if isinstance(kinds, list):
            real = [kind for kind in kinds if kind != "null"]
            if len(real) == 1:
                schema["type"] = real[0]
                self.note("nullable type lists became plain types")
            elif real:
                # A true union stays: choosing one member would refuse valid calls.
                schema["type"] = real
                self.note("a parameter takes several types")
            if "null" in kinds and schema.get("default", ...) is None:
                del schema["default"]
        if schema.pop("nullable", None) is True:
            self.note("the keyword nullable was removed")
        return schema

    def _children(self, schema: Schema, seen: tuple[str, ...]) -> Schema:
        properties = schema.get("properties")
        if isinstance(properties, dict):
            schema["properties"] = {name: self.plain(part, seen) for name, part in properties.items()}
        for key in ("items", "additionalProperties", "not"):
            if isinstance(schema.get(key), dict):
                schema[key] = self.plain(schema[key], seen)
        if isinstance(schema.get("prefixItems"), list):
            schema["prefixItems"] = [self.plain(part, seen) for part in schema["prefixItems"]]
        return schema


def _repair_invalid(schema: Schema, notes: list[str]) -> None:
    """Remove keywords that the metaschema refuses, one by one."""
    import jsonschema
    from jsonschema.exceptions import best_match

    validator = jsonschema.Draft202012Validator(jsonschema.Draft202012Validator.META_SCHEMA)
    for _ in range(_MOST_REPAIRS):
        error = best_match(validator.iter_errors(schema))
        if error is None:
            return
        path = list(error.absolute_path)
        if not path:
            break
        node: Any = schema
        for part in path[:-1]:
            node = node[part]
        del node[path[-1]]
        notes.append(f"the invalid schema keyword at {'/'.join(map(str, path))} was removed")
    notes.append("the schema was beyond repair and was replaced by an open one")
    schema.clear()
    schema.update({"type": "object", "properties": {}})


def _drop_bad_defaults(schema: Schema, notes: list[str]) -> None:
    import jsonschema

    for name, part in schema["properties"].items():
        if not isinstance(part, dict) or "default" not in part:
            continue
        if not jsonschema.Draft202012Validator(part).is_valid(part["default"]):
            notes.append(f"the default {part['default']!r} of {name} broke its own schema and was removed")
            del part["default"]
