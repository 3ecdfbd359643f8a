"""The key-value cache of the sampler: dense slots on the device, grown in steps, never copied whole.

Per layer, keys are `[slots, K, H, S]` and values `[slots, K, S, H]`: in this layout both products of
a decoding step read the cache in memory order. Every update donates the old arrays and happens in
place.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, DTypeLike, Int

from toolverse_jax.policy.config import ModelConfig

Arrays = tuple[Array, ...]

_BLOCK = 256
"""Tokens copied at once; every cache length is a multiple of it."""

_WORKSPACES = 4
"""Gathered batches whose memory is kept for the next call."""


def length_bucket(length: int) -> int:
    """Return the cache length that holds `length` tokens: multiples of 256 up to 2048, then 3072, 4096, ...

    Fine steps where contexts are short, since attention reads the cache to the end of the bucket.
    """
    if length <= 2048:
        return max(256, -(-length // 256) * 256)
    power = 1 << (length - 1).bit_length()
    return power * 3 // 4 if length <= power * 3 // 4 else power


def history_bucket(length: int) -> int:
    """Return the length of the copy that a prefill reads: 1024, 2048, 4096, ..., so that few compile."""
    return max(1024, 1 << (length - 1).bit_length())


class Cache:
    """The cache arrays of all slots; rows are addressed by slot number."""

    def __init__(self, config: ModelConfig, *, slots: int, length: int, dtype: DTypeLike):
        self.slots = slots
        self.length = length
        """Tokens that each slot can hold now."""
        self._config = config
        self._dtype = dtype
        self.keys, self.values = _zeros(config, slots, length, dtype)
        self._workspaces: dict[tuple[int, int], tuple[Arrays, Arrays]] = {}

    def resize(self, length: int) -> None:
        """Change the number of tokens per slot; shrinking drops the tokens beyond."""
        if length != self.length:
            self.keys, self.values = _resize(self.keys, self.values, length=length)
            self.length = length

    def write(
        self,
        keys: Arrays,
        values: Arrays,
        slots: np.ndarray,
        positions: np.ndarray,
        rows: np.ndarray,
        count: int,
    ) -> None:
        """Store new columns: row `rows[i]` of the new arrays goes to slot `slots[i]` at `positions[i]`.

        Only the first `count` entries are used. Columns must fit: position + columns <= length.
        """
        self.keys, self.values = _write(
            self.keys, self.values, keys, values, slots, positions, rows, jnp.int32(count)
        )

    def copy(self, sources: np.ndarray, targets: np.ndarray, count: int) -> None:
        """Copy whole slots, one after the other; only the first `count` pairs are used."""
        self.keys, self.values = _copy(self.keys, self.values, sources, targets, jnp.int32(count))

    def gather(self, slots: np.ndarray, length: int, *, used: int | None = None) -> tuple[Arrays, Arrays]:
        """Return the first `length` tokens of some slots as a compact batch.

        The result is valid until the next call with as many slots and the same length: its memory is
        used again, since fresh pages cost more than the copy.

        Args:
            slots: slot of each row.
            length: tokens of the result; may exceed the length of the cache.
            used: tokens that the caller will look at; the rest is not copied and holds junk.
        """
        size = (slots.shape[0], length)
        old = self._workspaces.pop(size, None)
        if old is None:
            old = _zeros(self._config, *size, self._dtype)
            while len(self._workspaces) >= _WORKSPACES:
                del self._workspaces[next(iter(self._workspaces))]  # the one not used for longest
        blocks = -(-min(length if used is None else used, length, self.length) // _BLOCK)
        self._workspaces[size] = _gather(*old, self.keys, self.values, slots, np.int32(blocks))
        return self._workspaces[size]


@functools.partial(jax.jit, static_argnums=(0, 1, 2, 3))
def _zeros(config: ModelConfig, batch: int, length: int, dtype: DTypeLike) -> tuple[Arrays, Arrays]:
    K, H, L = config.num_kv_heads, config.head_dim, config.num_layers
    keys = tuple(jnp.zeros((batch, K, H, length), dtype) for _ in range(L))
    return keys, tuple(jnp.zeros((batch, K, length, H), dtype) for _ in range(L))


@functools.partial(jax.jit, static_argnames="length")
def _resize(keys: Arrays, values: Arrays, *, length: int) -> tuple[Arrays, Arrays]:
    more = max(0, length - keys[0].shape[3])
    grow_key, grow_value = ((0, 0), (0, 0), (0, 0), (0, more)), ((0, 0), (0, 0), (0, more), (0, 0))
    return (
        tuple(jnp.pad(key, grow_key)[..., :length] for key in keys),
        tuple(jnp.pad(value, grow_value)[:, :, :length] for value in values),
    )


@functools.partial(jax.jit, donate_argnums=(0, 1))
def _write(
    keys: Arrays,
    values: Arrays,
    new_keys: Arrays,
    new_values: Arrays,
    slots: Int[Array, " n"],
    positions: Int[Array, " n"],
    rows: Int[Array, " n"],
    count: Array,
) -> tuple[Arrays, Arrays]:
    def store(i: Array, carry: tuple[Arrays, Arrays]) -> tuple[Arrays, Arrays]:
        keys, values = carry
        row = functools.partial(jax.lax.dynamic_slice_in_dim, start_index=rows[i], slice_size=1)
        put = jax.lax.dynamic_update_slice
        at = positions[i]
        keys = tuple(put(k, row(n), (slots[i], 0, 0, at)) for k, n in zip(keys, new_keys, strict=True))
        values = tuple(put(v, row(n), (slots[i], 0, at, 0)) for v, n in zip(values, new_values, strict=True))
        return keys, values

    return jax.lax.fori_loop(0, count, store, (keys, values))


@functools.partial(jax.jit, donate_argnums=(0, 1))
def _copy(
    keys: Arrays, values: Arrays, sources: Int[Array, " n"], targets: Int[Array, " n"], count: Array
) -> tuple[Arrays, Arrays]:
    def copy_slot(i: Array, arrays: tuple[Arrays, Arrays]) -> tuple[Arrays, Arrays]:
        def move(array: Array) -> Array:
            row = jax.lax.dynamic_slice_in_dim(array, sources[i], 1)
            return jax.lax.dynamic_update_slice_in_dim(array, row, targets[i], axis=0)

        return jax.tree.map(move, arrays)

    return jax.lax.fori_loop(0, count, copy_slot, (keys, values))


@functools.partial(jax.jit, donate_argnums=(0, 1))
def _gather(
    work_keys: Arrays,
    work_values: Arrays,
    keys: Arrays,
    values: Arrays,
    slots: Int[Array, " n"],
    blocks: Array,
) -> tuple[Arrays, Arrays]:
    """Copy `blocks` blocks of every slot in turn."""
    _, K, H, _ = keys[0].shape

    def fetch(i: Array, work: tuple[Arrays, Arrays]) -> tuple[Arrays, Arrays]:
        row, first = i // blocks, i % blocks * _BLOCK
        cut, put = jax.lax.dynamic_slice, jax.lax.dynamic_update_slice

        def move_key(target: Array, source: Array) -> Array:
            return put(target, cut(source, (slots[row], 0, 0, first), (1, K, H, _BLOCK)), (row, 0, 0, first))

        def move_value(target: Array, source: Array) -> Array:
            return put(target, cut(source, (slots[row], 0, first, 0), (1, K, _BLOCK, H)), (row, 0, first, 0))

        work_keys, work_values = work
        return (
            tuple(map(move_key, work_keys, keys)),
            tuple(map(move_value, work_values, values)),
        )

    return jax.lax.fori_loop(0, slots.shape[0] * blocks, fetch, (work_keys, work_values))
