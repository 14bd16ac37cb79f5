#!/usr/bin/env bash
# Makes a base image by debootstrap, for machines that reach Debian's packages but no registry of images.
#
#   scripts/docker/bootstrap.sh [SUITE [IMAGE]]     scripts/docker/bootstrap.sh bookworm localhost/debian:12-slim
#
# As in Debian's slim images, manuals, documents and translations are left out. Needs root and debootstrap. The
# environment may say: MIRROR (http://deb.debian.org/debian; with a suite of Ubuntu http://archive.ubuntu.com/ubuntu),
# CONTAINER_TOOL (docker, podman or buildah; else the first that is there).
set -euo pipefail

case ${1:-} in -h | --help) sed -n '2,8p' "${BASH_SOURCE[0]}" | cut -c3-; exit 0 ;; esac
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/docker/tool.sh
. "$here/tool.sh"
suite=${1:-bookworm}
image=${2:-localhost/debian:12-slim}
fail() { echo "bootstrap: $*" >&2; exit 1; }

[ "$(id -u)" -eq 0 ] || fail "debootstrap needs root"
command -v debootstrap >/dev/null || fail "debootstrap is missing (Debian: apt-get install debootstrap)"
tool=$(container_tool) || exit 1

ubuntu=0
case $suite in jammy | noble) ubuntu=1 ;; esac
if [ $ubuntu = 1 ]; then
  mirror=${MIRROR:-http://archive.ubuntu.com/ubuntu}
  components=main,universe
else
  mirror=${MIRROR:-http://deb.debian.org/debian}
  components=main
fi

root=$(mktemp -d "${TMPDIR:-/var/tmp}/zerotrain-base.XXXXXX")
trap 'rm -rf --one-file-system "$root"' EXIT
echo "bootstrap: $suite from $mirror" >&2
mkdir -p "$root/etc/dpkg/dpkg.cfg.d" "$root/etc/apt"
printf 'path-exclude %s\n' '/usr/share/doc/*' '/usr/share/info/*' '/usr/share/man/*' '/usr/share/locale/*' \
  >"$root/etc/dpkg/dpkg.cfg.d/slim"
echo 'path-include /usr/share/doc/*/copyright' >>"$root/etc/dpkg/dpkg.cfg.d/slim"
if ! debootstrap --variant=minbase --components="$components" "$suite" "$root" "$mirror" >"$root.log" 2>&1; then
  tail -n 5 "$root.log" >&2
  rm -f "$root.log"
  fail "debootstrap could not make $suite from $mirror"
fi
rm -f "$root.log"

list=$root/etc/apt/sources.list
echo "deb $mirror $suite ${components//,/ }" >"$list"
echo "deb $mirror $suite-updates ${components//,/ }" >>"$list"
case $ubuntu,$mirror in
  0,*/debian) echo "deb ${mirror}-security $suite-security ${components//,/ }" >>"$list" ;;
  1,*) echo "deb $mirror $suite-security ${components//,/ }" >>"$list" ;;
esac
rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/cache/apt/*.bin "$root"/var/lib/apt/lists/* "$root"/var/log/*
find "$root/usr/share/locale" "$root/usr/share/man" "$root/usr/share/info" -mindepth 1 -delete 2>/dev/null || true
find "$root/usr/share/doc" -type f ! -name copyright -delete

case $tool in
  buildah)
    container=$(buildah from scratch)
    buildah add --quiet "$container" "$root" / >/dev/null
    buildah config --cmd bash "$container"
    buildah commit --quiet --rm "$container" "$image" >/dev/null
    ;;
  *) tar -C "$root" -c . | "$tool" import --change 'CMD ["bash"]' - "$image" >/dev/null ;;
esac
echo "$image"
