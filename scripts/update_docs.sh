#!/usr/bin/env bash
# Writes anew what docs/ takes from the program: the tables of docs/config.md and docs/precision.md, and docs/errors.md.
#
#   scripts/update_docs.sh      after scripts/test.sh has configured the build directory
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${BUILD_DIR:-$root/build}
"$root/scripts/build.sh" "$build" docs_test zerotrain
for page in "docs/config.md holds the table of keys" "docs/precision.md holds the table of presets"; do
  ZEROTRAIN_UPDATE_DOCS=1 "$build/tests/docs_test" "$page" >/dev/null
done
errors=$(ZEROTRAIN="$build/zerotrain" "$root/scripts/show_errors.sh")
printf '%s\n' "$errors" >"$root/docs/errors.md"
