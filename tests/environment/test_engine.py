from __future__ import annotations

import subprocess
import sys

from toolverse_jax.environment import Environment
from toolverse_jax.environment.engine import CACHED_SEEDS


def test_importing_environments_loads_no_accelerator_library() -> None:
    program = (
        "import sys, toolverse_jax.environment\n"
        "heavy = {'jax', 'flax', 'torch', 'transformers', 'vllm', 'mcp', 'langgraph', 'networkx', 'grain'}\n"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_tools_carry_their_schemas_verbatim(boatyard: Environment, spec_data) -> None:
    assert [tool.name for tool in boatyard.tools] == [tool["name"] for tool in spec_data["tools"]]
    assert [tool.input_schema for tool in boatyard.tools] == [
        tool["input_schema"] for tool in spec_data["tools"]
    ]
    assert all(tool.output_schema for tool in boatyard.tools)


def test_an_output_schema_of_the_author_wins(spec_data, build) -> None:
    spec_data["tools"][0]["output_schema"] = {"type": "object"}
    assert build(spec_data).tools[0].output_schema == {"type": "object"}


def test_forgotten_start_states_are_rebuilt_alike(spec_data, build) -> None:
    spec_data["entities"] = spec_data["entities"][:1]
    spec_data["singletons"] = []
    tool = {"name": "get-mooring", "description": "", "input_schema": {"type": "object", "properties": {}}}
    spec_data["tools"] = [tool]
    spec_data["operations"] = [{"tool": "get-mooring", "verb": "other", "output": {"shape": "scalar"}}]
    environment = build(spec_data)
    before = environment.session(0).rows("mooring")
    kept = environment.database(0)
    for seed in range(1, CACHED_SEEDS + 1):
        environment.session(seed)
    assert environment.database(0) is not kept
    assert environment.session(0).rows("mooring") == before
