#!/usr/bin/env bash
# Trains the same GPT with zerotrain and with PyTorch in turn (A B A B ...: other load on the machine then meets both
# alike) and prints each run's tokens per second and the ratio of the medians.
#
#   ZEROTRAIN=build/zerotrain PYTHON=python3 scripts/bench/compare_pytorch.sh --preset char --dtype bf16 --threads 2
#
# PYTHON is an interpreter that has torch.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
zerotrain=${ZEROTRAIN:-$here/build/zerotrain}
python=${PYTHON:-python3}
preset=char
dtype=fp32
threads=$(nproc)
rounds=3
steps=
compile=()

usage() {
  cat <<'TEXT'
usage: compare_pytorch.sh [options]
  --preset char|124m      the model (char)
  --dtype fp32|bf16|fp16  (fp32)
  --threads N             of either program (all cores)
  --rounds N              runs of each program (3)
  --steps N               steps of a run (char: 20, 124m: 10)
  --compile               PyTorch through torch.compile
  --zerotrain PATH        or ZEROTRAIN in the environment (build/zerotrain)
  --python PATH           an interpreter that has torch, or PYTHON in the environment (python3)
TEXT
}

fail() {
  echo "compare_pytorch: $*" >&2
  exit 2
}

while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) usage; exit 0 ;;
    --compile) compile=(--compile); shift; continue ;;
    --preset | --dtype | --threads | --rounds | --steps | --zerotrain | --python)
      [ $# -ge 2 ] || fail "$1 needs a value"
      declare "${1#--}=$2"
      shift 2
      ;;
    *) usage >&2; fail "unknown option $1" ;;
  esac
done

case $preset in
  char) steps=${steps:-20} ;;
  124m) steps=${steps:-10} ;;
  *) fail "--preset $preset: char or 124m" ;;
esac
case $dtype in
  fp32) precision=() ;;
  bf16) precision=(--set bf16.enabled=true) ;;
  # A scale that fits at once: skipped steps would be shorter than real ones.
  fp16) precision=(--set fp16.enabled=true --set fp16.initial_scale_power=12) ;;
  *) fail "--dtype $dtype: fp32, bf16 or fp16" ;;
esac
[ -x "$zerotrain" ] || fail "$zerotrain is not there; build it or name it with --zerotrain"
"$python" -c 'import torch' 2>/dev/null || fail "$python has no torch; name an interpreter that has with --python"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Prints "TOKENS_PER_SECOND PEAK_BYTES LOSS" of a run.
run_zerotrain() {
  local output=$folder/zerotrain-$1
  if ! "$zerotrain" --config "$here/configs/bench/$preset.json" "${precision[@]}" --set "device.threads=$threads" \
    --set "training.max_steps=$steps" --output "$output" --quiet >"$folder/log" 2>&1; then
    cat "$folder/log" >&2
    fail "zerotrain failed"
  fi
  "$python" - "$output/summary.json" <<'CODE'
import json, sys
summary = json.load(open(sys.argv[1]))
print(summary["throughput"]["tokens_per_second"], sum(rank["peak_resident"] for rank in summary["memory"]["ranks"]),
      summary["final"]["loss"])
CODE
}

run_pytorch() {
  if ! OMP_NUM_THREADS=$threads "$python" "$here/scripts/bench/pytorch_gpt.py" --preset "$preset" --dtype "$dtype" \
    --threads "$threads" --steps "$steps" "${compile[@]}" >"$folder/line" 2>"$folder/log"; then
    cat "$folder/log" >&2
    fail "PyTorch failed"
  fi
  "$python" - "$folder/line" <<'CODE'
import json, sys
line = json.loads(open(sys.argv[1]).read().splitlines()[-1])
print(line["tokens_per_second"], line["peak_resident"], line["loss"])
CODE
}

echo "preset $preset, $dtype, $threads threads, $steps steps, $rounds rounds" >&2
for round in $(seq "$rounds"); do
  for program in zerotrain pytorch; do
    result=$("run_$program" "$round")
    echo "$program $result" >>"$folder/results"
    echo "$result" | awk -v program="$program" \
      '{ printf "%-10s %10.1f tokens/s  %8.1f MB  loss %s\n", program, $1, $2 / 1e6, $3 }' >&2
  done
done

"$python" - "$folder/results" "$preset" "$dtype" "$threads" <<'CODE'
import json, statistics, sys
rates, peaks = {}, {}
for line in open(sys.argv[1]):
    program, rate, peak, _ = line.split()
    rates.setdefault(program, []).append(float(rate))
    peaks.setdefault(program, []).append(float(peak))
medians = {program: statistics.median(values) for program, values in rates.items()}
print(json.dumps({
    "preset": sys.argv[2], "dtype": sys.argv[3], "threads": int(sys.argv[4]),
    "tokens_per_second": medians, "runs": rates,
    "peak_resident": {program: max(values) for program, values in peaks.items()},
    "ratio": medians["zerotrain"] / medians["pytorch"],
}))
CODE
