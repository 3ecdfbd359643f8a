"""The layout of the package: what loads what, in which direction, and how large a module may be."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "toolverse_jax"
MODULES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}
HEAVY = ("jax", "flax", "optax", "orbax", "torch", "transformers", "vllm", "langgraph")
LIGHT = (
    "toolverse_jax",
    "toolverse_jax.types",
    "toolverse_jax.config",
    "toolverse_jax.cli",
    "toolverse_jax.environment",
    "toolverse_jax.environment.mcp_server",
    "toolverse_jax.reward",
    "toolverse_jax.synthesis",
    "toolverse_jax.synthesis.pipeline",
    "toolverse_jax.synthesis.toucan",
    "toolverse_jax.gust",
    "toolverse_jax.gust.collection",
    "toolverse_jax.rollout",
    "toolverse_jax.evaluation",
    "toolverse_jax.evaluation.report",
    "toolverse_jax.evaluation.run",
)

_BASE = {"types", "errors", "config", "paths", "__version__"}
ALLOWED = {
    "errors": set(),
    "types": set(),
    "config": {"errors"},
    "paths": {"errors"},
    "doctor": _BASE,
    "environment": _BASE,
    "reward": _BASE,
    "rl": {"types", "errors", "config"},
    "policy": {"types", "errors", "config"},
    "synthesis": _BASE | {"environment", "reward"},
    "gust": _BASE | {"environment", "reward", "synthesis"},
    "rollout": _BASE | {"environment", "reward", "synthesis", "gust", "policy"},
    "train": _BASE | {"environment", "reward", "synthesis", "gust", "policy", "rl", "rollout"},
    "evaluation": _BASE | {"environment", "reward", "synthesis", "gust", "policy", "rl", "rollout", "train"},
}
"""What each part may import besides itself; the command line may import everything."""


def test_the_light_parts_load_without_anything_heavy():
    code = (
        "import importlib, json, sys\n"
        "loaded = {}\n"
        f"for name in {LIGHT!r}:\n"
        "    importlib.import_module(name)\n"
        f"    for heavy in {HEAVY!r}:\n"
        "        if heavy in sys.modules:\n"
        "            loaded.setdefault(heavy, name)\n"
        "print(json.dumps(loaded))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {}, "heavy library: first module that loads it"


def test_imports_point_one_way():
    wrong = []
    for name, path in MODULES.items():
        part = _part(name)
        if part in ("cli", ""):
            continue
        assert part in ALLOWED, f"{name} is in no layer; give {part} a place in the order of imports"
        used = {_part(target) for target in _imports(path) if target.startswith("toolverse_jax.")}
        wrong += [f"{name} imports {target}" for target in sorted(used - ALLOWED[part] - {part})]
    assert not wrong


def test_the_layers_have_no_cycle():
    for part, targets in ALLOWED.items():
        for target in targets & ALLOWED.keys():
            assert part not in ALLOWED[target], f"{part} and {target} may import each other"


def test_no_module_needs_itself_to_be_imported():
    graph = {name: _import_time_targets(path) & MODULES.keys() for name, path in MODULES.items()}
    while free := [name for name, targets in graph.items() if not targets & graph.keys()]:
        for name in free:
            del graph[name]
    assert not graph, "these modules are in a cycle of imports, or import one that is"


def test_a_module_is_at_most_500_lines():
    lines = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in MODULES.items()}
    long = {name: count for name, count in lines.items() if count > 500}
    assert not long, "give the second concept of these modules a module of its own"


def test_a_module_says_what_it_is_about():
    trees = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}
    assert not [name for name, tree in trees.items() if not ast.get_docstring(tree)]


def test_no_module_is_a_drawer_for_everything():
    drawers = {"utils", "util", "common", "helpers", "misc"}
    assert not [name for name in MODULES if drawers & set(name.split("."))]


@pytest.mark.parametrize("name", sorted(name for name, path in MODULES.items() if path.stem == "__init__"))
def test_public_names_are_listed_in_order_and_exist(name):
    tree = ast.parse(MODULES[name].read_text(encoding="utf-8"))
    assigned = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    if "__all__" not in assigned:
        assert name == "toolverse_jax", f"{name} has no __all__"
        return
    public = ast.literal_eval(assigned["__all__"])
    assert public == sorted(set(public), key=_sorted_as_ruff), f"__all__ of {name} is not sorted"
    bound = set(assigned)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            bound |= {alias.asname or alias.name for alias in node.names}
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            bound.add(node.name)
    assert set(public) <= bound or "__getattr__" in bound


def _sorted_as_ruff(name: str) -> tuple[int, str]:
    """Constants, then classes, then the rest, as rule RUF022 sorts."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def _part(name: str) -> str:
    """Return the subpackage or top-level module of a dotted name."""
    return [*name.split("."), ""][1]


def _imports(path: Path) -> Iterator[str]:
    yield from _names(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def _names(nodes: Iterator[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            if node.module == "toolverse_jax":
                yield from (f"toolverse_jax.{alias.name}" for alias in node.names)
            elif node.module:
                yield node.module
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _import_time_targets(path: Path) -> set[str]:
    """Return what is imported when the module is: not in functions, not for types only."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    targets = set(_names(iter(nodes)))
    # `from package import module` needs the module, `from package import name` the package.
    return {
        t for t in targets if not any(other.startswith(t + ".") and other in MODULES for other in targets)
    }
