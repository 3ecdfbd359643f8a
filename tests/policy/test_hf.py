"""Checkpoint folders: round trips, and faults that are all named at once."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from toolverse_jax.config import MeshConfig
from toolverse_jax.errors import CheckpointError
from toolverse_jax.policy import (
    Policy,
    abstract_params,
    iterate_hf_tensors,
    load_model_config,
    load_policy,
    make_mesh,
    save_policy_hf,
)
from toolverse_jax.policy.names import flatten, tensor_table, unflatten

GOLDEN = Path(__file__).parent.parent / "golden"
NAMES = ("qwen2", "qwen3", "qwen3_bias")


def _equal(left, right):
    jax.tree.map(np.testing.assert_array_equal, left, right)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shard_bytes", [10**9, 10_000])
def test_loading_and_saving_gives_the_same_tensors_bit_for_bit(tmp_path, name, shard_bytes):
    policy = load_policy(GOLDEN / name)
    save_policy_hf(policy, policy.params, tmp_path / "out", shard_bytes=shard_bytes)
    written = {}
    for file in (tmp_path / "out").glob("*.safetensors"):
        written.update(load_file(file))
    original = load_file(GOLDEN / name / "model.safetensors")
    assert written.keys() == original.keys()
    assert ("lm_head.weight" in written) == (name != "qwen3")
    for key, tensor in original.items():
        assert written[key].dtype == tensor.dtype
        np.testing.assert_array_equal(written[key], tensor)
    _equal(load_policy(tmp_path / "out").params, policy.params)


def test_random_float32_parameters_survive_a_round_trip(tmp_path):
    rng = np.random.default_rng(0)
    config = load_model_config(GOLDEN / "qwen3")
    random = lambda leaf: jnp.asarray(rng.normal(size=leaf.shape), leaf.dtype)  # noqa: E731
    policy = Policy.from_config(config, jax.tree.map(random, abstract_params(config)))
    save_policy_hf(policy, policy.params, tmp_path / "out", dtype="float32")
    again = load_policy(tmp_path / "out")
    _equal(again.params, policy.params)
    assert again.config.dtype == "float32"


@pytest.mark.parametrize("name", NAMES)
def test_the_name_table_is_one_to_one(name):
    table = tensor_table(load_model_config(GOLDEN / name))
    theirs = [tensor for entry in table for tensor in entry.names]
    with safe_open(GOLDEN / name / "model.safetensors", framework="numpy") as file:
        assert sorted(theirs) == sorted(file.keys())
    assert len({entry.path for entry in table}) == len(table)
    for entry in table:
        array = np.arange(np.prod(entry.split)).reshape(
            entry.our_shape[1:] if entry.layers else entry.our_shape
        )
        np.testing.assert_array_equal(entry.to_ours(entry.to_theirs(array)), array)


def test_paths_flatten_and_come_back():
    nested = {"a": 1, "b": {"c": 2, "d": {"e": 3}}}
    assert flatten(nested) == {"a": 1, "b/c": 2, "b/d/e": 3}
    assert unflatten(flatten(nested)) == nested


def test_a_mesh_loads_the_same_values_shard_by_shard():
    mesh = make_mesh(MeshConfig(fsdp=4, tensor=2))
    plain, sharded = load_policy(GOLDEN / "qwen2"), load_policy(GOLDEN / "qwen2", mesh=mesh)
    _equal(sharded.params, plain.params)
    query = sharded.params["layers"]["attention"]["query"]
    assert query.sharding.spec == jax.P(None, "fsdp", "tensor", None)
    assert query.addressable_shards[0].data.shape == (2, 8, 2, 8)


def test_the_push_iterator_yields_what_the_file_holds():
    policy = load_policy(GOLDEN / "qwen3")
    original = load_file(GOLDEN / "qwen3" / "model.safetensors")
    pushed = dict(iterate_hf_tensors(policy, policy.params))
    assert pushed.keys() == original.keys()
    for key, tensor in original.items():
        np.testing.assert_array_equal(pushed[key], tensor)


def test_saving_replaces_the_old_folder_whole_and_copies_the_tokenizer(tmp_path):
    policy = load_policy(GOLDEN / "qwen2")
    source, target = tmp_path / "tokenizer", tmp_path / "out"
    source.mkdir()
    target.mkdir()
    (source / "tokenizer.json").write_text("{}")
    (source / "notes.txt").write_text("not a tokenizer file")
    (target / "stale.txt").write_text("old")
    save_policy_hf(policy, policy.params, target, tokenizer_files_from=source)
    assert sorted(p.name for p in target.iterdir()) == ["config.json", "model.safetensors", "tokenizer.json"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "tokenizer"]


def test_a_failed_save_leaves_the_old_folder(tmp_path):
    policy = load_policy(GOLDEN / "qwen2")
    target = tmp_path / "out"
    save_policy_hf(policy, policy.params, target)
    with pytest.raises(CheckpointError, match=r"tokenizer\.json"):
        save_policy_hf(policy, policy.params, target, tokenizer_files_from=tmp_path)
    assert load_policy(target) == policy
    with pytest.raises(CheckpointError, match="final_norm"):
        save_policy_hf(policy, {**policy.params, "final_norm": jnp.zeros(3)}, target)
    with pytest.raises(ValueError, match="float8"):
        save_policy_hf(policy, policy.params, target, dtype="float8")
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


@pytest.fixture
def sharded(tmp_path):
    policy = load_policy(GOLDEN / "qwen3_bias")
    return save_policy_hf(policy, policy.params, tmp_path / "checkpoint", shard_bytes=10_000)


def test_missing_and_truncated_shards_are_named_together(sharded):
    first, second, *_ = sorted(sharded.glob("*.safetensors"))
    first.unlink()
    second.write_bytes(second.read_bytes()[:-100])
    with pytest.raises(CheckpointError) as fault:
        load_policy(sharded)
    assert f"{first.name} is missing" in str(fault.value)
    assert f"{second.name} is truncated" in str(fault.value)
    assert "tensor " not in str(fault.value)  # the tensors of a missing shard are not faults of their own


def test_missing_extra_and_misshapen_tensors_are_named_together(tmp_path):
    folder = tmp_path / "checkpoint"
    shutil.copytree(GOLDEN / "qwen2", folder)
    tensors = load_file(folder / "model.safetensors")
    tensors.pop("model.layers.1.mlp.up_proj.weight")
    tensors["model.layers.0.mlp.experts.weight"] = np.zeros(3, np.float32)
    tensors["model.norm.weight"] = np.zeros(31, np.float32)
    tensors["model.layers.0.self_attn.q_proj.bias"] = np.zeros(32, np.int32)
    tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = np.zeros(4, np.float32)
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(CheckpointError) as fault:
        load_policy(folder)
    text = str(fault.value)
    for words in (
        "up_proj.weight is missing",
        "experts.weight is not part",
        "norm.weight has shape [31]",
        "I32",
    ):
        assert words in text
    assert "inv_freq" not in text


def test_a_repeated_head_of_a_tied_checkpoint_is_ignored(tmp_path):
    folder = tmp_path / "checkpoint"
    shutil.copytree(GOLDEN / "qwen3", folder)
    tensors = load_file(folder / "model.safetensors")
    tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"]
    save_file(tensors, folder / "model.safetensors")
    _equal(load_policy(folder).params, load_policy(GOLDEN / "qwen3").params)


def test_an_index_that_points_to_the_wrong_shard_is_reported(sharded):
    index = sharded / "model.safetensors.index.json"
    content = json.loads(index.read_text())
    files = sorted(set(content["weight_map"].values()))
    moved = next(key for key, file in content["weight_map"].items() if file == files[0])
    content["weight_map"][moved] = files[1]
    index.write_text(json.dumps(content))
    with pytest.raises(CheckpointError, match=rf"{moved} is not in {files[1]}"):
        load_policy(sharded)


def test_folders_without_a_checkpoint_are_refused(tmp_path):
    with pytest.raises(CheckpointError, match=r"config\.json does not exist"):
        load_policy(tmp_path)
    (tmp_path / "config.json").write_text("[")
    with pytest.raises(CheckpointError, match="not valid JSON"):
        load_policy(tmp_path)
    shutil.copy(GOLDEN / "qwen2" / "config.json", tmp_path / "config.json")
    with pytest.raises(CheckpointError, match=r"model\.safetensors is missing"):
        load_policy(tmp_path)
    (tmp_path / "model.safetensors.index.json").write_text("{}")
    with pytest.raises(CheckpointError, match="no weight_map"):
        load_policy(tmp_path)
