#!/usr/bin/env bash
# From a fresh machine to a trained model: installs what is missing, builds, and trains configs/gpt.json on the
# King James Bible with two ranks; at the end it prints a text that the model made up.
#
#   scripts/quickstart.sh [OPTIONS OF ZEROTRAIN...]      scripts/quickstart.sh --set training.max_steps=100
#
# A second run installs and builds nothing and trains again, into the same runs/quickstart. More on installing:
# scripts/install_packages.sh.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
has_option() {  # whether one of the words in $1 is among the arguments that follow
  local names=" $1 " argument
  shift
  for argument in "$@"; do
    case $names in *" ${argument%%=*} "*) return 0 ;; esac
  done
  return 1
}

for argument in "$@"; do
  case $argument in -h | --help) sed -n '2,8p' "${BASH_SOURCE[0]}" | cut -c3-; exit 0 ;; esac
done

"$root/scripts/install_packages.sh"
options=()
[ -e "$root/build/build.ninja" ] || options=(-DCMAKE_BUILD_TYPE=Release -DZEROTRAIN_TESTS=OFF)
"$root/scripts/build.sh" "$root/build" zerotrain "${options[@]}"
"$root/scripts/prepare_data.sh" kjv 2> >(grep -v 'is there already' >&2)

arguments=(--config "$root/configs/gpt.json")
has_option "-r --ranks" "$@" || arguments+=(--ranks 2)
# The script's own directory is its to overwrite; one that was named by the user is not.
has_option "-o --output --resume" "$@" || arguments+=(--output "$root/runs/quickstart" --overwrite)
echo "zerotrain ${arguments[*]} $*" >&2
exec "$root/build/zerotrain" "${arguments[@]}" "$@"
