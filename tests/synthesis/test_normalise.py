from __future__ import annotations

import jsonschema
import pytest

from toolverse_jax.synthesis.normalise import NormalisedTool, normalise_toolset
from toolverse_jax.types import Toolset, ToolSpec


def _tool(schema: dict, description: str = "", name: str = "make_cup") -> NormalisedTool:
    spec = ToolSpec(name=name, description=description, input_schema=schema)
    (tool,) = normalise_toolset(Toolset(name="cups", tools=(spec,))).tools
    jsonschema.Draft202012Validator.check_schema(tool.input_schema)
    assert tool.input_schema["type"] == "object"
    assert tool.raw_schema == schema
    return tool


def test_a_plain_schema_is_left_alone():
    schema = {
        "type": "object",
        "properties": {"size": {"type": "integer", "default": 3}},
        "required": ["size"],
    }
    tool = _tool(schema, "Make a cup.")
    assert (tool.input_schema, tool.description, tool.changes) == (schema, "Make a cup.", ())


@pytest.mark.parametrize(
    ("part", "plain", "note"),
    [
        (
            {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
            {"type": "string"},
            "nullable unions",
        ),
        ({"type": ["integer", "null"]}, {"type": "integer"}, "nullable type lists"),
        ({"type": ["array", "string"]}, {"type": ["array", "string"]}, "several types"),
        ({"title": "Size", "type": "string"}, {"type": "string"}, "titles"),
        ({"type": "integer", "default": "big"}, {"type": "integer"}, "broke its own schema"),
        ({"type": "string", "minLength": "x"}, {"type": "string"}, "invalid schema keyword"),
        ({"type": "string", "required": True}, {"type": "string"}, "invalid schema keyword"),
        (
            {"allOf": [{"type": "string"}], "description": "d"},
            {"type": "string", "description": "d"},
            "merged",
        ),
    ],
)
def test_a_parameter_becomes_plain_with_a_note(part, plain, note):
    tool = _tool({"type": "object", "properties": {"size": part}})
    assert tool.properties["size"] == plain
    assert any(note in change for change in tool.changes)


def test_references_are_resolved_and_cycles_are_cut():
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}, "word": {"type": "string"}}}
    tool = _tool(
        {"type": "object", "properties": {"list": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": node}}
    )
    inner = tool.properties["list"]["properties"]
    assert inner == {"next": {"type": "object"}, "word": {"type": "string"}}
    assert "$ref" not in str(tool.input_schema)
    assert any("cyclic reference #/$defs/Node" in change for change in tool.changes)


def test_a_reference_that_leads_nowhere_becomes_an_open_schema():
    tool = _tool({"type": "object", "properties": {"cup": {"$ref": "https://example.test/x.json"}}})
    assert tool.properties["cup"] == {}
    assert any("leads nowhere" in change for change in tool.changes)


def test_a_schema_nested_inside_its_own_properties_is_unwrapped():
    inner = {"type": "object", "properties": {"gem": {"type": "string"}}, "required": ["gem"]}
    tool = _tool({"type": "object", "properties": inner})
    assert (tool.properties, tool.required) == ({"gem": {"type": "string"}}, ("gem",))


def test_missing_root_type_and_unknown_required_names_are_mended():
    tool = _tool({"required": ["ghost"]})
    assert tool.input_schema == {"type": "object", "properties": {}}
    assert len(tool.changes) == 2


def test_page_texts_are_no_descriptions():
    assert _tool({}, "Deploy Server\n now and Try in Playground").description == ""
    assert _tool({}, "Description not available").description == ""


def test_parameter_descriptions_are_taken_from_a_docstring():
    text = "Make a cup.\n\nArgs:\n    size (int): how large,\n        in millilitres\n    colour: of the glaze\n\nReturns:\n    The cup."
    tool = _tool({"type": "object", "properties": {"size": {}, "colour": {"description": "known"}}}, text)
    assert tool.properties["size"]["description"] == "how large, in millilitres"
    assert tool.properties["colour"]["description"] == "known"
    assert tool.description == "Make a cup.\n\nReturns:\n    The cup.".replace("    ", " ")


def test_scraped_names_become_strings_and_page_texts_are_dropped():
    scraped = {
        "parameters": [
            {"name": "size", "required": True},
            {"name": "True"},
            {"name": "make_cup"},
            {"name": "a b"},
        ]
    }
    tool = _tool(scraped)
    assert tool.input_schema == {
        "type": "object",
        "properties": {"size": {"type": "string"}},
        "required": ["size"],
    }
    assert any(change.startswith("scraped") for change in tool.changes)
    toolset = Toolset(name="cups", tools=(ToolSpec(name="make_cup", description="", input_schema=scraped),))
    assert normalise_toolset(toolset).scraped


def test_a_second_tool_of_the_same_name_is_dropped_with_a_note():
    spec = ToolSpec(name="make_cup", description="", input_schema={})
    normalised = normalise_toolset(Toolset(name="cups", tools=(spec, spec)))
    assert len(normalised.tools) == 1 and len(normalised.changes) == 1
