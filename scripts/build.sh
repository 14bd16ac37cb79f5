#!/usr/bin/env bash
# Configures a build directory where that is still to be done, and builds. Prints little unless something fails.
#
#   scripts/build.sh DIRECTORY [TARGET...] [-DOPTION=VALUE...]      scripts/build.sh build zerotrain
#
# Options are remembered by the directory. As many files are compiled at once as there are cores and room for (about
# 1 GB each); CMAKE_BUILD_PARALLEL_LEVEL says otherwise.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
[ $# -ge 1 ] || { sed -n '2,7p' "${BASH_SOURCE[0]}" | cut -c3- >&2; exit 2; }
directory=$1
shift
targets=()
options=()
for argument in "$@"; do
  case $argument in
    -*) options+=("$argument") ;;
    *) targets+=(--target "$argument") ;;
  esac
done

jobs=${CMAKE_BUILD_PARALLEL_LEVEL:-}
if [ -z "$jobs" ]; then
  free_gigabytes=$(awk '/^MemAvailable:/ { print int($2 / 1000000) }' /proc/meminfo)
  jobs=$(nproc)
  [ "$free_gigabytes" -ge "$jobs" ] || jobs=$((free_gigabytes > 1 ? free_gigabytes : 1))
fi

if [ ! -e "$directory/build.ninja" ] || [ ${#options[@]} -gt 0 ]; then
  echo "configuring $directory" >&2
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  if ! cmake -S "$root" -B "$directory" -G Ninja "${options[@]}" >"$log" 2>&1; then
    cat "$log" >&2
    echo "build: cmake could not configure $directory" >&2
    exit 1
  fi
fi

echo "building $directory, $jobs job(s) at once" >&2
cmake --build "$directory" --parallel "$jobs" "${targets[@]}" >&2
