#!/usr/bin/env bash
# Installs the packages that zerotrain is built from, those that are missing: on Debian 12, and written for
# Ubuntu 24.04 too. As root, or with sudo; without either it names the packages and ends with 1. When nothing is
# missing it does nothing and needs no network.
#
#   scripts/install_packages.sh [tests] [checks] [datasets]
#   scripts/install_packages.sh runtime      what a built zerotrain needs to run, and nothing to build with
#   scripts/install_packages.sh image        the same, and what the container image has besides (docs/containers.md)
#   scripts/install_packages.sh --list ...   prints the packages in place of installing them
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
  libxxhash-dev                              # xxHash: checksums of checkpoints; its header alone, nothing is linked
  libicu-dev                                 # ICU: the classes of characters that tokenizers split by
  nlohmann-json3-dev libcli11-dev libspdlog-dev
  libopenmpi-dev openmpi-bin                 # ranks over MPI
  bible-kjv bible-kjv-text                   # the text of configs/gpt.json
)

# What a built zerotrain links. The names of these packages hold the number of the library's interface, another one in
# every release, so they are looked up: as the dependency of a package above (left of the colon) that starts as stated.
linked=(libdnnl-dev:libdnnl libhwy-dev:libhwy libspdlog-dev:libspdlog zlib1g-dev:zlib1g libicu-dev:libicu libopenmpi-dev:libopenmpi)
runtime=(
  libgomp1                                   # OpenMP, for oneDNN
  openmpi-bin                                # mpirun
)

list=0 runtime_only=0
for group in "$@"; do
  case $group in
    tests) packages+=(catch2) ;;
    checks) packages+=(clang-format-14 shellcheck) ;;
    datasets) packages+=(dataset-fashion-mnist) ;;
    runtime) runtime_only=1 ;;
    image) runtime_only=1 runtime+=(tini) ;;  # process 1 of a container: passes signals on, collects the dead
    --list) list=1 ;;
    *)
      echo "install_packages: unknown argument $group; it is tests, checks, datasets, runtime, image or --list" >&2
      exit 2
      ;;
  esac
done

[ "${ZEROTRAIN_SKIP_INSTALL:-0}" != 1 ] || [ $list = 1 ] || exit 0

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  {
    echo "install_packages: this script installs on Debian and Ubuntu. Elsewhere install the equivalents of"
    echo "  ${packages[*]}"
    echo "and run again with ZEROTRAIN_SKIP_INSTALL=1."
  } >&2
  exit 1
fi

as_root=()
log=$(mktemp)
trap 'rm -f "$log"' EXIT
run() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive "$@" >"$log" 2>&1 </dev/null; }

updated=0
# A list that cannot be fetched need not matter: the packages may come from another.
update() {
  [ $updated = 0 ] || return 0
  updated=1
  if ! run apt-get update --quiet; then
    tail -n 5 "$log" >&2
    echo "install_packages: apt-get update failed; going on with the lists that are there" >&2
  fi
}

is_installed() {
  [ "$(dpkg-query --show --showformat='${db:Status-Status}\n' "$1" 2>/dev/null | sort -u)" = installed ]
}

# The name of a library's package in this release: "libdnnl-dev:libdnnl" gives libdnnl2 on Debian 12. Asked of the
# packages that are installed, then of those that can be.
library_of() {
  local depends
  depends=$(dpkg-query --show --showformat='${Depends}\n' "${1%%:*}" 2>/dev/null || true)
  [ -n "$depends" ] || depends=$(apt-cache show "${1%%:*}" 2>/dev/null | sed -n '/^Depends: /{s///p;q}' || true)
  tr -s ', ' '\n' <<<"$depends" | grep -m 1 -xE "${1#*:}[0-9.]*(t64)?" || true
}

become_root() {
  [ "$(id -u)" -ne 0 ] || return 0
  if ! command -v sudo >/dev/null; then
    {
      echo "install_packages: these packages are missing, and installing needs root or sudo:"
      echo "  apt-get install $*"
    } >&2
    exit 1
  fi
  as_root=(sudo)
}

if [ $runtime_only = 1 ]; then
  packages=("${runtime[@]}")
  for entry in "${linked[@]}"; do
    library=$(library_of "$entry")
    if [ -z "$library" ]; then
      become_root "the library of ${entry%%:*}"
      update
      library=$(library_of "$entry")
    fi
    if [ -z "$library" ]; then
      echo "install_packages: no package ${entry%%:*} here that tells the name of its library, ${entry#*:}" >&2
      exit 1
    fi
    packages+=("$library")
  done
fi
if [ $list = 1 ]; then
  printf '%s\n' "${packages[@]}"
  exit 0
fi

missing=()
for package in "${packages[@]}"; do
  is_installed "$package" || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

become_root "${missing[@]}"
echo "installing ${missing[*]}" >&2
update
if ! run apt-get install --quiet --yes --no-install-recommends "${missing[@]}"; then
  tail -n 20 "$log" >&2
  echo "install_packages: apt-get could not install ${missing[*]}" >&2
  exit 1
fi
