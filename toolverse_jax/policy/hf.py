"""Reads and writes Hugging Face checkpoint folders (config.json and safetensors, one file or shards)."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax.sharding import Mesh
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from toolverse_jax.errors import CheckpointError
from toolverse_jax.policy.config import ModelConfig
from toolverse_jax.policy.model import Params, Policy, abstract_params
from toolverse_jax.policy.names import TensorMap, flatten, tensor_table, unflatten
from toolverse_jax.policy.sharding import param_shardings

_SINGLE = "model.safetensors"
_INDEX = "model.safetensors.index.json"
_DTYPES: dict[str, Any] = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16, "float32": np.float32}
_STORED_DTYPES = ("BF16", "F16", "F32")
_TOKENIZER_FILES = (
    "added_tokens.json",
    "chat_template.jinja",
    "generation_config.json",
    "merges.txt",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.json",
)
_SHARD_BYTES = 4 * 1024**3


def load_model_config(folder: str | Path) -> ModelConfig:
    """Read the config.json of a checkpoint folder.

    Raises:
        CheckpointError: it is missing, is not JSON, or names an architecture we do not run.
    """
    path = Path(folder) / "config.json"
    config = _read_json(path, "give the folder of a Hugging Face checkpoint")
    try:
        return ModelConfig.from_hf(config)
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from error


def load_policy(folder: str | Path, *, dtype: Any = jnp.float32, mesh: Mesh | None = None) -> Policy:
    """Load a Qwen2 or Qwen3 checkpoint.

    Args:
        folder: holds config.json and model.safetensors, or an index and its shards.
        dtype: type of the parameters in memory; training wants float32 masters.
        mesh: place every parameter by the partition rules, each device reading its own part.

    Raises:
        CheckpointError: names every fault at once: missing or truncated files, tensors that are
            missing, left over or of a wrong shape or type.
    """
    folder = Path(folder)
    config = load_model_config(folder)
    table = tensor_table(config)
    with _Tensors(folder) as tensors:
        faults = tensors.faults + _compare(config, table, tensors)
        if faults:
            shown = "; ".join(faults[:20]) + (f"; and {len(faults) - 20} more" if len(faults) > 20 else "")
            raise CheckpointError(f"checkpoint {folder} cannot be loaded: {shown}")
        shardings = {} if mesh is None else flatten(param_shardings(abstract_params(config), mesh))
        flat = {
            entry.path: _load(entry, tensors, np.dtype(dtype), shardings.get(entry.path)) for entry in table
        }
    return Policy.from_config(config, unflatten(flat))


def save_policy_hf(
    policy: Policy,
    params: Params,
    folder: str | Path,
    *,
    dtype: str | None = None,
    tokenizer_files_from: str | Path | None = None,
    shard_bytes: int = _SHARD_BYTES,
) -> Path:
    """Write parameters as a checkpoint that transformers and vLLM load; replaces `folder` at once.

    Everything is written into a folder beside the target, which then takes its name, so a reader
    sees the old checkpoint or the new one. A tied policy writes no lm_head. All arrays must be
    addressable from this process.

    Args:
        policy: gives the configuration; its own `params` are not read.
        params: parameters to write.
        folder: the checkpoint folder.
        dtype: type on disk (`float32`, `bfloat16`, `float16`); default: the configuration's.
        tokenizer_files_from: folder whose tokenizer files are copied.
        shard_bytes: split into shards above this size.

    Raises:
        CheckpointError: the parameters do not fit the configuration, or no tokenizer file is found.
    """
    folder = Path(folder)
    stored = dtype or policy.config.dtype
    if stored not in _DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(_DTYPES)}, got {stored!r}")
    table = tensor_table(policy.config)
    flat = flatten(params)
    shapes = {path: tuple(leaf.shape) for path, leaf in flat.items()}
    if shapes != (expected := {entry.path: entry.our_shape for entry in table}):
        different = sorted(path for path in shapes | expected if shapes.get(path) != expected.get(path))
        raise CheckpointError(f"parameters do not fit the configuration: {', '.join(different)}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        temporary.chmod(0o755)
        _write_tensors(temporary, table, flat, np.dtype(_DTYPES[stored]), shard_bytes)
        content = {**policy.config.to_hf(), "dtype": stored, "torch_dtype": stored}
        _write_json(temporary / "config.json", content)
        if tokenizer_files_from is not None:
            _copy_tokenizer(Path(tokenizer_files_from), temporary)
        _replace_folder(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return folder


def iterate_hf_tensors(
    policy: Policy, params: Params, *, dtype: str = "bfloat16"
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield (Hugging Face name, tensor) pairs, one layer at a time, for a push of weights to a server."""
    flat = flatten(params)
    for entry in tensor_table(policy.config):
        yield from _their_tensors(entry, flat[entry.path], np.dtype(_DTYPES[dtype]))


class _Tensors:
    """The tensors of a checkpoint folder by name, over all its files; collects faults while opening."""

    def __init__(self, folder: Path):
        self.faults: list[str] = []
        self._files: list[Any] = []
        self._slices: dict[str, Any] = {}
        index_path = folder / _INDEX
        if index_path.is_file() and not (folder / _SINGLE).is_file():
            weight_map = _read_json(index_path, "restore the index").get("weight_map")
            if not isinstance(weight_map, dict) or not weight_map:
                raise CheckpointError(f"{index_path} has no weight_map; restore the index of the checkpoint")
            for name in sorted(set(weight_map.values())):
                self._open(folder / name, [key for key, file in weight_map.items() if file == name])
        else:
            self._open(folder / _SINGLE, None)

    def __enter__(self) -> _Tensors:
        return self

    def __exit__(self, *_: object) -> None:
        self._slices.clear()
        for file in self._files:
            file.__exit__(None, None, None)

    def __getitem__(self, name: str) -> Any:
        return self._slices[name]

    @property
    def names(self) -> set[str]:
        return set(self._slices)

    def _open(self, path: Path, promised: list[str] | None) -> None:
        if not path.is_file():
            self.faults.append(f"file {path.name} is missing")
            self._slices.update(dict.fromkeys(promised or ()))
            return
        try:
            file = safe_open(str(path), framework="numpy").__enter__()
        except (SafetensorError, OSError) as error:
            self.faults.append(f"file {path.name} is truncated or corrupt ({error})")
            self._slices.update(dict.fromkeys(promised or ()))
            return
        self._files.append(file)
        found = set(file.keys())
        for name in sorted(set(promised or ()) - found):
            self.faults.append(f"tensor {name} is not in {path.name}, where the index puts it")
            self._slices[name] = None
        self._slices.update({name: file.get_slice(name) for name in sorted(found)})


def _compare(config: ModelConfig, table: tuple[TensorMap, ...], tensors: _Tensors) -> list[str]:
    """Return what is wrong between the names and shapes we need and those on disk."""
    if not tensors.names:
        return []
    faults: list[str] = []
    expected = {name: entry.shape for entry in table for name in entry.names}
    for name, shape in expected.items():
        if name not in tensors.names:
            faults.append(f"tensor {name} is missing")
        elif (found := tensors[name]) is not None:
            if tuple(found.get_shape()) != shape:
                faults.append(
                    f"tensor {name} has shape {list(found.get_shape())}, config.json implies {list(shape)}"
                )
            if found.get_dtype() not in _STORED_DTYPES:
                faults.append(
                    f"tensor {name} is of type {found.get_dtype()}, not {' or '.join(_STORED_DTYPES)}"
                )
    # Some exporters repeat the tied head, and old ones store the rotary table; both are redundant.
    redundant = {"lm_head.weight"} if config.tie_word_embeddings else set()
    extra = sorted(tensors.names - expected.keys() - redundant)
    faults += [
        f"tensor {name} is not part of a {config.model_type} model"
        for name in extra
        if "inv_freq" not in name
    ]
    return faults


def _load(entry: TensorMap, tensors: _Tensors, dtype: np.dtype, sharding: Any) -> jax.Array:
    def read(index: tuple[slice, ...]) -> np.ndarray:
        layers, rest = (index[0], index[1:]) if entry.layers else (slice(0, 1), index)
        parts = [entry.read(tensors[name], rest) for name in entry.names[layers]]
        if not entry.layers:
            return np.ascontiguousarray(parts[0], dtype)
        out = np.empty((len(parts), *parts[0].shape), dtype)
        for row, part in zip(out, parts, strict=True):
            row[...] = part
        return out

    everything = tuple(slice(0, size) for size in entry.our_shape)
    if sharding is None:
        return jnp.array(read(everything))
    return jax.make_array_from_callback(entry.our_shape, sharding, lambda index: read(index or everything))


def _their_tensors(entry: TensorMap, leaf: Any, dtype: np.dtype) -> Iterator[tuple[str, np.ndarray]]:
    layers = leaf if entry.layers else [leaf]
    for name, layer in zip(entry.names, layers, strict=True):
        yield name, entry.to_theirs(np.asarray(layer).astype(dtype))


def _write_tensors(
    folder: Path, table: tuple[TensorMap, ...], flat: Mapping[str, Any], dtype: np.dtype, shard_bytes: int
) -> None:
    shards: list[list[tuple[TensorMap, str, int]]] = [[]]
    room = shard_bytes
    for entry in table:
        size = int(np.prod(entry.shape)) * dtype.itemsize
        for layer, name in enumerate(entry.names):
            if size > room and shards[-1]:
                shards.append([])
                room = shard_bytes
            shards[-1].append((entry, name, layer))
            room -= size
    weight_map: dict[str, str] = {}
    for number, shard in enumerate(shards, start=1):
        file = _SINGLE if len(shards) == 1 else f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        content = {
            name: entry.to_theirs(
                np.asarray(flat[entry.path][layer] if entry.layers else flat[entry.path]).astype(dtype)
            )
            for entry, name, layer in shard
        }
        save_file(content, str(folder / file), metadata={"format": "pt"})
        weight_map.update(dict.fromkeys(content, file))
    if len(shards) > 1:
        total = sum(int(np.prod(entry.our_shape)) for entry in table) * dtype.itemsize
        _write_json(folder / _INDEX, {"metadata": {"total_size": total}, "weight_map": weight_map})


def _copy_tokenizer(source: Path, target: Path) -> None:
    present = [name for name in _TOKENIZER_FILES if (source / name).is_file()]
    if "tokenizer.json" not in present and "vocab.json" not in present:
        raise CheckpointError(f"no tokenizer.json or vocab.json in {source}; give a folder with a tokenizer")
    for name in present:
        shutil.copyfile(source / name, target / name)


def _replace_folder(temporary: Path, folder: Path) -> None:
    if not folder.exists():
        temporary.rename(folder)
        return
    # A non-empty folder cannot be renamed over, so the old one steps aside first.
    aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.old.", dir=folder.parent))
    old = folder.rename(aside / "old")
    try:
        temporary.rename(folder)
    except OSError:
        old.rename(folder)
        raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _read_json(path: Path, advice: str) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CheckpointError(f"{path} does not exist; {advice}") from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path} is not valid JSON ({error}); {advice}") from error
    if not isinstance(content, dict):
        raise CheckpointError(f"{path} does not hold a JSON object; {advice}")
    return content


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", encoding="utf-8")
