#!/bin/sh
# Writes data/kjv.txt, the text that configs/gpt.json learns from: the King James Bible from Debian's packages
# bible-kjv and bible-kjv-text, about 4 MB of plain ASCII. A verse a line, an empty line between chapters; the
# references at the starts of lines ("Ge1:1") are taken off, so that what a model learns is English alone.
#
#   scripts/prepare_data.sh [FILE]
#
# A file that is there already is left as it is.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
target=${1:-$here/data/kjv.txt}

if [ -s "$target" ]; then
  echo "prepare_data: $target is there already" >&2
  exit 0
fi
if ! command -v bible >/dev/null 2>&1; then
  echo "prepare_data: the command 'bible' is missing; install it with: apt-get install bible-kjv bible-kjv-text" >&2
  exit 2
fi

folder=$(dirname "$target")
mkdir -p "$folder"
raw=$(mktemp "$folder/.kjv.XXXXXX")
text=$(mktemp "$folder/.kjv.XXXXXX")
trap 'rm -f "$raw" "$text"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

bible -f 'Gen1:1-Rev22:21' >"$raw" </dev/null
LC_ALL=C awk '
  match($0, /^[0-9A-Za-z]+:[0-9]+ +/) {
    chapter = $1
    sub(/:.*/, "", chapter)
    if (NR > 1 && chapter != previous) print ""
    previous = chapter
    print substr($0, RLENGTH + 1)
    next
  }
  { print "prepare_data: line " NR " of the output of bible has no reference: " $0 > "/dev/stderr"; exit 1 }
' "$raw" >"$text"

verses=$(grep -c . "$text" || true)
if [ "$verses" -ne 31102 ]; then
  echo "prepare_data: expected 31102 verses, got $verses; is the package bible-kjv-text installed?" >&2
  exit 1
fi
chmod 644 "$text"
mv "$text" "$target"
echo "prepare_data: wrote $target ($(wc -c <"$target") bytes)" >&2
