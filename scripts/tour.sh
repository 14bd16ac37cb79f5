#!/usr/bin/env bash
# Runs every command of docs/tour.md again and holds what it prints against what stands there. Ends with 1, and shows the
# lines that differ, where a figure has moved.
#
#   scripts/tour.sh [--update] [--list] [SECTION...]
#
# --update writes what was printed into the page. SECTION: only those whose title has this text in it (a command may need
# the runs of the sections before it). --list shows each section's title and seconds.
# ZEROTRAIN names the program (build/zerotrain).
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
page=$root/docs/tour.md
update=no
list=no
wanted=()
while [ $# -gt 0 ]; do
  case $1 in
    --update) update=yes ;;
    --list) list=yes ;;
    -h | --help) sed -n '2,10p' "${BASH_SOURCE[0]}" | cut -c3-; exit 0 ;;
    -*) echo "tour: unknown option $1" >&2; exit 2 ;;
    *) wanted+=("$1") ;;
  esac
  shift
done
zerotrain=${ZEROTRAIN:-$root/build/zerotrain}
if [ ! -x "$zerotrain" ]; then
  echo "tour: $zerotrain is not there; build it (scripts/quickstart.sh) or name it with ZEROTRAIN" >&2
  exit 2
fi
zerotrain=$(realpath "$zerotrain")
if ! grep -q '\bavx2\b' /proc/cpuinfo; then
  echo "tour: skipped: this processor lacks AVX2, by which the page's figures are computed" >&2
  exit 77
fi

# The commands find build/zerotrain and configs/ as in the source folder; what they write is not kept.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
mkdir "$folder/tour" "$folder/tour/build"
ln -s "$zerotrain" "$folder/tour/build/zerotrain"
ln -s "$root/configs" "$folder/tour/configs"
cd "$folder/tour"

runs_section() {
  local text
  [ ${#wanted[@]} -gt 0 ] || return 0
  for text in "${wanted[@]}"; do
    case $section in *"$text"*) return 0 ;; esac
  done
  return 1
}

# The command that was read so far: runs it, its output goes to the new page.
failed=()
commands=0
run_command() {
  [ -n "$command" ] || return 0
  local status=0
  bash -c "$command" >"$folder/said" 2>&1 </dev/null || status=$?
  cat "$folder/said" >>"$folder/new"
  commands=$((commands + 1))
  if [ "$status" -ne 0 ]; then failed+=("code $status: $command"); fi
  command=""
}

# A console block is "$ COMMAND", further lines of it after "> ", and its output; another "$ " begins the next.
section=""
state=text
command=""
continues=no
began=$SECONDS
tell_time() {
  if [ $list = yes ] && [ -n "$section" ]; then printf '%4d s  %s\n' $((SECONDS - began)) "$section"; fi
  began=$SECONDS
}
while IFS= read -r line; do
  case $state in
    text)
      case $line in
        '#'*) tell_time; section=$line ;;
        '```console') if runs_section; then state=block; fi ;;
      esac
      printf '%s\n' "$line" >>"$folder/new"
      ;;
    block)
      case $line in
        '$ '*)
          run_command
          command=${line#'$ '}
          continues=yes
          printf '%s\n' "$line" >>"$folder/new"
          ;;
        '```')
          run_command
          state=text
          printf '%s\n' "$line" >>"$folder/new"
          ;;
        '> '*)
          # A line of output may begin so, too.
          if [ $continues = yes ]; then
            command+=$'\n'${line#'> '}
            printf '%s\n' "$line" >>"$folder/new"
          fi
          ;;
        *) continues=no ;;
      esac
      ;;
  esac
done <"$page"
tell_time

if [ ${#failed[@]} -gt 0 ]; then
  printf 'tour: a command failed with %s\n' "${failed[@]}" >&2
  exit 1
fi
if [ "$commands" -eq 0 ]; then
  echo "tour: no section has a title with that text in it" >&2
  exit 2
fi
if [ $update = yes ]; then
  cp "$folder/new" "$page"
elif ! diff -u --label "docs/tour.md" --label "printed now" "$page" "$folder/new"; then
  echo "tour: figures have moved; scripts/tour.sh --update writes them anew" >&2
  exit 1
fi
