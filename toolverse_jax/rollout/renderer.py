"""Renders episodes to token ids for any checkpoint with Qwen framing; after the first prompt it only appends.

The first prompt comes from the tokenizer's own chat template. From then on sampled ids are kept exactly,
and messages are framed around them, so what the policy saw while sampling is what it is trained on.

Words of users, tools and tool descriptions never become control tokens: the text between the control
tokens of the template is encoded by a copy of the tokenizer that knows no added tokens. Where such words
spell no control token, the ids equal `apply_chat_template` of the whole conversation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from toolverse_jax.errors import ToolverseError
from toolverse_jax.rollout.tool_calls import THINK_CLOSE, THINK_OPEN, tool_call_json
from toolverse_jax.types import JSON, ToolCall, ToolSpec

START, END = "<|im_start|>", "<|im_end|>"
END_OF_TEXT = "<|endoftext|>"


class Renderer:
    """Turns messages into token ids and sampled ids into text.

    Args:
        tokenizer: a fast Hugging Face tokenizer whose chat template uses Qwen framing.
        template_options: further variables of the chat template, such as `{"enable_thinking": False}`.

    Raises:
        ToolverseError: the tokenizer or its chat template does not frame messages as Qwen does.
    """

    def __init__(self, tokenizer: Any, *, template_options: dict[str, JSON] | None = None) -> None:
        self.tokenizer = tokenizer
        self._options = dict(template_options or {})
        self._control, self._plain = _split_vocabulary(tokenizer)
        missing = [text for text in (START, END) if text not in self._control]
        if missing:
            raise ToolverseError(
                f"the tokenizer has no token {missing[0]}; use a checkpoint with Qwen chat framing"
            )
        self._boundary = re.compile(
            "|".join(map(re.escape, sorted(self._control, key=lambda text: (-len(text), text))))
        )
        self.end_id = self._control[END]
        """Id of the token that ends a message."""
        self.start_id = self._control[START]
        """Id of the token that starts a message."""
        self._generation_prompt = self._checked_generation_prompt()

    @property
    def stop_ids(self) -> tuple[int, ...]:
        """Ids that end a model call."""
        return tuple(
            dict.fromkeys([self.end_id, *(self._control[t] for t in (END_OF_TEXT,) if t in self._control)])
        )

    @property
    def opens_reasoning(self) -> bool:
        """Whether the generation prompt leaves `<think>` open."""
        return self._generation_prompt.rfind(THINK_OPEN) > self._generation_prompt.rfind(THINK_CLOSE)

    def initial_prompt(self, tools: Sequence[ToolSpec], user: str, system: str = "") -> list[int]:
        """Return the ids of system block, tools, first user message and generation prompt.

        Without `system` the template's own default applies; without tools there is no tool text.
        """
        listed = [tool.to_openai() for tool in tools]
        words = [system, user]
        _map_strings(listed, lambda text: words.append(text) or text)
        shielded = _Shield(words, self._boundary)
        messages = [{"role": "system", "content": shielded.hide(system)}] if system else []
        messages.append({"role": "user", "content": shielded.hide(user)})
        hidden_tools = _map_strings(listed, shielded.hide)
        text = self._render(messages, tools=hidden_tools or None, add_generation_prompt=True)
        return self._encode(text, shielded)

    def user_start(self, prompt: Sequence[int]) -> int:
        """Return the position in a first prompt where the user's message starts."""
        starts = [position for position, token in enumerate(prompt) if token == self.start_id]
        return starts[-2]  # The last one starts the generation prompt; no content contains this id.

    def user_turn(self, text: str) -> list[int]:
        """Return the ids that follow a finished message: newline, user message, generation prompt."""
        shielded = _Shield([text], self._boundary)
        framed = f"\n{START}user\n{shielded.hide(text)}{END}\n{self._generation_prompt}"
        return self._encode(framed, shielded)

    def tool_results(self, contents: Sequence[str], *, generate: bool = True) -> list[int]:
        """Return the ids of the results of one message's calls, folded into one user block.

        Args:
            contents: one text per call, in the order of the calls.
            generate: whether the policy speaks next; false where a user message follows.
        """
        if not contents:
            raise ValueError("tool_results needs at least one result")
        shielded = _Shield(contents, self._boundary)
        body = "".join(
            f"\n<tool_response>\n{shielded.hide(content)}\n</tool_response>" for content in contents
        )
        after = "\n" + self._generation_prompt if generate else ""
        return self._encode(f"\n{START}user{body}{END}{after}", shielded)

    def assistant(self, content: str, calls: Sequence[ToolCall] = ()) -> list[int]:
        """Return the ids an ideal policy samples for a message, stop token included."""
        texts = [content, *(tool_call_json(call) for call in calls)]
        shielded = _Shield(texts, self._boundary)
        hidden = [shielded.hide(text) for text in texts]
        parts = [hidden[0]] if content or not calls else []
        parts += [f"<tool_call>\n{text}\n</tool_call>" for text in hidden[1:]]
        return self._encode("\n".join(parts) + END, shielded)

    def close(self, sampled: Sequence[int]) -> list[int]:
        """Return what is missing of a sampled message: its end token after a length stop, else nothing."""
        return [] if len(sampled) and sampled[-1] == self.end_id else [self.end_id]

    def text(self, sampled: Sequence[int]) -> str:
        """Return the text of sampled ids without their stop token."""
        ids = [int(token) for token in sampled]
        if ids and ids[-1] in self.stop_ids:
            ids.pop()
        return self.decode(ids)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, control tokens spelled out."""
        return self.tokenizer.decode(
            [int(token) for token in ids], skip_special_tokens=False, clean_up_tokenization_spaces=False
        )

    def _encode(self, text: str, shielded: _Shield | None = None) -> list[int]:
        """Encode framed text: control tokens as ids, each run between them as plain text."""
        ids: list[int] = []
        position = 0
        for match in self._boundary.finditer(text):
            ids += self._encode_plain(text[position : match.start()], shielded)
            ids.append(self._control[match.group()])
            position = match.end()
        return ids + self._encode_plain(text[position:], shielded)

    def _encode_plain(self, text: str, shielded: _Shield | None) -> list[int]:
        if not text:
            return []
        return self._plain.encode(shielded.show(text) if shielded else text, add_special_tokens=False).ids

    def _render(self, messages: Sequence[JSON], **options: Any) -> str:
        return self.tokenizer.apply_chat_template(messages, tokenize=False, **(self._options | options))

    def _checked_generation_prompt(self) -> str:
        """Compare the template with the frames of this class and return its generation prompt.

        Raises:
            ToolverseError: the template frames messages in another way.
        """
        call = {"type": "function", "function": {"name": "probe", "arguments": {"a": 1}}}
        messages = [
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": "", "tool_calls": [call, call]},
            {"role": "tool", "content": "two"},
            {"role": "tool", "content": "three"},
            {"role": "assistant", "content": "four"},
            {"role": "user", "content": "five"},
        ]
        try:
            start = self._render(messages[:1])
            prompted = self._render(messages[:1], add_generation_prompt=True)
            whole = self._render(messages)
        except Exception as error:
            raise ToolverseError(f"the chat template of the tokenizer cannot be rendered: {error}") from error
        results = "".join(f"\n<tool_response>\n{text}\n</tool_response>" for text in ("two", "three"))
        frames = (
            f"{START}user\none{END}\n",
            f"\n{START}user{results}{END}\n",
            f"{END}\n{START}user\nfive{END}\n",
        )
        absent = [frame for frame in frames if frame not in whole]
        prompt = prompted.removeprefix(start)
        if absent or not prompted.startswith(start) or not prompt.startswith(f"{START}assistant\n"):
            wanted = absent[0] if absent else f"{START}assistant\n"
            raise ToolverseError(
                f"the chat template does not frame messages as Qwen does: {wanted!r} is missing; "
                "use a Qwen2.5 or Qwen3 checkpoint or a tokenizer made by rollout.train_tokenizer"
            )
        return prompt


class _Shield:
    """Hides control tokens spelled in foreign words from a template and from the boundary search.

    Each such spelling becomes a private-use character that none of the words contains, followed by its
    number and the same character; `show` puts the words back.
    """

    def __init__(self, words: Sequence[str], boundary: re.Pattern[str]) -> None:
        used = set().union(*words)
        self._mark = next(chr(code) for code in range(0xE000, 0xF900) if chr(code) not in used)
        self._boundary = boundary
        self._hidden: list[str] = []

    def hide(self, text: str) -> str:
        # Half of a surrogate pair has no UTF-8 form and becomes a question mark.
        safe = text.encode("utf-8", errors="replace").decode("utf-8")
        return self._boundary.sub(self._replace, safe)

    def show(self, text: str) -> str:
        if self._mark not in text:
            return text
        number = f"{self._mark}(\\d+){self._mark}"
        return re.sub(number, lambda match: self._hidden[int(match.group(1))], text)

    def _replace(self, match: re.Match[str]) -> str:
        self._hidden.append(match.group())
        return f"{self._mark}{len(self._hidden) - 1}{self._mark}"


def _split_vocabulary(tokenizer: Any) -> tuple[dict[str, int], Any]:
    """Return the added tokens with their ids, and a tokenizer that reads their spelling as plain text."""
    from tokenizers import Tokenizer

    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise ToolverseError(
            f"a fast Hugging Face tokenizer is needed, got {type(tokenizer).__name__}; load it with AutoTokenizer"
        )
    if not getattr(tokenizer, "chat_template", None):
        raise ToolverseError("the tokenizer has no chat template; use an instruction-tuned checkpoint")
    state = json.loads(backend.to_str())
    control = {token["content"]: int(token["id"]) for token in state["added_tokens"]}
    state["added_tokens"] = []
    state["post_processor"] = None
    state["truncation"] = state["padding"] = None
    return control, Tokenizer.from_str(json.dumps(state))


def _map_strings(value: JSON, change: Callable[[str], str]) -> JSON:
    """Apply a function to every string and key of a JSON value."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(key): _map_strings(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_map_strings(item, change) for item in value]
    return value
