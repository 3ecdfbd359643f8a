#!/usr/bin/env bash
# Trains the shipped tiny policy from nothing and puts it in its place. Run by `make tiny-policy`.
set -euo pipefail
cd "$(dirname "$0")/.."
export JAX_PLATFORMS=cpu HF_HUB_OFFLINE=1 TRANSFORMERS_NO_ADVISORY_WARNINGS=1
exec .venv/bin/python -m toolverse_jax.train.tiny_policy --out toolverse_jax/policy/tiny "$@"
