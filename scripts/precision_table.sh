#!/usr/bin/env bash
# Trains a small GPT in every precision and prints what came of it as a table: the one of docs/precision.md.
#
#   scripts/precision_table.sh [CONFIG]      configs/gpt.json unless another is named; wants jq
#
# The environment may say: ZEROTRAIN (build/zerotrain), STEPS (300).
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
zerotrain=${ZEROTRAIN:-$root/build/zerotrain}
config=${1:-$root/configs/gpt.json}
steps=${STEPS:-300}
command -v jq >/dev/null || { echo "precision_table: jq is missing (Debian: apt-get install jq)" >&2; exit 1; }
output=$(mktemp -d)
trap 'rm -rf "$output"' EXIT

small=(--set model.n_layer=2 --set model.n_head=4 --set model.n_embd=128 --set model.n_positions=64
       --set train_batch_size=32 --set gradient_accumulation_steps=1 --set training.sample_prompt= --set bf16.enabled=false
       --set "training.max_steps=$steps" --set training.eval_interval="$steps" --set training.eval_steps=20
       --set scheduler.params.total_num_steps="$steps" --set scheduler.params.warmup_num_steps=20)

echo "| keys | precision | validation loss | steps skipped | last scale | model states, MB | activations, MB |"
echo "|---|---|---|---|---|---|---|"
run() {  # one line of the table for these keys; a run may fail, which is a result
  local keys=("$@") sets=() key
  for key in "${keys[@]}"; do sets+=(--set "$key"); done
  rm -rf "$output/run"
  "$zerotrain" --quiet --config "$config" "${small[@]}" "${sets[@]}" --output "$output/run" 2>"$output/errors" || true
  [ -e "$output/run/summary.json" ] || { cat "$output/errors" >&2; exit 1; }
  jq -r --arg keys "\`${keys[*]}\`" '
    .memory.planned as $m
    | [$keys, "`\(.run.precision)`",
       (if .status == "completed" then (.final.validation_loss * 1e4 | round / 1e4)
        else "failed in step \(.steps.attempted)" end),
       .steps.skipped, .final.loss_scale,
       (($m.parameters + $m.gradients + $m.optimizer) / 1e5 | round / 10), ($m.activations / 1e5 | round / 10)]
    | "| " + (map(tostring) | join(" | ")) + " |"' "$output/run/summary.json"
}

run fp16.enabled=false
run bf16.enabled=true
run bf16.enabled=true bf16.bf16_master_weights_and_grads=true
run bf16.enabled=true bf16.bf16_master_weights_and_grads=true bf16.bf16_optimizer_states=true
run fp16.enabled=true
run fp16.enabled=true fp16.on_overflow=retry
run fp16.enabled=true fp16.fp16_master_weights_and_grads=true
run amp.enabled=true amp.opt_level=O0
run amp.enabled=true amp.opt_level=O1
run amp.enabled=true amp.opt_level=O2
run amp.enabled=true amp.opt_level=O3
run amp.enabled=true amp.opt_level=O3 optimizer.type=SGD 'optimizer.params={"lr":0.1}' amp.loss_scale=128
run torch_autocast.enabled=true
run torch_autocast.enabled=true torch_autocast.dtype=float16
