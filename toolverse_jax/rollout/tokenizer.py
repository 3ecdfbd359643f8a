"""Trains a byte-level BPE tokenizer with Qwen's control tokens, in Hugging Face format.

Text is cut into runs of letters, single digits and runs of everything else *including spaces*. So a
word has the same token ids in prose and between JSON quotes, and a small policy can copy names and
identifiers from one to the other.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from toolverse_jax.errors import ToolverseError
from toolverse_jax.rollout.chat_template import CHAT_TEMPLATE

CONTROL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
"""Special tokens: no text ever contains them."""
MARKER_TOKENS = (
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
    "<think>",
    "</think>",
)
"""Single tokens that are not special, as in Qwen3: decoding keeps them."""

_SPLIT = r"\p{L}{1,48}|\p{N}|[^\p{L}\p{N}]{1,24}"
_NUM_BYTES = 256


def train_tokenizer(texts: Iterable[str], vocab_size: int, folder: str | Path) -> Any:
    """Train a tokenizer on `texts`, save it into `folder` and return it loaded.

    The files are those of Hugging Face (`tokenizer.json`, `tokenizer_config.json`,
    `chat_template.jinja`); the same texts give the same bytes.

    Args:
        texts: training texts; control and marker tokens in them count as boundaries.
        vocab_size: number of ids, control and marker tokens included. A small corpus may give fewer.
        folder: created where it is missing.

    Raises:
        ToolverseError: `vocab_size` cannot hold the bytes and the control tokens.
    """
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    smallest = _NUM_BYTES + len(CONTROL_TOKENS) + len(MARKER_TOKENS)
    if vocab_size < smallest:
        raise ToolverseError(f"vocab_size must be >= {smallest} to hold every byte, got {vocab_size}")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(  # type: ignore[assignment]
        [
            pre_tokenizers.Split(Regex(_SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()  # type: ignore[assignment]
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - len(CONTROL_TOKENS) - len(MARKER_TOKENS),
        min_frequency=2,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_without_markers(texts), trainer)
    # Added after training, so they take the last ids and no merge can produce them.
    tokenizer.add_special_tokens(
        [AddedToken(text, special=True, normalized=False) for text in CONTROL_TOKENS]
    )
    tokenizer.add_tokens([AddedToken(text, special=False, normalized=False) for text in MARKER_TOKENS])
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        clean_up_tokenization_spaces=False,
        chat_template=CHAT_TEMPLATE,
    )
    Path(folder).mkdir(parents=True, exist_ok=True)
    wrapped.save_pretrained(str(folder))
    return load_tokenizer(folder)


def load_tokenizer(folder: str | Path) -> Any:
    """Load the tokenizer of a checkpoint folder, never from the network.

    Raises:
        ToolverseError: the folder holds no tokenizer.
    """
    from transformers import AutoTokenizer

    if not (Path(folder) / "tokenizer_config.json").is_file():
        raise ToolverseError(
            f"{os.fspath(folder)} holds no tokenizer_config.json; give the folder of a Hugging Face checkpoint"
        )
    try:
        return AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        raise ToolverseError(f"the tokenizer in {os.fspath(folder)} cannot be loaded: {error}") from error


def _without_markers(texts: Iterable[str]) -> Iterable[str]:
    """Cut texts at control and marker tokens, which are no material for merges."""
    import re

    boundary = re.compile("|".join(map(re.escape, CONTROL_TOKENS + MARKER_TOKENS)))
    for text in texts:
        yield from (piece for piece in boundary.split(text) if piece)
