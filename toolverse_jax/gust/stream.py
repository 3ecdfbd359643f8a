"""An endless, shuffled, sharded stream of tasks that resumes exactly where it stopped."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from toolverse_jax.errors import TaskError
from toolverse_jax.types import JSON, Task

if TYPE_CHECKING:
    import grain

_STATE_VERSION = 1


class TaskStream(Iterator[Task]):
    """Yields tasks forever, each epoch in another order.

    All shards read one global order, the concatenation of shuffled epochs, and shard `i` of `n` takes
    its positions `i, i + n, i + 2n, ...`. So shards stay in step, and over any stretch that all have
    read, no task is lost or doubled, even where `n` does not divide the number of tasks.
    """

    def __init__(
        self, tasks: Sequence[Task], *, seed: int, shard_index: int = 0, shard_count: int = 1
    ) -> None:
        """Describe the stream; nothing is read until the first task is asked for.

        Args:
            tasks: the tasks of one epoch; every shard gives the same list in the same order.
            seed: seed of the shuffle.
            shard_index: which shard this process reads, in `[0, shard_count)`.
            shard_count: number of processes that read.

        Raises:
            ValueError: no tasks, or a shard outside its range.
        """
        if not tasks:
            raise ValueError("a task stream needs at least one task, got none")
        if not 0 <= shard_index < shard_count:
            raise ValueError(f"shard_index must be in [0, {shard_count}), got {shard_index}")
        self.tasks = tasks
        self.seed = seed
        self.shard_index = shard_index
        self.shard_count = shard_count
        self.position = 0
        """Number of tasks this shard has yielded."""
        self._indices: grain.DatasetIterator[int] | None = None

    @property
    def epoch(self) -> int:
        """Zero-based epoch that the next task belongs to."""
        return (self.position * self.shard_count + self.shard_index) // len(self.tasks)

    def __next__(self) -> Task:
        return self.tasks[self.next_index()]

    def next_index(self) -> int:
        """Return the index of the next task instead of the task, and move on."""
        if self._indices is None:
            self._indices = self._iterate()
        index = int(next(self._indices))
        self.position += 1
        return index

    def get_state(self) -> dict[str, JSON]:
        """Return a JSON object from which `set_state` resumes."""
        return {
            "version": _STATE_VERSION,
            "position": self.position,
            "seed": self.seed,
            "shard_index": self.shard_index,
            "shard_count": self.shard_count,
            "tasks": self._fingerprint(),
        }

    def set_state(self, state: dict[str, JSON]) -> None:
        """Continue after the last task yielded before `get_state`.

        Raises:
            TaskError: the state is of another stream: other tasks, seed or shards.
        """
        expected = self.get_state()
        for name, value in expected.items():
            if name != "position" and state.get(name) != value:
                raise TaskError(
                    f"the task stream cannot resume: {name} was {state.get(name)!r} when the run stopped and is {value!r} now; "
                    "resume with the same tasks, seed and number of hosts, or start a new run"
                )
        position = state.get("position")
        if not isinstance(position, int) or isinstance(position, bool) or position < 0:
            raise TaskError(f"the task stream cannot resume: position is {position!r}; start a new run")
        self.position = position
        # The iterator reads ahead, so it is made anew and only after its position is known.
        self._indices = None

    def _iterate(self) -> grain.DatasetIterator[int]:
        import grain

        order = grain.MapDataset.range(len(self.tasks)).shuffle(seed=self.seed % 2**32).repeat()
        shard = order[self.shard_index :: self.shard_count]
        # Reading an index costs nothing: no threads, no buffer.
        options = grain.ReadOptions(num_threads=0, prefetch_buffer_size=0)
        iterator = iter(shard.to_iter_dataset(options))
        state = iterator.get_state()
        iterator.set_state({**state, "next_index": self.position})
        return iterator

    def _fingerprint(self) -> str:
        digest = hashlib.blake2b(digest_size=8)
        for task in self.tasks:
            digest.update(f"{len(task.id)}:{task.id}".encode())
        return digest.hexdigest()
