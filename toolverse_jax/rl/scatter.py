"""From one advantage per turn to one per token, in packed rows."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

Array = jax.Array | np.ndarray


@jax.jit
def scatter_turn_advantages(
    table: Float[Array, "rows segments_1 turns_1"],
    segment_ids: Int[Array, "rows length"],
    turn_ids: Int[Array, "rows length"],
    loss_mask: Bool[Array, "rows length"],
) -> Float[jax.Array, "rows length"]:
    """Give each loss token the advantage of its segment's turn; every other token gets 0.

    Args:
        table: advantage by segment and turn of each row; both count from 1, and row 0 (padding) and
            column 0 (system prompt) are unused.
        segment_ids: 1-based segment of each token, 0 on padding.
        turn_ids: 1-based user turn of each token, 0 for the system prompt and padding.
        loss_mask: true on tokens that carry loss.

    Returns:
        Advantage of each token, float32.
    """
    rows, _, columns = table.shape
    flat = jnp.reshape(table, (rows, -1)).astype(jnp.float32)
    index = segment_ids.astype(jnp.int32) * columns + turn_ids.astype(jnp.int32)
    values = jnp.take_along_axis(flat, index, axis=1)
    return jnp.where(loss_mask, values, 0.0)
