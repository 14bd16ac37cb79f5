#!/bin/sh
# What the container image starts: options and verbs of zerotrain go to zerotrain, any other word is a command, or else
# a verb that is misspelled.
#
#   docker run zerotrain                          zerotrain --help
#   docker run zerotrain --config FILE            zerotrain --config FILE
#   docker run zerotrain inspect runs/gpt         zerotrain inspect runs/gpt
#   docker run zerotrain mpirun -n 2 zerotrain …  as it stands
set -eu

# Of zerotrain --help; scripts/docker/lint.sh compares them.
verbs='train prove init doctor compare estimate generate evaluate inspect replay report export import tokenize completion'

case ${1:-} in
  '') exec zerotrain --help ;;
  -*) exec zerotrain "$@" ;;
esac
for verb in $verbs; do
  if [ "$1" = "$verb" ]; then exec zerotrain "$@"; fi
done
if command -v "$1" >/dev/null; then exec "$@"; fi
exec zerotrain "$@"
