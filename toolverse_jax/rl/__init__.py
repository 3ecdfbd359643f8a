"""Array maths of reinforcement learning: advantages, packing and losses."""

from __future__ import annotations

from toolverse_jax.rl.advantages import (
    constant_columns,
    future_values,
    grpo_advantages,
    normalise_over_group,
    tara_advantages,
)
from toolverse_jax.rl.losses import cross_entropy, policy_loss
from toolverse_jax.rl.packing import arrange_rows, microbatches, pack, pack_supervised
from toolverse_jax.rl.scatter import scatter_turn_advantages

__all__ = [
    "arrange_rows",
    "constant_columns",
    "cross_entropy",
    "future_values",
    "grpo_advantages",
    "microbatches",
    "normalise_over_group",
    "pack",
    "pack_supervised",
    "policy_loss",
    "scatter_turn_advantages",
    "tara_advantages",
]
