#!/usr/bin/env bash
# Trains a tiny GPT on emulated GPUs at every stage, in three precisions, on 1 to 4 ranks over NCCL, and writes what was
# called and sent beside the plan into docs/gpu.md. Fails if anything was sent otherwise than planned, or if ranks or
# stages change a bit of the weights within a precision. Needs a build with tests; BUILD_DIR names it.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${BUILD_DIR:-build}
ZEROTRAIN_CUDA_BACKEND=$PWD/$build/tests/cuda_emulation/libzerotrain_cuda_emulated.so
export ZEROTRAIN_CUDA_BACKEND ZEROTRAIN_EMULATION_DEVICES=4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/config.json" <<'JSON'
{
  "train_batch_size": 12, "train_micro_batch_size_per_gpu": 1, "gradient_clipping": 1.0,
  "data_types": { "grad_accum_dtype": "fp32" },
  "optimizer": { "type": "AdamW", "params": { "lr": 2e-3 } },
  "model": { "type": "gpt", "n_layer": 4, "n_head": 2, "n_embd": 32, "n_positions": 8, "vocab_size": 31 },
  "data": { "type": "synthetic", "task": "tokens", "samples": 100 },
  "training": { "max_steps": 2 },
  "device": { "type": "cuda" }
}
JSON

status=0
{
  echo "| precision | ranks | stage | reduce-scatters | all-gathers | elements sent | planned | a parameter and step | paper | weights |"
  echo "|---|---|---|---|---|---|---|---|---|---|"
  for precision in fp32 bf16 fp16; do
    first=
    for ranks in 1 2 3 4; do
      for stage in 0 1 2 3; do
        sets=(--set "zero_optimization.stage=$stage")
        case $precision in
          bf16) sets+=(--set bf16.enabled=true) ;;
          fp16) sets+=(--set fp16.enabled=true --set fp16.initial_scale_power=8) ;;
        esac
        "$build/zerotrain" --config "$work/config.json" --ranks "$ranks" --output "$work/run" --overwrite --quiet \
          "${sets[@]}" 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
        read -r scatters gathers sent planned each paper weights < <(jq -r '[.communication.reduce_scatter.calls,
          .communication.all_gather.calls, .communication.elements, .communication.planned_elements,
          (.communication.elements_per_parameter_and_step * 1000 | round / 1000),
          (.communication.paper * 1000 | round / 1000), .weights_checksum] | @tsv' "$work/run/summary.json")
        : "${first:=$weights}"
        if [ "$sent" != "$planned" ] || [ "$weights" != "$first" ]; then status=1; fi
        echo "| $precision | $ranks | $stage | $scatters | $gathers | $sent | $planned | $each | $paper | \`$weights\` |"
      done
    done
  done
} >"$work/rows"
{
  jq -r '"A GPT of \(.model.parameters) parameters, \(.steps.attempted) steps of 12 micro-batches; calls and elements of rank 0 over all steps:\n"' \
    "$work/run/summary.json"
  cat "$work/rows"
} >"$work/table"

awk -v table="$work/table" '
  /<!-- end of nccl table -->/ { skip = 0 }
  !skip { print }
  /<!-- nccl table -->/ { while ((getline line < table) > 0) print line; skip = 1 }
' docs/gpu.md >"$work/gpu.md"
cp "$work/gpu.md" docs/gpu.md
if [ "$status" -ne 0 ]; then
  echo "nccl_table: something was sent otherwise than planned, or bits differ: see docs/gpu.md" >&2
fi
exit "$status"
