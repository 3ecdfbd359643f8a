from __future__ import annotations

import json

import pytest

from toolverse_jax.errors import ToolsetError
from toolverse_jax.synthesis.toolset import read_toolset, toolset_from_json, toolset_to_json

TOOL = {
    "name": "list_boats",
    "description": "List the boats.",
    "input_schema": {"type": "object", "properties": {}},
}
DOCUMENT = {
    "version": 1,
    "name": "boats",
    "overview": "Boats of a club.",
    "labels": ["domain:sport"],
    "source": "original",
    "licence": "Apache-2.0",
    "tools": [TOOL],
}


def test_a_toolset_survives_writing_and_reading(tmp_path):
    path = tmp_path / "toolset.json"
    path.write_text(json.dumps(DOCUMENT))
    toolset = read_toolset(path)
    assert toolset_to_json(toolset) == DOCUMENT
    assert read_toolset(tmp_path) == toolset


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"tools": []}, "lists no tools"),
        ({"tools": [TOOL, TOOL]}, "lists the tool 'list_boats' twice"),
        ({"tools": [{**TOOL, "input_schema": ["name"]}]}, "a list; a JSON Schema is an object"),
        ({"tools": [{**TOOL, "name": ""}]}, "tool 0 has name ''"),
        ({"tools": ["list_boats"]}, "tool 0 is a string"),
        ({"name": None}, "has name None"),
        ({"version": 7}, "has version 7"),
        ({"labels": "sport"}, "labels are a list of strings"),
    ],
)
def test_a_wrong_toolset_is_refused_in_one_sentence_that_names_the_fault(change, told):
    with pytest.raises(ToolsetError) as caught:
        toolset_from_json({**DOCUMENT, **change}, where="boats.json")
    assert told in str(caught.value)
    assert str(caught.value).startswith("boats.json")


def test_an_unreadable_file_is_named(tmp_path):
    broken, binary = tmp_path / "broken.json", tmp_path / "binary.json"
    broken.write_text("{")
    binary.write_bytes(b"\xff\xfe\x00")
    for path, told in (
        (broken, "not valid JSON"),
        (binary, "not UTF-8"),
        (tmp_path / "no.json", "cannot read"),
    ):
        with pytest.raises(ToolsetError, match=told) as caught:
            read_toolset(path)
        assert str(path) in str(caught.value)
