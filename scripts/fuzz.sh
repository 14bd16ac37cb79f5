#!/usr/bin/env bash
# Feeds the readers of files what libFuzzer makes up, under the address and undefined-behavior sanitizers.
#
#   scripts/fuzz.sh [--seconds N] [--new-inputs] [NAME...]      scripts/fuzz.sh --seconds 300 safetensors
#
# A target is tests/fuzz/NAME_fuzz.cpp; lines "// sources:" at its head name the sources that it is linked with, under src/,
# "// libraries:" system libraries, and "// dictionary:" words for libFuzzer, tests/fuzz/NAME.dict.
# It starts from tests/fuzz/corpus/NAME; --new-inputs adds what reaches new code to that folder, made as small as can be.
# N seconds each, 60 unless said otherwise; 0 only runs the corpus. Needs clang++ with its runtime (Debian: clang).
# Prints runs and seconds of each; ends with 1 at the first input that is not refused with a sentence, and leaves it in the
# build directory, build-fuzz (BUILD_DIR says otherwise).
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${BUILD_DIR:-$root/build-fuzz}
seconds=60 new_inputs=0
names=()
while [ $# -gt 0 ]; do
  case $1 in
    --seconds)
      [ $# -gt 1 ] || { echo "fuzz: --seconds takes a number" >&2; exit 2; }
      seconds=$2
      shift
      ;;
    --new-inputs) new_inputs=1 ;;
    -*) sed -n '2,12p' "${BASH_SOURCE[0]}" | cut -c3- >&2; exit 2 ;;
    *) names+=("$1") ;;
  esac
  shift
done
compiler=${CLANGXX:-clang++}
command -v "$compiler" >/dev/null || { echo "fuzz: $compiler is missing (Debian: apt-get install clang)" >&2; exit 2; }
if [ ${#names[@]} -eq 0 ]; then
  for file in "$root"/tests/fuzz/*_fuzz.cpp; do
    name=$(basename "$file")
    names+=("${name%_fuzz.cpp}")
  done
fi
launcher=()
if command -v ccache >/dev/null; then launcher=(ccache); fi
sanitizers=-fsanitize=address,undefined
flags=(-std=c++20 -g1 -fsanitize=fuzzer-no-link "$sanitizers" -fno-sanitize-recover=all -I"$root/src"
  -I"$root/tests/fuzz" -DZEROTRAIN_SOURCE_DIR="\"$root\"")

# is_old OUT SOURCE: it is not there, or older than its source or any header.
is_old() {
  [ ! -e "$1" ] || [ -n "$(find "$root/src" "$root/tests/fuzz" \( -name '*.h' -o -path "$2" \) -newer "$1" -print -quit)" ]
}

# object SOURCE: compiles it where that is still to be done, and prints the name of the result. What reads JSON takes half
# a minute each when the JSON library is optimized under sanitizers, and a second without, its header compiled before.
object() {
  local source=$1 out header=$build/objects/json.pch
  out=$build/objects/$(tr / _ <<<"${source#"$root"/}").o
  if is_old "$out" "$source"; then
    if ! grep -qi json "$source"; then
      "${launcher[@]}" "$compiler" "${flags[@]}" -O1 -c "$source" -o "$out"
    else
      if is_old "$header" "$root/src/core/json.h"; then
        "$compiler" "${flags[@]}" -O0 -x c++-header "$root/src/core/json.h" -o "$header"
      fi
      "$compiler" "${flags[@]}" -O0 -include-pch "$header" -c "$source" -o "$out"
    fi
  fi
  printf '%s\n' "$out"
}

# listed WHAT FILE: the words behind "// WHAT:" in it, one a line.
listed() { sed -n "s|^// $1:||p" "$2" | tr -s ' ' '\n' | sed '/^$/d'; }

mkdir -p "$build/objects"
for name in "${names[@]}"; do
  target=$root/tests/fuzz/${name}_fuzz.cpp
  [ -e "$target" ] || { echo "fuzz: there is no tests/fuzz/${name}_fuzz.cpp" >&2; exit 2; }
  objects=("$(object "$target")")
  mapfile -t sources < <(listed sources "$target")
  for source in "${sources[@]}"; do objects+=("$(object "$root/src/$source.cpp")"); done
  mapfile -t libraries < <(listed libraries "$target" | sed 's/^/-l/')
  "$compiler" -fsanitize=fuzzer "$sanitizers" "${objects[@]}" "${libraries[@]}" -o "$build/$name"
  mapfile -t words < <(listed dictionary "$target" | sed "s|.*|-dict=$root/tests/fuzz/&.dict|")
  corpus=$root/tests/fuzz/corpus/$name work=$build/corpus/$name
  mkdir -p "$work" "$build/failures"
  limit=(-max_total_time="$seconds")
  if [ "$seconds" = 0 ]; then limit=(-runs=0); fi
  log=$build/$name.log status=0
  (cd "$build" && "./$name" "${limit[@]}" "${words[@]}" -timeout=20 -rss_limit_mb=1024 -malloc_limit_mb=512 -max_len=20000 \
    -print_final_stats=1 -artifact_prefix="failures/$name-" "$work" "$corpus") >"$log" 2>&1 || status=$?
  if [ $status -ne 0 ]; then
    tail -n 40 "$log" >&2
    echo "fuzz: $name failed; the input is in $build/failures" >&2
    exit 1
  fi
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  covered=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
  printf '%-16s %12s runs, %s places of code reached\n' "$name" "$runs" "$covered"
  if [ $new_inputs = 1 ]; then
    (cd "$build" && "./$name" -merge=1 -max_len=4096 "$corpus" "$work") >>"$log" 2>&1
  fi
done
