"""Trains the tiny policy that the project ships, from nothing, by supervised learning on golden traces.

Tokenizer, then drills (copying random tokens, looking random records up), then episodes of one, two and
three user turns; part of them in the shipped training environments, part in invented ones, so that using
tools is learned and not only these tools. Deterministic by seed on one machine. Run as `python -m toolverse_jax.train.tiny_policy --out DIR`.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import jax

from toolverse_jax.config import OptimizerConfig
from toolverse_jax.errors import ToolverseError
from toolverse_jax.paths import envs_dir
from toolverse_jax.policy import ModelConfig, Params, init_policy, save_policy_hf
from toolverse_jax.rollout import Renderer, golden_trajectory
from toolverse_jax.rollout.tokenizer import train_tokenizer
from toolverse_jax.train.supervised import SupervisedTrainer
from toolverse_jax.train.tiny_card import tiny_card
from toolverse_jax.train.warm_start_material import Material, build_material, copy_examples, recall_examples
from toolverse_jax.types import Trajectory


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stage:
    """A part of the curriculum."""

    drill: Literal["copy", "recall", "none"] = "none"
    """A drill instead of episodes."""
    drill_length: int = 0
    """Tokens of one copy drill."""
    updates: int
    row_length: int = 1024
    rows: int = 8
    max_turns: int = 0
    """User turns shown of each task."""
    recall_share: float = 0.0
    """Share of recall drills among the episodes, so that the skill is not lost."""
    other_weight: float = 0.0
    """Loss weight of tokens that are not the assistant's."""
    until_loss: float = 0.0
    """The stage ends early once the loss per action token stays below this for ten updates."""
    shipped_share: float = 0.6
    """Share of tasks from the shipped training environments; the rest is invented."""

    @property
    def title(self) -> str:
        if self.drill == "none":
            return f"episodes of {self.max_turns} turns"
        return f"{self.drill} drill" + (f" of {self.drill_length} tokens" if self.drill_length else "")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Recipe:
    """Sizes and curriculum of a training."""

    vocab_size: int = 1024
    hidden_size: int = 192
    intermediate_size: int = 512
    num_layers: int = 3
    num_heads: int = 4
    num_kv_heads: int = 2
    learning_rate: float = 5e-3
    shipped_per_environment: int = 300
    num_invented: int = 500
    tasks_per_invented: int = 5
    stages: tuple[Stage, ...] = (
        Stage(drill="copy", drill_length=24, updates=300, row_length=384, rows=8, until_loss=1.0),
        Stage(drill="copy", drill_length=64, updates=100, row_length=384, rows=8, until_loss=0.5),
        Stage(drill="copy", drill_length=192, updates=80, row_length=384, rows=8, until_loss=0.3),
        Stage(drill="recall", updates=60, row_length=512, rows=8, until_loss=0.5),
        Stage(updates=150, max_turns=1, row_length=512, rows=12, recall_share=0.15, other_weight=0.05),
        Stage(updates=120, max_turns=2, row_length=768, rows=9, recall_share=0.1, other_weight=0.02),
        Stage(updates=160, max_turns=3, row_length=1024, rows=8, recall_share=0.05),
    )
    seed: int = 0

    @property
    def total_updates(self) -> int:
        return sum(stage.updates for stage in self.stages)


SMOKE_RECIPE = Recipe(
    vocab_size=512,
    hidden_size=32,
    intermediate_size=64,
    num_layers=2,
    num_heads=1,
    num_kv_heads=1,
    shipped_per_environment=2,
    num_invented=1,
    tasks_per_invented=2,
    stages=(
        Stage(drill="copy", drill_length=24, updates=1, row_length=384, rows=2),
        Stage(updates=2, max_turns=2, row_length=768, rows=2, recall_share=0.2, other_weight=0.1),
    ),
)
"""A few updates of a far smaller network: shows that the command runs, learns nothing."""


def train_tiny_policy(recipe: Recipe, out: Path, *, say: Callable[[str], None] = print) -> dict[str, float]:
    """Train a policy and write it as a Hugging Face checkpoint folder.

    Returns:
        Parameters, updates, tokens seen, and losses (nats per action token) at the end.
    """
    say("building tasks")
    material = build_material(
        envs_dir(),
        shipped_per_environment=recipe.shipped_per_environment,
        num_invented=recipe.num_invented,
        tasks_per_invented=recipe.tasks_per_invented,
        seed=recipe.seed,
        on_progress=say,
    )
    tokenizer_dir = out.with_name(out.name + ".tokenizer")
    renderer = _train_tokenizer(material, recipe, tokenizer_dir)
    config = _model_config(recipe, len(renderer.tokenizer), renderer.end_id)
    policy = init_policy(config, jax.random.key(recipe.seed))
    trainer = SupervisedTrainer(
        policy,
        policy.params,
        optimizer=OptimizerConfig(
            learning_rate=recipe.learning_rate,
            schedule="cosine",
            warmup_steps=min(30, recipe.total_updates // 2),
            weight_decay=0.05,
            b2=0.98,
        ),
        total_updates=recipe.total_updates,
        row_length=recipe.stages[0].row_length,
        rows=recipe.stages[0].rows,
    )

    def save(params: Params) -> None:
        save_policy_hf(policy, params, out, dtype="float32", tokenizer_files_from=tokenizer_dir)

    figures = _run_stages(trainer, material, renderer, recipe, say, save)
    parameters = sum(leaf.size for leaf in jax.tree.leaves(trainer.params))
    figures |= {"parameters": float(parameters), "updates": float(trainer.num_updates)}
    card = tiny_card(
        figures=figures,
        sizes={name: value for name, value in dataclasses.asdict(recipe).items() if isinstance(value, int)}
        | {"vocab_size": len(renderer.tokenizer)},
        stages=[f"{stage.title} ({stage.updates})" for stage in recipe.stages],
        seed=recipe.seed,
    )
    (out / "README.md").write_text(card, encoding="utf-8")
    shutil.rmtree(tokenizer_dir)
    return figures


def _train_tokenizer(material: Material, recipe: Recipe, folder: Path) -> Renderer:
    """Train the tokenizer on rendered episodes; a byte-only tokenizer renders them first."""
    rng = random.Random(f"tokenizer corpus {recipe.seed}")
    tasks = [
        material.draw(rng, shipped_share=0.6, max_turns=3)
        for _ in range(min(3000, 2 * len(material.shipped)))
    ]
    bytes_only = Renderer(train_tokenizer([""], 265, folder))
    texts = [
        bytes_only.decode(
            golden_trajectory(task, material.environments[task.environment], bytes_only).tokens.tolist()
        )
        for task in tasks
    ]
    return Renderer(train_tokenizer(texts, recipe.vocab_size, folder))


def _model_config(recipe: Recipe, vocab_size: int, end_id: int) -> ModelConfig:
    return ModelConfig.from_hf(
        {
            "model_type": "qwen3",
            "architectures": ["Qwen3ForCausalLM"],
            "vocab_size": vocab_size,
            "hidden_size": recipe.hidden_size,
            "intermediate_size": recipe.intermediate_size,
            "num_hidden_layers": recipe.num_layers,
            "num_attention_heads": recipe.num_heads,
            "num_key_value_heads": recipe.num_kv_heads,
            "head_dim": 32,
            "hidden_act": "silu",
            "rms_norm_eps": 1e-6,
            "rope_theta": 10000.0,
            "max_position_embeddings": 2048,
            "attention_bias": False,
            "tie_word_embeddings": True,
            "eos_token_id": end_id,
        }
    )


def _run_stages(
    trainer: SupervisedTrainer,
    material: Material,
    renderer: Renderer,
    recipe: Recipe,
    say: Callable[[str], None],
    on_stage: Callable[[Params], object],
) -> dict[str, float]:
    tokens = 0.0
    started = time.perf_counter()
    metrics: dict[str, float] = {}
    for index, stage in enumerate(recipe.stages):
        trainer.reshape_rows(row_length=stage.row_length, rows=stage.rows)
        batches = trainer.batches(_examples(material, renderer, stage, recipe, index))
        quiet = 0
        for number in range(1, stage.updates + 1):
            metrics = trainer.update(next(batches), other_weight=stage.other_weight)
            tokens += metrics["tokens"]
            if number % 25 == 0 or number == stage.updates:
                rate = tokens / (time.perf_counter() - started)
                say(
                    f"{stage.title}: update {number}/{stage.updates}, loss per action token "
                    f"{metrics['action_loss']:.3f}, {rate:,.0f} tokens/s"
                )
            quiet = quiet + 1 if metrics["action_loss"] < stage.until_loss else 0
            if quiet == 10:
                say(f"{stage.title}: learned after {number} updates")
                break
        on_stage(trainer.params)
    return {"tokens": tokens, "action_loss": metrics["action_loss"]}


def _examples(
    material: Material, renderer: Renderer, stage: Stage, recipe: Recipe, index: int
) -> Iterator[Trajectory]:
    vocab_size = len(renderer.tokenizer)
    recalls = recall_examples(vocab_size, seed=recipe.seed)
    if stage.drill == "copy":
        yield from copy_examples(vocab_size, length=stage.drill_length, seed=recipe.seed)
    elif stage.drill == "recall":
        yield from recalls
    rng = random.Random(f"episodes {recipe.seed} {index}")
    while True:
        if rng.random() < stage.recall_share:
            example = next(recalls)
        else:
            task = material.draw(rng, shipped_share=stage.shipped_share, max_turns=stage.max_turns)
            example = golden_trajectory(task, material.environments[task.environment], renderer)
        if len(example.tokens) <= stage.row_length:
            yield example


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the tiny policy from nothing.")
    parser.add_argument("--out", type=Path, required=True, help="checkpoint folder to write")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--smoke", action="store_true", help="a few updates of a far smaller network")
    arguments = parser.parse_args()
    recipe = dataclasses.replace(SMOKE_RECIPE if arguments.smoke else Recipe(), seed=arguments.seed)
    try:
        figures = train_tiny_policy(
            recipe, arguments.out, say=lambda line: print(f"  {line}", file=sys.stderr, flush=True)
        )
    except ToolverseError as error:
        sys.exit(f"tiny-policy: {error}")
    print(json.dumps({"folder": str(arguments.out), **figures}, sort_keys=True))


if __name__ == "__main__":
    main()
