#!/usr/bin/env bash
# Trains a GPT and an MLP for a few steps at every ZeRO stage, in every precision, on several numbers of ranks and with
# as much accumulation as makes up for them, and prints the checksums of the weights: within a table all are equal.
# Ends with 1 when two differ.
#
#   scripts/equality_table.sh [OPTIONS OF ZEROTRAIN PROVE...]      scripts/equality_table.sh --ranks 1,2,8 --steps 10
#
# ZEROTRAIN names the program (build/zerotrain).
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
zerotrain=${ZEROTRAIN:-$root/build/zerotrain}
if [ ! -x "$zerotrain" ]; then
  echo "equality_table: $zerotrain is not there; build it (scripts/quickstart.sh) or name it with ZEROTRAIN" >&2
  exit 2
fi
case "${1:-}" in -h | --help) sed -n '2,8p' "${BASH_SOURCE[0]}" | cut -c3-; exit 0 ;; esac

options=("$@")
status=0

# tables NAME ARGUMENTS...: the tables of one model, which the arguments name.
tables() {
  local model=$1 precision micro_batch format
  shift
  for precision in fp32 bf16 fp16; do
    case $precision in
      fp32) format=() ;;
      bf16) format=(--set bf16.enabled=true) ;;
      fp16) format=(--set fp16.enabled=true --set fp16.initial_scale_power=8) ;;
    esac
    for micro_batch in 1 2; do
      printf '\n%s, %s, micro-batches of %s, batches of 8\n' "$model" "$precision" "$micro_batch"
      "$zerotrain" prove "$@" "${format[@]}" --set train_batch_size=8 \
        --set "train_micro_batch_size_per_gpu=$micro_batch" "${options[@]}" || status=1
    done
  done
}

tables gpt --config "$root/configs/gpt.json" --set 'data={"type": "synthetic", "task": "tokens"}' \
  --set model.vocab_size=256 --set scheduler=null
tables mlp --config "$root/configs/mlp.json"
exit $status
