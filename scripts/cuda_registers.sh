#!/usr/bin/env bash
# What ptxas says of every CUDA kernel, for all architectures that are supported, as a table in docs/cuda-registers.md.
# Ends with 1 if a kernel spills registers to memory that is not excused below. Needs nvcc, no GPU.
#
#   scripts/cuda_registers.sh [--check]      --check writes nothing
#
# CUDA_HOME says where the toolkit is, if not in /usr/local/cuda.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
architectures=(80 90 100)
table=docs/cuda-registers.md

# Kernels that may spill, and why: ["name as in the table"]="reason".
declare -A excused=()

nvcc=${CUDA_HOME:-/usr/local/cuda}/bin/nvcc
[ -x "$nvcc" ] || nvcc=$(command -v nvcc) || { echo "cuda_registers: nvcc is missing (CUDA toolkit 13)" >&2; exit 2; }
launcher=$(command -v ccache || true)  # remembers what ptxas said, too
shopt -s nullglob
sources=(src/device/cuda/*.cu)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Compiles one file for one architecture; all of them at once, as many as there are cores.
# shellcheck disable=SC2317  # xargs calls it
report() {
  local source=$1 architecture=$2 base
  base=$work/$(basename "$source" .cu).$architecture
  $launcher "$nvcc" -std=c++20 --expt-relaxed-constexpr -arch="sm_$architecture" -Xptxas=-v -Isrc -c "$source" -o "$base.o" \
    >"$base.log" 2>&1 || { cat "$base.log" >&2; return 1; }
}
export -f report
export launcher nvcc work
for source in "${sources[@]}"; do printf '%s\n' "${architectures[@]/#/$source }"; done |
  xargs -P "$(nproc)" -L 1 bash -c 'report "$@"' report

# One line a kernel and architecture: name, architecture, registers, spill stores, spill loads, static shared bytes.
for log in "$work"/*.log; do
  awk '
    /Compiling entry function/ { split($0, parts, "\047"); name = parts[2]; architecture = substr(parts[4], 4) }
    /bytes spill stores/ {
      for (i = 1; i <= NF; ++i) {
        if ($i == "spill" && $(i + 1) ~ /^stores/) stores = $(i - 2)
        if ($i == "spill" && $(i + 1) ~ /^loads/) loads = $(i - 2)
      }
    }
    /Used [0-9]+ registers/ {
      shared = 0
      for (i = 1; i <= NF; ++i) {
        if ($i == "Used") registers = $(i + 1)
        if ($i == "bytes" && $(i + 1) ~ /^smem/) shared = $(i - 1)
      }
      print name "\t" architecture "\t" registers "\t" stores "\t" loads "\t" shared
    }' "$log" >>"$work/kernels"
done
touch "$work/kernels"

# Names without namespaces and parameters: fill_kernel<float>.
cut -f 1 "$work/kernels" | c++filt | sed -E \
  -e 's/\(anonymous namespace\):://g; s/zt::[a-z_]+:://g; s/zt:://g' \
  -e 's/__nv_bfloat16/bf16/g; s/__half/fp16/g; s/\(([a-z ]+)\)([0-9]+)/\2/g' \
  -e 's/^void //; s/(>|[a-z0-9_])\(.*$/\1/' >"$work/names"
paste "$work/names" <(cut -f 2- "$work/kernels") | sort -u -t $'\t' -k 1,1 -k 2,2n >"$work/rows"

{
  echo "# Registers of the CUDA kernels"
  echo
  echo "What \`ptxas\` says for each architecture: registers of a thread, bytes that it spills to memory (stores / loads),"
  echo "static shared memory of a block in bytes. Written by \`scripts/cuda_registers.sh\`, with"
  echo "$("$nvcc" --version | grep -oE 'release [0-9.]+, V[0-9.]+' | sed 's/release/CUDA/')."
  echo
  printf '| kernel |'
  for architecture in "${architectures[@]}"; do printf ' sm_%s |' "$architecture"; done
  printf ' spills | shared |\n|---|'
  for architecture in "${architectures[@]}"; do printf -- '---|'; done
  printf -- '---|---|\n'
  awk -F '\t' -v count="${#architectures[@]}" '
    function finish() {
      if (kernel == "") return
      printf "| `%s` |%s %s | %s |\n", kernel, registers, spills == "" ? "none" : spills, shared
    }
    $1 != kernel { finish(); kernel = $1; registers = ""; spills = ""; shared = $6 }
    {
      registers = registers " " $3 " |"
      if ($4 + $5 > 0) spills = spills (spills == "" ? "" : ", ") "sm_" $2 ": " $4 " / " $5
      if ($6 > shared) shared = $6
    }
    END { finish() }' "$work/rows"
  for kernel in "${!excused[@]}"; do
    echo
    echo "\`$kernel\` may spill: ${excused[$kernel]}"
  done
} >"$work/table"

status=0
while IFS=$'\t' read -r name architecture _ stores loads _; do
  [ "$((stores + loads))" -eq 0 ] || [ -n "${excused[$name]:-}" ] || {
    echo "cuda_registers: $name spills on sm_$architecture: $stores bytes stored, $loads loaded" >&2
    status=1
  }
done <"$work/rows"
[ "${1:-}" = --check ] || cp "$work/table" "$table"
exit "$status"
