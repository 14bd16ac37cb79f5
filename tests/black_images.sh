#!/bin/sh
# Writes IDX files of 1,000 black images of 28 x 28 and their classes, all 0, into a folder, and runs a command with
# data.* set to them: black_images.sh FOLDER COMMAND...
set -eu
folder=$1
shift
mkdir -p "$folder"
{ printf '\000\000\010\003\000\000\003\350\000\000\000\034\000\000\000\034' && head -c 784000 /dev/zero; } >"$folder/images"
{ printf '\000\000\010\001\000\000\003\350' && head -c 1000 /dev/zero; } | gzip >"$folder/labels.gz"
exec "$@" --set "data.images=$folder/images" --set "data.labels=$folder/labels.gz" \
  --set "data.validation_images=$folder/images" --set "data.validation_labels=$folder/labels.gz"
