"""The card of the tiny policy: what it is, how it was trained, what it is for."""

from __future__ import annotations

from collections.abc import Sequence

_CARD = """\
---
license: apache-2.0
library_name: transformers
tags: [tool-use, reinforcement-learning, jax]
---
# The tiny policy of toolverse_jax

A {parameters:,} parameter language model in the Qwen3 architecture that has learned one thing: to use the tools of small
invented environments over a few user turns. It exists so that the whole road, rollouts, credit, updates, checkpoints,
evaluation, can be walked on two CPU cores in minutes. It knows no facts and holds no conversation.

* **Architecture**: Qwen3, {num_layers} layers, width {hidden_size}, {num_heads} query heads and {num_kv_heads} key-value heads of 32,
  feed-forward {intermediate_size}, tied embedding, stored in bfloat16.
* **Tokenizer**: byte-level BPE with {vocab_size} ids trained on the same episodes; Qwen's chat and tool tokens. Its chat template
  lists tools as one-line signatures instead of JSON Schemas.
* **Training data**: golden traces of tasks that `toolverse_jax` generates for its training environments and for toolsets
  drawn from an invented lexicon. No text of any other source. The held-out environments were never shown.
* **Training**: supervised, from nothing, {updates:,} updates and {tokens:,} tokens, seed {seed}; loss per action token at the end
  {action_loss:.3f} nats (one batch). Stages: {stages}.
* **Made by**: `make tiny-policy`. **Measured by**: `toolverse eval --policy tiny ...`; see `docs/quickstart.md`.
* **Limits**: trained on episodes of up to 3 user turns and 1,024 tokens; longer ones are out of its range. English only. It mostly
  chooses the right tool and rarely copies identifiers right; measured figures are in `docs/quickstart.md`.
"""


def tiny_card(*, figures: dict[str, float], sizes: dict[str, int], stages: Sequence[str], seed: int) -> str:
    """Return the card as Markdown.

    Args:
        figures: `parameters`, `updates`, `tokens`, `action_loss` of the training.
        sizes: fields of the recipe that the text names.
        stages: one phrase per stage of the curriculum.
        seed: seed of the training.
    """
    return _CARD.format(
        **{name: value for name, value in sizes.items() if name != "seed"},
        parameters=int(figures["parameters"]),
        updates=int(figures["updates"]),
        tokens=int(figures["tokens"]),
        action_loss=figures["action_loss"],
        stages=", ".join(stages),
        seed=seed,
    )
