#!/usr/bin/env bash
# Makes a base image by debootstrap, for machines that reach Debian's packages but no registry of images.
#
#   scripts/docker/bootstrap.sh [SUITE [IMAGE]]     scripts/docker/bootstrap.sh bookworm localhost/debian:12-slim
#
# As in Debian's slim images, manuals, documents and translations are left out. Needs root and debootstrap. The
# environment may say: MIRROR (the first one of this machine's apt; a suite of Ubuntu on Debian needs it to be named),
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
components=main
case $suite in jammy | noble) ubuntu=1 components=main,universe ;; esac
# shellcheck disable=SC2016  # apt's own placeholder
mirror=${MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | awk 'NR == 1')}
mirror=${mirror%/}
[ -n "$mirror" ] || fail "apt knows no mirror here: name one in MIRROR"
case $ubuntu,$mirror in
  1,*/debian) fail "$suite is a suite of Ubuntu, and $mirror a mirror of Debian: name one of Ubuntu in MIRROR" ;;
esac

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
