#!/usr/bin/env bash
# Builds zerotrain and makes a package of it for this release of Debian or Ubuntu: zerotrain_VERSION_ARCHITECTURE.deb.
# Prints its path. Where lintian is installed, it looks at the package, too.
#
#   scripts/package.sh [-DOPTION=VALUE...]      options of the build, as -DZEROTRAIN_MPI=OFF
#   apt-get install ./zerotrain_0.1.0-1_amd64.deb
#
# The environment may say: BUILD_DIR (build-package), OUT_DIR (the current directory), DEBFULLNAME and DEBEMAIL (who
# answers for the package).
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
directory=${BUILD_DIR:-$root/build-package}
case $directory in /*) ;; *) directory=$root/$directory ;; esac
out=$(cd "${OUT_DIR:-.}" && pwd)
options=(-DCMAKE_BUILD_TYPE=Release -DZEROTRAIN_TESTS=OFF -DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_SKIP_INSTALL_RPATH=ON
  -DZEROTRAIN_DEBIAN_FILES=ON -DZEROTRAIN_ZSH_COMPLETIONS=share/zsh/vendor-completions)
if [ -n "${DEBEMAIL:-}" ]; then options+=("-DZEROTRAIN_MAINTAINER=${DEBFULLNAME:-$DEBEMAIL} <$DEBEMAIL>"); fi

if ! command -v dpkg-shlibdeps >/dev/null; then
  echo "package: dpkg-shlibdeps is missing; install it with: apt-get install dpkg-dev" >&2
  exit 1
fi
"$root/scripts/install_packages.sh"
"$root/scripts/build.sh" "$directory" zerotrain usage "${options[@]}" "$@"
if grep -qs '^ZEROTRAIN_CUDA_BUILT:INTERNAL=ON' "$directory/CMakeCache.txt"; then
  "$root/scripts/build.sh" "$directory" zerotrain_cuda
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022  # of the folders in the package
if ! (cd "$work" && cpack -G DEB --config "$directory/CPackConfig.cmake" -B "$work") >"$work/log" 2>&1; then
  cat "$work/log" >&2
  exit 1
fi
package=$(find "$work" -maxdepth 1 -name '*.deb')
if command -v lintian >/dev/null; then
  # new-package-should-close-itp-bug: it is no package of the distribution.
  lintian --allow-root --suppress-tags initial-upload-closes-no-bugs "$package" >&2 || true
fi
cp "$package" "$out/"
echo "$out/$(basename "$package")"
