#!/usr/bin/env bash
# The main job on one machine's CPU: toolsets -> environments -> tasks -> evaluation -> training -> evaluation -> report.
# Run by `make quickstart`. Everything is written under runs/quickstart; an interrupted run goes on where it was.
set -euo pipefail
cd "$(dirname "$0")/.."
run=runs/quickstart
config=launch/configs/quickstart.toml
export JAX_PLATFORMS=cpu HF_HUB_OFFLINE=1
# Later stages reuse the programs that earlier ones compiled.
export JAX_COMPILATION_CACHE_DIR="${JAX_COMPILATION_CACHE_DIR:-$PWD/$run/compiled}"
toolverse=.venv/bin/toolverse
started=$SECONDS
mkdir -p "$run"

stage() { printf '\n[%s] %s  (%d s)\n' "$1" "$2" "$((SECONDS - started))"; }

evaluate() { # evaluate LABEL POLICY: plays both held-out sets
  local set
  for set in heldout_tasks heldout_environments; do
    if [ ! -f "$run/eval/$1_$set.json" ]; then
      "$toolverse" eval --policy "$2" --tasks "$run/tasks/$set.jsonl" --envs "$run/envs" --label "$1 training, $set" \
        --max-length 1280 --out "$run/eval/$1_$set.json"
    fi
  done
}

stage 1/6 "authoring, validating and exporting environments"
"$toolverse" synthesize envs --out "$run/envs"

stage 2/6 "sampling tasks with golden traces, and replaying them"
"$toolverse" tasks "$run/envs" --out "$run/tasks" --train 60 --evaluation 14 --min-turns 3 --max-turns 3

stage 3/6 "evaluating the warm-started tiny policy"
evaluate before tiny

stage 4/6 "training it with Turn-Aware Relative Advantage"
"$toolverse" train --config "$config" --run "$run/train"

stage 5/6 "evaluating the trained policy"
evaluate after "$run/train/final"

stage 6/6 "writing the report"
"$toolverse" view "$run"
printf '\nquickstart: done in %d s; open %s/report.html in a browser\n' "$((SECONDS - started))" "$run"
