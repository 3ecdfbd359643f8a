"""AdamW with clipping and a learning-rate schedule, from OptimizerConfig."""

from __future__ import annotations

from typing import Any

import jax
import optax

from toolverse_jax.config import OptimizerConfig

_NOT_DECAYED = ("norm", "bias")


def make_schedule(config: OptimizerConfig, total_updates: int) -> optax.Schedule:
    """Return the learning rate by update: linear warm-up, then constant or a half cosine to 0.

    Args:
        config: the optimizer section.
        total_updates: optimizer updates of the whole run; the cosine ends there.
    """
    after = max(total_updates - config.warmup_steps, 1)
    main = (
        optax.cosine_decay_schedule(config.learning_rate, after)
        if config.schedule == "cosine"
        else optax.constant_schedule(config.learning_rate)
    )
    if config.warmup_steps == 0:
        return main
    # The first update already moves: rate / warmup, not 0.
    warmup = optax.linear_schedule(
        config.learning_rate / config.warmup_steps, config.learning_rate, max(config.warmup_steps - 1, 1)
    )
    return optax.join_schedules([warmup, main], [config.warmup_steps])


def make_optimizer(config: OptimizerConfig, total_updates: int) -> optax.GradientTransformation:
    """Return clipping by global norm, then AdamW; norms and biases are not decayed."""
    return optax.chain(
        optax.clip_by_global_norm(config.max_grad_norm),
        optax.adamw(
            make_schedule(config, total_updates),
            b1=config.b1,
            b2=config.b2,
            weight_decay=config.weight_decay,
            mask=_decay_mask,
        ),
    )


def _decay_mask(params: Any) -> Any:
    def decays(path: tuple[Any, ...], _: Any) -> bool:
        name = str(getattr(path[-1], "key", path[-1]))
        return not any(word in name for word in _NOT_DECAYED)

    return jax.tree_util.tree_map_with_path(decays, params)
