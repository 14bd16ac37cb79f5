#!/usr/bin/env bash
# Trains a small GPT for a few steps at every ZeRO stage and prints, from the summaries of these runs, memory and
# communication beside the formulas of docs/zero.md.
#
#   scripts/zero_tables.sh [--stages "0 1 2 3"] [--ranks "1 2 4"] [--precisions "fp32 bf16"] [--accumulations "1 2"]
#                          [--steps 2] [--set KEY=VALUE...]
#
# ZEROTRAIN names the program (build/zerotrain). Needs jq.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
zerotrain=${ZEROTRAIN:-$root/build/zerotrain}
stages="0 1 2 3"
ranks="1 2 4"
precisions="fp32 bf16"
accumulations="1 2"
steps=2
sets=()

fail() {
  echo "zero_tables: $*" >&2
  exit 2
}
while [ $# -gt 0 ]; do
  case $1 in
    --stages | --ranks | --precisions | --accumulations | --steps)
      [ $# -ge 2 ] || fail "$1 needs a value"
      declare "${1#--}=$2"
      shift 2
      ;;
    --set) [ $# -ge 2 ] || fail "--set needs a value"; sets+=(--set "$2"); shift 2 ;;
    -h | --help) sed -n '2,8p' "${BASH_SOURCE[0]}" | cut -c3-; exit 0 ;;
    *) fail "unknown option $1" ;;
  esac
done
command -v jq >/dev/null || fail "jq is missing (Debian: apt-get install jq)"
[ -x "$zerotrain" ] || fail "$zerotrain is not there; build it (scripts/quickstart.sh) or name it with ZEROTRAIN"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# One run's row. The model states include what alignment to 128 elements and to equal slices adds (padding).
row() {
  jq -r '
    def digits(n): . * pow(10; n) | round | tostring | if length <= n then "0" * (n + 1 - length) + . else . end
                   | .[:-n] + "." + .[-n:];
    .model.parameters as $parameters
    | .memory.ranks[0] as $rank
    | .memory.planned as $plan
    | def states: (.parameters + .gradients + .optimizer) / $parameters | digits(3);
    [ .run.stage, .run.world_size,
      (.memory.formula_bytes_per_parameter | digits(3)), ($plan | states), ($rank | states),
      ($rank.communication / $parameters | digits(3)),
      (.communication.paper | digits(4)), (.communication.planned | digits(4)),
      (.communication.elements_per_parameter_and_step | digits(4)) ]
    | "| " + (map(tostring) | join(" | ")) + " |"' "$1"
}

for precision in $precisions; do
  case $precision in
    fp32) format=() ;;
    bf16) format=(--set bf16.enabled=true) ;;
    # A scale that fits at once: a skipped step publishes nothing.
    fp16) format=(--set fp16.enabled=true --set fp16.initial_scale_power=12) ;;
    *) fail "--precisions $precision: fp32, bf16, fp16" ;;
  esac
  for accumulation in $accumulations; do
    printf '\n%s, gradient_accumulation_steps %s:\n\n' "$precision" "$accumulation"
    echo "| stage | ranks | states: formula | planned | held | rings | sent: paper | planned | counted |"
    echo "|---|---|---|---|---|---|---|---|---|"
    for stage in $stages; do
      for count in $ranks; do
        if ! "$zerotrain" --quiet --ranks "$count" --config "$root/configs/gpt.json" \
          --set data='{"type": "synthetic", "task": "tokens"}' --set model.vocab_size=256 \
          --set train_micro_batch_size_per_gpu=1 --set "gradient_accumulation_steps=$accumulation" \
          --set train_batch_size=auto --set training.sample_prompt= --set training.eval_interval=0 \
          --set "training.max_steps=$steps" --set "zero_optimization.stage=$stage" "${format[@]}" "${sets[@]}" \
          --output "$folder/run" --overwrite >"$folder/log" 2>&1; then
          cat "$folder/log" >&2
          fail "stage $stage on $count rank(s) failed"
        fi
        row "$folder/run/summary.json"
      done
    done
  done
done
