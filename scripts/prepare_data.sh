#!/bin/sh
# Writes into data/ what the configs learn from:
#
#   scripts/prepare_data.sh                  both of the following
#   scripts/prepare_data.sh kjv              data/kjv.txt, for configs/gpt.json: the King James Bible from Debian's
#                                            packages bible-kjv and bible-kjv-text, about 4 MB of plain ASCII. A verse a
#                                            line, an empty line between chapters; the references at the starts of lines
#                                            ("Ge1:1") are taken off, so that what a model learns is English alone.
#   scripts/prepare_data.sh fashion-mnist    data/fashion-mnist/, for configs/fashion-mnist.json: the four files of
#                                            Debian's package dataset-fashion-mnist, 30 MB, which is installed if missing
#
# Files that are there already are left as they are.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
say() { echo "prepare_data: $*" >&2; }

prepare_kjv() {
  target=$here/data/kjv.txt
  if [ -s "$target" ]; then
    say "$target is there already"
    return
  fi
  if ! command -v bible >/dev/null 2>&1; then
    say "the command 'bible' is missing; install it with: apt-get install bible-kjv bible-kjv-text"
    exit 2
  fi

  mkdir -p "$here/data"
  raw=$(mktemp "$here/data/.kjv.XXXXXX")
  text=$(mktemp "$here/data/.kjv.XXXXXX")
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
    say "expected 31102 verses, got $verses; is the package bible-kjv-text installed?"
    exit 1
  fi
  chmod 644 "$text"
  mv "$text" "$target"
  rm -f "$raw"
  say "wrote $target ($(wc -c <"$target") bytes)"
}

prepare_fashion_mnist() {
  target=$here/data/fashion-mnist
  installed=/usr/share/datasets/fashion-mnist
  files="train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz t10k-images-idx3-ubyte.gz t10k-labels-idx1-ubyte.gz"
  missing=
  for file in $files; do
    [ -s "$target/$file" ] || missing="$missing $file"
  done
  if [ -z "$missing" ]; then
    say "$target is there already"
    return
  fi
  [ -d "$installed" ] || "$here/scripts/install_packages.sh" datasets
  mkdir -p "$target"
  for file in $missing; do
    cp "$installed/$file" "$target/.$file"
    gzip --test "$target/.$file"
    mv "$target/.$file" "$target/$file"
  done
  say "wrote $target"
}

[ $# -gt 0 ] || set -- kjv fashion-mnist
for name in "$@"; do
  case $name in
    kjv) prepare_kjv ;;
    fashion-mnist) prepare_fashion_mnist ;;
    *)
      say "unknown data $name; it is kjv or fashion-mnist"
      exit 2
      ;;
  esac
done
