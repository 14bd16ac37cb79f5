#!/usr/bin/env bash
# Collects the Debian packages that zerotrain is built from, and what they depend on, in a folder: with it
# scripts/gpu-check.sh builds on a machine that has neither network nor root. Run it where apt has network, on the same
# processor architecture, and on the same release or an older one. Nothing is installed.
#
#   scripts/gpu-check-pack.sh DIR
#
# Taken for granted on the other machine: what every Debian has, g++ and CMake with their libraries, the CUDA toolkit.
set -euo pipefail

case $#,${1:-} in
  1,[!-]*) ;;
  *) sed -n '2,8p' "${BASH_SOURCE[0]}" | cut -c3- >&2; exit 2 ;;
esac
command -v apt-get >/dev/null || { echo "gpu-check-pack: apt-get is missing: this runs on Debian and Ubuntu" >&2; exit 1; }

granted=(g++ cmake)
# What else is built from, and Python, which runs the check itself. (The text is a training run's.)
mapfile -t wanted < <("$(dirname "${BASH_SOURCE[0]}")/install_packages.sh" --list tests |
  grep -vxE 'g\+\+|cmake|git|bible-.*')
wanted+=(python3)
# What these are depended on for is not used here: Fortran, remote hosts, pictures of a machine, autotools, users.
unused='^(gfortran.*|libgfortran.*|openssh-client|libedit2|libfido2-1|libcbor.*|libbsd0|libx11-.*|libxcb1|libxext6'
unused+='|libxau6|libxdmcp6|libxnvctrl0|libhwloc-plugins|libjs-.*|automake|autoconf|autotools-dev|m4|passwd|adduser'
unused+='|libsemanage.*|libsepol2|media-types|readline-common|libreadline8)$'

folder=$1
mkdir -p "$folder/partial"
cd "$folder"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/partial"

# "FILE SIZE URI" of each package that a machine with nothing installed would need for the arguments.
closure() {
  apt-get -qq --no-install-recommends -o Dir::State::status=/dev/null -o "Dir::Cache::archives=$work" --print-uris \
    install "$@" | awk '{ gsub(/\047/, "", $1); print $2, $3, $1 }' | sort
}

mapfile -t essential < <(dpkg-query --show --showformat='${Essential} ${Package}\n' | sed -n 's/^yes //p')
closure "${granted[@]}" "${essential[@]}" >"$work/granted"
closure "${wanted[@]}" >"$work/wanted"
comm -23 "$work/wanted" "$work/granted" >"$work/missing"

packages=()
while read -r file _; do
  package=${file%%_*}
  [[ $package =~ $unused ]] || packages+=("$package")
done <"$work/missing"
packages+=(zlib1g)  # which zlib1g-dev names with its version

rm -f ./*.deb
# Without root apt cannot change to its own user; that it downloads as this one is no matter for a warning.
apt-get -qq -o APT::Sandbox::User="$(id -un)" download "${packages[@]}"
rmdir partial 2>/dev/null || true
bytes=$(cat ./*.deb | wc -c)
printf '%d packages, %d.%d MB, for %s\n' "${#packages[@]}" $((bytes / 1000000)) $((bytes / 100000 % 10)) \
  "$(dpkg --print-architecture)"
