#!/bin/sh
# What the container image starts: options and verbs of zerotrain go to zerotrain, everything else is a command.
#
#   docker run zerotrain                          zerotrain --help
#   docker run zerotrain --config FILE            zerotrain --config FILE
#   docker run zerotrain mpirun -n 2 zerotrain …  as it stands
set -eu

case ${1:-} in
  '') exec zerotrain --help ;;
  -* | train | prove) exec zerotrain "$@" ;;
  *) exec "$@" ;;
esac
