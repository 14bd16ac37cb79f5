#!/usr/bin/env bash
# Checks zerotrain on an NVIDIA GPU in one go, in less than 8 minutes: builds it for the card, runs every operation against
# the CPU, trains at all stages, records a trace, measures speed beside PyTorch, and writes one report,
# gpu-check-report.md (in the build directory, or in $OUT). Ends with 1 if something failed.
#
#   scripts/gpu-check.sh [OPTIONS]
#
#   --packages DIR      .deb files (scripts/gpu-check-pack.sh) to build from: unpacked, not installed; no root, no network
#   --prefix DIR        the same libraries, already under DIR/include and DIR/lib (or DIR/usr/...)
#   --build-dir DIR     where to build (build-gpu-check)
#   --built             the build directory is built; build nothing
#   --emulated          without a GPU: on emulated ones (docs/gpu.md), at tiny shapes, nothing is timed
#   --budget SECONDS    of the whole check (460); what does not fit is left out, and the report says so
#   --python PATH       an interpreter with PyTorch (PYTHON, or python3)
#   --without-pytorch   no comparison
#   --tests NAMES       operation tests to run, by Catch2's patterns (all)
#   --jobs N            files compiled at once (all cores)
#
# Needs a C++20 compiler, CMake, Python 3.9, the CUDA toolkit 13 and the libraries of scripts/install_packages.sh, which is
# tried where they are missing. CUDA_HOME, NCCL_ROOT and CXX say where things are.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/gpu-check/dependencies.sh
. "$root/scripts/gpu-check/dependencies.sh"
began=$SECONDS

usage() { sed -n '2,20p' "${BASH_SOURCE[0]}" | cut -c3-; }

build=$root/build-gpu-check
packages='' prefix='' budget=460
python=${PYTHON:-python3}
passed=()
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) usage; exit 0 ;;
    --emulated | --without-pytorch | --built) passed+=("$1"); shift ;;
    --packages | --prefix | --build-dir | --budget | --python | --tests | --jobs)
      [ $# -ge 2 ] || { say "$1 needs a value"; exit 2; }
      case $1 in
        --packages | --prefix)
          [ -d "$2" ] || { say "$1: $2 is no directory"; exit 2; }
          if [ "$1" = --packages ]; then packages=$(cd "$2" && pwd); else prefix=$(cd "$2" && pwd); fi
          ;;
        --build-dir) mkdir -p "$2"; build=$(cd "$2" && pwd) ;;
        --budget)
          [[ $2 =~ ^[1-9][0-9]*$ ]] || { say "--budget: $2 is no number of seconds"; exit 2; }
          budget=$2
          ;;
        --python) python=$2 ;;
        *) passed+=("$1" "$2") ;;
      esac
      shift 2
      ;;
    *) usage >&2; say "unknown option $1"; exit 2 ;;
  esac
done

mkdir -p "$build"
export GPU_CHECK_LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}
export CUDA_HOME=${CUDA_HOME:-/usr/local/cuda}
if [ -d "$CUDA_HOME/bin" ]; then extend PATH "$CUDA_HOME/bin"; fi
if [ -n "$packages" ]; then
  say "unpacking $packages"
  unpack_packages "$packages" "$build/packages"
  settle_packages "$build/packages"
  use_prefix "$build/packages"
  passed+=(--note "Built from the unpacked packages of $(basename "$packages").")
fi
if [ -n "$prefix" ]; then use_prefix "$prefix"; fi

missing=$(missing_libraries)
if [ -n "$missing" ]; then
  say "missing: ${missing//$'\n'/ }"
  if timeout 90 "$root/scripts/install_packages.sh" tests >&2; then
    passed+=(--note "scripts/install_packages.sh installed what was missing.")
  else
    passed+=(--note "Missing, and not to be installed here (no network or not root): ${missing//$'\n'/, }. \
--packages takes what scripts/gpu-check-pack.sh collects elsewhere.")
  fi
fi
command -v python3 >/dev/null || { say "python3 is missing: it runs the steps (the folder of --packages has it)"; exit 1; }

# Python files are not compiled into the source folder.
export PYTHONDONTWRITEBYTECODE=1
exec python3 "$root/scripts/gpu-check" --build-dir "$build" --budget $((budget - SECONDS + began)) --python "$python" \
  "${passed[@]}"
