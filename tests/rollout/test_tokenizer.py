"""The tokenizer is a Hugging Face tokenizer in which a word has one spelling in ids."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from toolverse_jax.errors import ToolverseError
from toolverse_jax.rollout import load_tokenizer, train_tokenizer
from toolverse_jax.rollout.tokenizer import CONTROL_TOKENS, MARKER_TOKENS


def ids(tokenizer: Any, text: str) -> list[int]:
    return tokenizer.encode(text, add_special_tokens=False)


def contains(whole: list[int], part: list[int]) -> bool:
    return any(whole[start : start + len(part)] == part for start in range(len(whole)))


@pytest.mark.parametrize("word", ["Heron", "bt_a7x", "paint the keel", "zqv-31"])
def test_a_word_has_the_same_ids_in_prose_and_between_json_quotes(tokenizer: Any, word: str):
    alone = ids(tokenizer, word)
    for text in (f"note {word}, now", json.dumps({"id": word}), f'["{word}"]', f"It is {word}."):
        assert contains(ids(tokenizer, text), alone), text


def test_control_and_marker_tokens_are_single_ids_at_the_end(tokenizer: Any):
    known = [*CONTROL_TOKENS, *MARKER_TOKENS]
    size = len(tokenizer)
    assert [ids(tokenizer, text) for text in known] == [[size - len(known) + n] for n in range(len(known))]
    decoded = tokenizer.decode(ids(tokenizer, "".join(known)), skip_special_tokens=True)
    assert decoded == "".join(MARKER_TOKENS)


@pytest.mark.parametrize("text", ["", " ", "Mün 🚀 名\n\n\tx", "a  b   c", "1234.5", " " * 100 + "x" * 200])
def test_every_text_survives_encoding(tokenizer: Any, text: str):
    assert tokenizer.decode(ids(tokenizer, text), clean_up_tokenization_spaces=False) == text


def test_digits_are_single_tokens(tokenizer: Any):
    assert len(ids(tokenizer, "2031")) == 4


def test_the_vocabulary_holds_the_bytes_and_never_exceeds_its_size(texts: list[str], tmp_path: Path):
    assert len(train_tokenizer(texts, 300, tmp_path / "small")) == 300
    with pytest.raises(ToolverseError, match="vocab_size must be >= 265"):
        train_tokenizer(texts, 264, tmp_path / "too_small")


def test_the_files_do_not_depend_on_the_process(texts: list[str], tmp_path: Path):
    program = "import json,sys; from toolverse_jax.rollout.tokenizer import train_tokenizer as t; t(json.loads(sys.argv[1]), 400, sys.argv[2])"
    train_tokenizer(texts, 400, tmp_path / "here")
    subprocess.run([sys.executable, "-c", program, json.dumps(texts), str(tmp_path / "there")], check=True)
    for file in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        assert (tmp_path / "here" / file).read_bytes() == (tmp_path / "there" / file).read_bytes()


def test_a_model_config_beside_the_tokenizer_does_not_change_it(texts: list[str], tmp_path: Path):
    before = train_tokenizer(texts, 400, tmp_path)
    (tmp_path / "config.json").write_text(
        json.dumps({"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"]})
    )
    after = load_tokenizer(tmp_path)
    text = 'Blue Heron {"name": "Blue Heron", "n": 123}<tool_call>\n'
    assert ids(after, text) == ids(before, text)
    assert after.chat_template == before.chat_template


def test_a_folder_without_a_tokenizer_is_named(tmp_path: Path):
    with pytest.raises(ToolverseError, match="holds no tokenizer_config"):
        load_tokenizer(tmp_path)
