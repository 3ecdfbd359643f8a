"""Trains the tiny policy that the project ships, from nothing, by supervised learning on golden traces.

Tokenizer, then a drill (copying random tokens), then episodes of one, two and three user turns; part of them in the shipped training environments, part in invented ones, so that using
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

import jax

from toolverse_jax.config import OptimizerConfig
from toolverse_jax.errors import ToolverseError
from toolverse_jax.paths import envs_dir
from toolverse_jax.policy import ModelConfig, Params, init_policy, save_policy_hf
from toolverse_jax.rollout import Renderer, golden_trajectory
from toolverse_jax.rollout.tokenizer import train_tokenizer
from toolverse_jax.train.supervised import SupervisedTrainer
from toolverse_jax.train.tiny_card import tiny_card
from toolverse_jax.train.warm_start_material import Material, build_material, copy_examples
from toolverse_jax.types import Trajectory


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stage:
    """A part of the curriculum."""

    updates: int
    max_turns: int
    """User turns shown of each task; 0: the copy drill."""
    other_weight: float
    """Loss weight of tokens that are not the assistant's."""

    @property
    def title(self) -> str:
        return f"episodes of {self.max_turns} turns" if self.max_turns else "copy drill"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Recipe:
    """Sizes and curriculum of a training."""

    vocab_size: int = 1024
    hidden_size: int = 128
    intermediate_size: int = 384
    num_layers: int = 5
    num_heads: int = 4
    num_kv_heads: int = 2
    learning_rate: float = 3e-3
    row_length: int = 1024
    rows: int = 8
    shipped_share: float = 0.5
    """Share of tasks from the shipped training environments; the rest is invented."""
    shipped_per_environment: int = 300
    num_invented: int = 500
    tasks_per_invented: int = 5
    stages: tuple[Stage, ...] = (
        Stage(updates=120, max_turns=0, other_weight=0.0),
        Stage(updates=100, max_turns=1, other_weight=0.1),
        Stage(updates=100, max_turns=2, other_weight=0.1),
        Stage(updates=330, max_turns=3, other_weight=0.05),
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
    rows=2,
    stages=(
        Stage(updates=1, max_turns=0, other_weight=0.0),
        Stage(updates=2, max_turns=2, other_weight=0.1),
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
        row_length=recipe.row_length,
        rows=recipe.rows,
    )

    def save(params: Params) -> None:
        save_policy_hf(policy, params, out, dtype="bfloat16", tokenizer_files_from=tokenizer_dir)

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
        batches = trainer.batches(_examples(material, renderer, stage, recipe, index))
        for number in range(1, stage.updates + 1):
            metrics = trainer.update(next(batches), other_weight=stage.other_weight)
            tokens += metrics["tokens"]
            if number % 25 == 0 or number == stage.updates:
                rate = tokens / (time.perf_counter() - started)
                say(
                    f"{stage.title}: update {number}/{stage.updates}, loss per action token "
                    f"{metrics['action_loss']:.3f}, {rate:,.0f} tokens/s"
                )
        on_stage(trainer.params)
    return {"tokens": tokens, "action_loss": metrics["action_loss"]}


def _examples(
    material: Material, renderer: Renderer, stage: Stage, recipe: Recipe, index: int
) -> Iterator[Trajectory]:
    if stage.max_turns == 0:
        yield from copy_examples(len(renderer.tokenizer), seed=recipe.seed)
    rng = random.Random(f"episodes {recipe.seed} {index}")
    while True:
        task = material.draw(rng, shipped_share=recipe.shipped_share, max_turns=stage.max_turns)
        example = golden_trajectory(task, material.environments[task.environment], renderer)
        if len(example.tokens) <= recipe.row_length:
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
