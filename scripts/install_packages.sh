#!/usr/bin/env bash
# Installs the packages that zerotrain is built from, those that are missing: on Debian 12, and written for
# Ubuntu 24.04 too. As root, or with sudo; without either it names the packages and ends with 1. When nothing is
# missing it does nothing and needs no network.
#
#   scripts/install_packages.sh [tests] [checks] [datasets]
#
#   tests    what the tests need besides
#   checks   what .ci/run needs besides
#   datasets Fashion-MNIST, 30 MB (scripts/prepare_data.sh asks for it)
#
# ZEROTRAIN_SKIP_INSTALL=1 leaves the system alone (for other distributions, with the libraries installed by hand).
set -euo pipefail

packages=(
  g++ cmake ninja-build pkg-config git       # to build
  libdnnl-dev ocl-icd-opencl-dev             # oneDNN: matrix products; its CMake files look for OpenCL
  libhwy-dev                                 # Highway: vector instructions
  zlib1g-dev                                 # zlib: data files as gzip
  nlohmann-json3-dev libcli11-dev libspdlog-dev
  libopenmpi-dev openmpi-bin                 # ranks over MPI
  bible-kjv bible-kjv-text                   # the text of configs/gpt.json
)

for group in "$@"; do
  case $group in
    tests) packages+=(catch2) ;;
    checks) packages+=(clang-format-14 shellcheck) ;;
    datasets) packages+=(dataset-fashion-mnist) ;;
    *) echo "install_packages: unknown argument $group; it is tests, checks or datasets" >&2; exit 2 ;;
  esac
done

[ "${ZEROTRAIN_SKIP_INSTALL:-0}" != 1 ] || exit 0

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  {
    echo "install_packages: this script installs on Debian and Ubuntu. Elsewhere install the equivalents of"
    echo "  ${packages[*]}"
    echo "and run again with ZEROTRAIN_SKIP_INSTALL=1."
  } >&2
  exit 1
fi

is_installed() {
  [ "$(dpkg-query --show --showformat='${db:Status-Status}\n' "$1" 2>/dev/null | sort -u)" = installed ]
}

missing=()
for package in "${packages[@]}"; do
  is_installed "$package" || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    {
      echo "install_packages: these packages are missing, and installing needs root or sudo:"
      echo "  apt-get install ${missing[*]}"
    } >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "installing ${missing[*]}" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
run() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive "$@" >"$log" 2>&1 </dev/null; }

# A list that cannot be fetched need not matter: the packages may come from another.
if ! run apt-get update --quiet; then
  tail -n 5 "$log" >&2
  echo "install_packages: apt-get update failed; going on with the lists that are there" >&2
fi
if ! run apt-get install --quiet --yes --no-install-recommends "${missing[@]}"; then
  tail -n 20 "$log" >&2
  echo "install_packages: apt-get could not install ${missing[*]}" >&2
  exit 1
fi
