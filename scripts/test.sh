#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test.
#
#   scripts/test.sh [OPTIONS OF CTEST...]      scripts/test.sh -R gpt       scripts/test.sh -L quick -j 2
#
# The environment may say: BUILD_DIR (build, the same as quickstart.sh's), CMAKE_OPTIONS (--preset=asan, or
# "-DOPTION=VALUE ..."), TEST_TARGETS (build these alone).
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
directory=${BUILD_DIR:-$root/build}
case $directory in /*) ;; *) directory=$root/$directory ;; esac
read -r -a options <<<"${CMAKE_OPTIONS:-}"
read -r -a targets <<<"${TEST_TARGETS:-}"

"$root/scripts/install_packages.sh" tests
if ! grep -qs '^ZEROTRAIN_TESTS:BOOL=ON' "$directory/CMakeCache.txt"; then options+=(-DZEROTRAIN_TESTS=ON); fi
"$root/scripts/build.sh" "$directory" "${targets[@]}" "${options[@]}"

# Open MPI wants to be told that root, and more ranks than cores, are meant.
if [ "$(id -u)" -eq 0 ]; then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi
export OMPI_MCA_rmaps_base_oversubscribe=1
exec ctest --test-dir "$directory" --output-on-failure "$@" </dev/null
