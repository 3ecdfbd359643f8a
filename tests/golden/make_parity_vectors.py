"""Makes the checkpoints and vectors that hold our model equal to transformers.

Needs torch and transformers (>= 5), neither of which the project depends on for running models:
    python tests/golden/make_parity_vectors.py tests/golden
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModelForCausalLM, Qwen2Config, Qwen3Config

SHAPE = dict(
    vocab_size=96,
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=256,
    initializer_range=0.2,
)
CONFIGS = {
    "qwen2": Qwen2Config(
        **SHAPE,
        tie_word_embeddings=False,
        rope_parameters={"rope_type": "default", "rope_theta": 1_000_000.0},
        rms_norm_eps=1e-6,
    ),
    "qwen3": Qwen3Config(
        **SHAPE,
        head_dim=16,  # not hidden_size / heads
        tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 5_000.0},
        rms_norm_eps=1e-5,
    ),
    "qwen3_bias": Qwen3Config(
        **SHAPE,
        head_dim=8,
        tie_word_embeddings=False,
        attention_bias=True,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
    ),
}
TOKENS = 40
GREEDY = 24


def main(folder: Path) -> None:
    for name, config in CONFIGS.items():
        torch.manual_seed(0)
        config.eos_token_id = None
        model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
        with torch.no_grad():
            for key, parameter in sorted(model.named_parameters()):
                # Norms start at one and biases at zero; random ones show a missing or swapped tensor.
                if "norm" in key:
                    parameter.add_(0.3 * torch.randn_like(parameter))
                elif key.endswith("bias"):
                    parameter.copy_(0.3 * torch.randn_like(parameter))
            # Values that the small file holds exactly; `model.to` would round the rotary table too.
            for parameter in model.parameters():
                parameter.copy_(parameter.to(torch.bfloat16).to(torch.float32))
            tokens = torch.randint(0, config.vocab_size, (1, TOKENS))
            logits = model(tokens).logits[0]
            greedy = tokens.clone()
            for _ in range(GREEDY):
                following = model(greedy).logits[:, -1].argmax(-1, keepdim=True)
                greedy = torch.cat([greedy, following], dim=1)
        target = folder / name
        model.to(torch.bfloat16).save_pretrained(target)
        (target / "generation_config.json").unlink(missing_ok=True)
        np.savez_compressed(
            target / "vectors.npz",
            tokens=tokens[0].numpy().astype(np.int32),
            logits=logits.numpy(),
            greedy=greedy[0, TOKENS:].numpy().astype(np.int32),
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
