"""GUST: tool dependency graphs, Dynamic Unlocking Sampling and the tasks made from them."""

from __future__ import annotations

from toolverse_jax.gust.build import TaskBuild, build_tasks
from toolverse_jax.gust.dataset import (
    read_tasks,
    split_environments,
    split_tasks,
    task_from_json,
    task_to_json,
    verify_checksums,
    write_checksums,
    write_tasks,
)
from toolverse_jax.gust.graph import Edge, Ordering, Slot, ToolDependencyGraph, ToolTraits
from toolverse_jax.gust.grounding import ground
from toolverse_jax.gust.inference import infer_graph, infer_graphs
from toolverse_jax.gust.instructions import write_turns
from toolverse_jax.gust.picture import graph_svg
from toolverse_jax.gust.plan import CoverageLedger
from toolverse_jax.gust.replay import ReplayReport, replay, replay_langgraph
from toolverse_jax.gust.sampler import sample_stages, sample_traces, stage_faults
from toolverse_jax.gust.sanitize import Removal, sanitize
from toolverse_jax.gust.stream import TaskStream
from toolverse_jax.gust.trace import GroundedCall, GroundedTrace, GroundedTurn
from toolverse_jax.gust.verification import verify_edges

__all__ = [
    "CoverageLedger",
    "Edge",
    "GroundedCall",
    "GroundedTrace",
    "GroundedTurn",
    "Ordering",
    "Removal",
    "ReplayReport",
    "Slot",
    "TaskBuild",
    "TaskStream",
    "ToolDependencyGraph",
    "ToolTraits",
    "build_tasks",
    "graph_svg",
    "ground",
    "infer_graph",
    "infer_graphs",
    "read_tasks",
    "replay",
    "replay_langgraph",
    "sample_stages",
    "sample_traces",
    "sanitize",
    "split_environments",
    "split_tasks",
    "stage_faults",
    "task_from_json",
    "task_to_json",
    "verify_checksums",
    "verify_edges",
    "write_checksums",
    "write_tasks",
    "write_turns",
]
