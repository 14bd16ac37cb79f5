#!/bin/sh
# Installs a build into a folder, and runs it from there; where Debian's tools are, makes the package and looks into it.
#
#   tests/install_test.sh BUILD_DIRECTORY WORK_DIRECTORY
set -eu

build=$1 work=$2
rm -rf "$work"
mkdir -p "$work"
fail() { echo "install_test: $*" >&2; exit 1; }
has() { [ -s "$1" ] || fail "$1 is missing or empty"; }

cmake --install "$build" --prefix "$work/usr" >"$work/log" || { cat "$work/log"; exit 1; }
for file in bin/zerotrain share/man/man1/zerotrain.1 share/bash-completion/completions/zerotrain \
  share/zsh/site-functions/_zerotrain share/fish/vendor_completions.d/zerotrain.fish share/zerotrain/configs/gpt.json \
  share/zerotrain/configs/data/friedman.csv share/doc/zerotrain/README.md share/doc/zerotrain/docs/use.md; do
  has "$work/usr/$file"
done

# Moved elsewhere, it runs: from its place, its libraries found, the configs' data beside them.
mv "$work/usr" "$work/elsewhere"
installed=$work/elsewhere
cd "$work"
if ldd "$installed/bin/zerotrain" | grep 'not found'; then fail "libraries are not found"; fi
"$installed/bin/zerotrain" --version | grep '^zerotrain ' >/dev/null || fail "--version"
"$installed/bin/zerotrain" --config "$installed/share/zerotrain/configs/regression.json" --set training.max_steps=5 \
  --quiet
has runs/regression/summary.json
# The text of gpt.json is looked for where scripts/prepare_data.sh would put it.
"$installed/bin/zerotrain" --config "$installed/share/zerotrain/configs/gpt.json" --dry-run 2>message && fail "no text"
grep -F "$installed/share/zerotrain/data/kjv.txt" message >/dev/null || fail "$(cat message)"
status=0
"$installed/bin/zerotrain" doctor >findings || status=$?
[ "$status" -le 1 ] || fail "doctor ended with $status"
grep -E '^(ok|note|problem) +instructions ' findings >/dev/null || fail "$(cat findings)"
"$installed/bin/zerotrain" doctor --json | grep '"verdict"' >/dev/null || fail "doctor --json"

if ! command -v dpkg-shlibdeps >/dev/null || ! command -v dpkg-deb >/dev/null; then
  echo "installed; no package was made: dpkg-dev is not installed"
  exit 0
fi
cpack -G DEB --config "$build/CPackConfig.cmake" -B "$work/package" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
package=$(find "$work/package" -maxdepth 1 -name 'zerotrain_*.deb')
has "$package"
dpkg-deb --contents "$package" >contents
for file in usr/bin/zerotrain usr/share/zerotrain/configs/mlp.json usr/share/bash-completion/completions/zerotrain; do
  grep " ./$file\$" contents >/dev/null || fail "the package has no $file"
done
dpkg-deb --field "$package" Depends | grep libdnnl >/dev/null || fail "the package does not depend on what it links"
echo "installed, and packaged as $(basename "$package")"
