#!/usr/bin/env bash
# Formats the C++ sources by .clang-format; with --check it changes nothing, names the places and ends with 1.
#
#   scripts/format.sh [--check] [FILE...]
#
# Other versions of clang-format break some lines elsewhere, so it is version 14 (Debian: clang-format-14);
# CLANG_FORMAT names the program.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
mode=(-i)
if [ "${1:-}" = --check ]; then
  mode=(--dry-run -Werror)
  shift
fi
program=${CLANG_FORMAT:-clang-format-14}
if ! command -v "$program" >/dev/null; then
  echo "format: $program is missing (Debian: apt-get install clang-format-14)" >&2
  exit 2
fi
if [ $# -gt 0 ]; then
  files=("$@")
else
  mapfile -t files < <(git ls-files --cached --others --exclude-standard -- '*.cpp' '*.h' '*.cu')
fi
"$program" "${mode[@]}" "${files[@]}"
