#!/usr/bin/env bash
# Trains very small models with different settings of the loss scale, or of the guards, and prints, as Markdown, each
# command with what the program says of its steps, and the sequences of scales. scripts/update_docs.sh puts it into
# docs/precision.md and docs/guards.md.
#
#   scripts/step_examples.sh scaling|guards
#
# ZEROTRAIN names the program (build/zerotrain). Needs jq.
# shellcheck disable=SC2016  # the backquotes are Markdown
set -euo pipefail

case "${1:-}" in
  scaling | guards) ;;
  *) sed -n '2,10p' "${BASH_SOURCE[0]}" | cut -c3- >&2; exit 2 ;;
esac
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
zerotrain=${ZEROTRAIN:-$root/build/zerotrain}
zerotrain=$(realpath "$zerotrain") || exit 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
# run ARGUMENTS...: quietly; the exit code goes to $status.
run() {
  status=0
  "$zerotrain" --config $config --overwrite "$@" >/dev/null 2>said || status=$?
}

# The command line as one would type it.
typed() {
  local word
  printf '$ zerotrain --config %s' "$config"
  for word in "$@"; do
    case $word in *[\"\ \{]*) printf " '%s'" "$word" ;; *) printf ' %s' "$word" ;; esac
  done
  printf '\n'
}

# A line for what was said of steps that were retried, skipped or ended the run.
lines_of_steps() { grep -E '^(zerotrain: )?step [0-9]+( skipped)?: |^early stopping|^warning' said || true; }

# log2 of each step's scale, with x where gradients overflowed and rN after N retries.
sequence() {
  jq -r 'select(.kind == "train") | (.loss_scale | log2 | . * 100 | round / 100 | tostring)
         + (if .skipped then "x" else "" end) + (if .retries then "r" + (.retries | tostring) else "" end)' \
    run/metrics.jsonl | paste -sd ' ' | fold -s -w 100
}

# row NAME ARGUMENTS...: of the table of sequences.
row() {
  local name=$1
  shift
  run --set fp16.enabled=true "$@"
  printf '| %s | %s |\n' "$name" "$(sequence | tr -d '\n')"
}

# said TITLE ARGUMENTS...: the command, its lines (at most 12 of them), its exit code.
said() {
  local title=$1
  shift
  run "$@"
  printf '%s\n\n```console\n%s\n%s\n' "$title" "$(typed "$@")" "$(lines_of_steps | sed -n '1,12p')"
  if [ "$(lines_of_steps | wc -l)" -gt 12 ]; then printf '...\n%s\n' "$(lines_of_steps | tail -1)"; fi
  printf '$ echo $?\n%s\n```\n\n' "$status"
}

# show_config: the text of the config that the examples use.
show_config() { printf '```jsonc\n// %s\n%s\n```\n\n' "$config" "$(cat $config)"; }

loss_scaling() {
  config=tiny.json
  cat >tiny.json <<'JSON'
{
  "train_batch_size": 4,
  "optimizer": { "type": "AdamW", "params": { "lr": 2e-3 } },
  "model": { "type": "gpt", "n_layer": 2, "n_head": 2, "n_embd": 32, "n_positions": 16, "vocab_size": 64 },
  "data": { "type": "synthetic", "task": "tokens" },
  "training": { "max_steps": 24, "output_dir": "run" }
}
JSON

  printf 'The examples train a very small GPT:\n\n'
  show_config
  cat <<'TEXT'
The scale of every step, as its power of two; `x`: gradients overflowed and the step was skipped; `rN`: the batch was
run N times before this scale fitted. All with `--set fp16.enabled=true` and:

| `--set` | scales of steps 1, 2, 3, ... |
|---|---|
TEXT
  row 'nothing more' --set training.max_steps=24
  row '`fp16.hysteresis=1`' --set fp16.hysteresis=1
  row '`fp16.initial_scale_power=17`, `fp16.loss_scale_window=4`' \
    --set fp16.initial_scale_power=17 --set fp16.loss_scale_window=4 --set training.max_steps=40
  row 'the same and `fp16.hysteresis=1`' \
    --set fp16.initial_scale_power=17 --set fp16.loss_scale_window=4 --set fp16.hysteresis=1 --set training.max_steps=40
  row 'the same and `fp16.hysteresis=2`, `fp16.consecutive_hysteresis=true`' \
    --set fp16.initial_scale_power=17 --set fp16.loss_scale_window=4 --set fp16.hysteresis=2 \
    --set fp16.consecutive_hysteresis=true --set training.max_steps=40
  row '`fp16.on_overflow=retry`' --set fp16.on_overflow=retry
  row '`fp16.on_overflow=retry`, `fp16.loss_scale_window=4`' \
    --set fp16.on_overflow=retry --set fp16.loss_scale_window=4 --set training.max_steps=40
  row '`fp16.loss_scale=1024`' --set fp16.loss_scale=1024
  printf '\n'

  said 'A skipped step says the old and the new scale:' --set fp16.enabled=true --set fp16.initial_scale_power=20
  said 'A batch that is run again:' --set fp16.enabled=true --set fp16.initial_scale_power=20 \
    --set fp16.on_overflow=retry
  said 'At the minimum there is nothing left to lower:' --set fp16.enabled=true --set fp16.min_loss_scale=1048576
  said 'A static scale that is too high:' --set fp16.enabled=true --set fp16.loss_scale=1e9
  said 'A loss that is not finite, here made by an absurd learning rate, is no matter of the scale:' \
    --set fp16.enabled=true --set fp16.initial_scale_power=12 \
    --set 'optimizer={"type": "SGD", "params": {"lr": 1e30}}'
  said 'In bf16 there is no scale at all:' --set bf16.enabled=true \
    --set 'optimizer={"type": "SGD", "params": {"lr": 1e30}}'
  said 'and with `bf16.check_grad_overflow` false the first such step ends the run:' --set bf16.enabled=true \
    --set bf16.check_grad_overflow=false --set 'optimizer={"type": "SGD", "params": {"lr": 1e30}}'
}

guards() {
  config=jump.json
  cat >jump.json <<'JSON'
{
  "train_batch_size": 12,
  "optimizer": { "type": "SGD", "params": { "lr": 20.0 } },
  "scheduler": { "type": "WarmupLR", "params": { "warmup_type": "linear", "warmup_max_lr": 20.0, "warmup_num_steps": 30 } },
  "model": { "type": "mlp", "layers": [20, 33, 9, 3], "activation": "gelu" },
  "data": { "type": "synthetic", "task": "regression", "samples": 400 },
  "training": { "max_steps": 40, "eval_interval": 5, "output_dir": "run" }
}
JSON
  printf 'The examples train a small MLP with a learning rate that rises until it is far too high:\n\n'
  show_config
  said 'Steps that jump are left out, until ten in a row say that it will not get better:' \
    --set 'training.spike_guard={"action": "skip", "deviations": 4, "window": 5}'
  said 'Or the first of them ends the run:' --set 'training.spike_guard={"action": "stop", "deviations": 4, "window": 5}'
  said 'Early stopping, with a learning rate that is not too high:' --set scheduler=null \
    --set optimizer.params.lr=0.2 --set training.max_steps=1000 \
    --set 'training.early_stopping={"patience": 3, "min_delta": 0.001}'
  printf 'and in its `summary.json`:\n\n```console\n$ jq -c "{status, stop_reason, steps, best}" run/summary.json\n%s\n```\n' \
    "$(jq -c '{status, stop_reason, steps, best}' run/summary.json)"
}

case $1 in
  scaling) loss_scaling ;;
  guards) guards ;;
esac
