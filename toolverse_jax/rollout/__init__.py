"""Plays episodes: renderer, tool-call reader, engines, agent loop, users, collector. Loads without JAX."""

from __future__ import annotations

from toolverse_jax.rollout.agent_loop import run_episode
from toolverse_jax.rollout.collector import Collection, collect, collect_async
from toolverse_jax.rollout.engine import Generation, GenerationRequest, RolloutEngine, call_seed
from toolverse_jax.rollout.episode_record import check_trajectory
from toolverse_jax.rollout.limits import EpisodeLimits, Sampling
from toolverse_jax.rollout.renderer import Renderer
from toolverse_jax.rollout.scripted_engine import ScriptedEngine
from toolverse_jax.rollout.supervised import golden_script, golden_trajectory
from toolverse_jax.rollout.tokenizer import load_tokenizer, train_tokenizer
from toolverse_jax.rollout.tool_calls import (
    ParsedToolCalls,
    ToolCallError,
    format_tool_call,
    parse_tool_calls,
)
from toolverse_jax.rollout.users import ScriptedUser, User

__all__ = [
    "Collection",
    "EpisodeLimits",
    "Generation",
    "GenerationRequest",
    "ParsedToolCalls",
    "Renderer",
    "RolloutEngine",
    "Sampling",
    "ScriptedEngine",
    "ScriptedUser",
    "ToolCallError",
    "User",
    "call_seed",
    "check_trajectory",
    "collect",
    "collect_async",
    "format_tool_call",
    "golden_script",
    "golden_trajectory",
    "load_tokenizer",
    "parse_tool_calls",
    "run_episode",
    "train_tokenizer",
]
