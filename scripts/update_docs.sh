#!/usr/bin/env bash
# Writes anew what docs/ takes from the program: the table of keys in docs/config.md, and docs/errors.md.
#
#   scripts/update_docs.sh      after scripts/test.sh has configured the build directory
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${BUILD_DIR:-$root/build}
"$root/scripts/build.sh" "$build" docs_test zerotrain
ZEROTRAIN_UPDATE_DOCS=1 "$build/tests/docs_test" "docs/config.md holds the table of keys" >/dev/null
errors=$(ZEROTRAIN="$build/zerotrain" "$root/scripts/show_errors.sh")
printf '%s\n' "$errors" >"$root/docs/errors.md"
