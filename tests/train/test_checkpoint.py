from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from toolverse_jax.config import MeshConfig
from toolverse_jax.errors import CheckpointError
from toolverse_jax.policy import make_mesh
from toolverse_jax.train import Checkpoints, RunRecord, abstract_state, init_state


def record(step):
    return RunRecord(step=step, key=[1, 2], task_stream={"position": step}, config="{}")


@pytest.fixture(scope="module")
def optimizer():
    return optax.adam(0.1)


@pytest.fixture(scope="module")
def state(policy, optimizer):
    return init_state(policy.params, optimizer, make_mesh(MeshConfig()))


def test_what_is_saved_is_restored_bit_for_bit_on_another_mesh(tmp_path, policy, optimizer, state):
    with Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(state, record(3))
    other = make_mesh(MeshConfig(data=2, fsdp=2, tensor=2))
    with Checkpoints(tmp_path) as checkpoints:
        restored, run = checkpoints.restore(abstract_state(policy.params, optimizer, other))
    assert run == record(3)
    for before, after in zip(*map(jax.tree.leaves, (state, restored)), strict=True):
        np.testing.assert_array_equal(before, after)
        assert after.sharding.mesh == other


def test_only_the_newest_steps_are_kept(tmp_path, state):
    with Checkpoints(tmp_path, keep=2) as checkpoints:
        for step in (2, 4, 6):
            checkpoints.save(state, record(step))
        assert checkpoints.latest_step() == 6
    assert sorted(path.name for path in tmp_path.iterdir()) == ["4", "6"]


def test_partly_written_steps_are_ignored(tmp_path, policy, optimizer, state):
    with Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(state, record(2))
    (tmp_path / "4.orbax-checkpoint-tmp" / "state").mkdir(parents=True)
    (tmp_path / "5" / "state").mkdir(parents=True)
    with Checkpoints(tmp_path) as checkpoints:
        assert checkpoints.latest_step() == 2
        _, run = checkpoints.restore(abstract_state(policy.params, optimizer, make_mesh(MeshConfig())))
    assert run.step == 2


def test_a_step_can_be_written_again_over_a_partly_written_one(tmp_path, state):
    (tmp_path / "4" / "state").mkdir(parents=True)
    with Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(state, record(4))
        assert checkpoints.latest_step() == 4


def test_a_folder_without_checkpoints_is_one_sentence(tmp_path, policy, optimizer):
    abstract = abstract_state(policy.params, optimizer, make_mesh(MeshConfig()))
    with Checkpoints(tmp_path) as checkpoints:
        assert checkpoints.latest_step() is None
        with pytest.raises(CheckpointError, match="no checkpoint;"):
            checkpoints.restore(abstract)
        with pytest.raises(CheckpointError, match="no checkpoint step 7;"):
            checkpoints.restore(abstract, 7)


def test_a_checkpoint_of_another_model_is_refused(tmp_path, policy, optimizer, state):
    with Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(state, record(1))
        params = {**policy.params, "embed": jnp.zeros((8, 16))}
        with pytest.raises(
            CheckpointError, match=r"another model: .*embed.* has shape \[40, 16\], expected \[8, 16\]"
        ):
            checkpoints.restore(abstract_state(params, optimizer, make_mesh(MeshConfig())))


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [cut, flip, Path.unlink])
def test_damage_to_any_file_is_one_sentence(tmp_path, policy, optimizer, state, damage):
    abstract = abstract_state(policy.params, optimizer, make_mesh(MeshConfig()))
    with Checkpoints(tmp_path / "whole") as checkpoints:
        checkpoints.save(state, record(1))
        files = [path for path in (tmp_path / "whole" / "1").rglob("*") if path.is_file()]
        assert len(files) > 5
        for path in files:
            before = path.read_bytes()
            damage(path)
            # Without its manifest a step counts as partly written.
            with pytest.raises(CheckpointError, match=r"delete the folder 1|holds no checkpoint") as caught:
                checkpoints.restore(abstract)
            assert "\n" not in str(caught.value)
            path.write_bytes(before)
        assert checkpoints.restore(abstract, 1)[1] == record(1)


def test_reading_leaves_a_step_that_is_being_written(tmp_path, policy, optimizer, state):
    with Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(state, record(1))
    (tmp_path / "2").mkdir()  # What the writer has made so far.
    with Checkpoints(tmp_path, read_only=True) as checkpoints:
        assert checkpoints.latest_step() == 1
        restored = checkpoints.restore(abstract_state(policy.params, optimizer, make_mesh(MeshConfig())))
    assert restored[1] == record(1)
    assert (tmp_path / "2").is_dir()
