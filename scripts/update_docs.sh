#!/usr/bin/env bash
# Writes anew what docs/ takes from the program: the tables of docs/config.md and docs/precision.md,
# docs/config.schema.json, docs/errors.md, and the examples in docs/precision.md and docs/guards.md. Needs jq.
#
#   scripts/update_docs.sh      after scripts/test.sh has configured the build directory
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${BUILD_DIR:-$root/build}
"$root/scripts/build.sh" "$build" docs_test zerotrain
for page in "docs/config.md holds the table of keys" "docs/precision.md holds the table of presets" \
  "docs/config.schema.json is the schema that the program prints"; do
  ZEROTRAIN_UPDATE_DOCS=1 "$build/tests/docs_test" "$page" >/dev/null
done
errors=$(ZEROTRAIN="$build/zerotrain" "$root/scripts/show_errors.sh")
printf '%s\n' "$errors" >"$root/docs/errors.md"

# put_examples PAGE SUBJECT: between the two marks of the page.
put_examples() {
  local page=$root/docs/$1 examples
  examples=$(ZEROTRAIN="$build/zerotrain" "$root/scripts/step_examples.sh" "$2")
  EXAMPLES=$examples awk '
    /^<!-- End of what scripts\/step_examples.sh/ { inside = 0 }
    !inside { print }
    /^<!-- Below: written by scripts\/step_examples.sh/ { print ""; print ENVIRON["EXAMPLES"]; print ""; inside = 1 }
  ' "$page" >"$page.new"
  mv "$page.new" "$page"
}
put_examples precision.md scaling
put_examples guards.md guards
