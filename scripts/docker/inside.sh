#!/bin/sh
# Checks an image from inside: scripts/docker/check.sh gives it to a shell in the container. Prints a line for each
# check and ends with 1 if one failed. Arguments: the commit that --version must name; cpu or gpu.
# shellcheck disable=SC2317  # the functions are called by check()
set -u

commit=$1
target=$2
failed=0
directory=$(mktemp -d)

check() {  # a name, then a command that must succeed
  name=$1
  shift
  if "$@" >"$directory/output" 2>&1; then
    echo "ok      $name"
  else
    echo "FAILED  $name"
    tail -n 15 "$directory/output" | sed 's/^/        /'
    failed=1
  fi
}
ends_with() {  # a code, then a command that must end with it
  wanted=$1 code=0
  shift
  "$@" || code=$?
  [ "$code" -eq "$wanted" ] || { echo "ended with $code, not $wanted: $*"; return 1; }
}
not_root() { [ "$(id -u)" -ne 0 ]; }
no_compiler() {
  found=0
  for program in cc c++ gcc g++ clang clang++ cc1 as ld nvcc ptxas cmake ninja make git; do
    if command -v "$program"; then found=1; fi
  done
  if find / -xdev \( -name cc1plus -o -name 'libstdc++.a' -o -name cicc \) 2>/dev/null | grep .; then found=1; fi
  [ "$found" = 0 ]
}
version_names() { zerotrain --version | grep -F "commit $commit" && zerotrain --version | grep -F 'MPI ('; }
all_libraries() {
  ldd "$(command -v zerotrain)" >"$directory/libraries" && cat "$directory/libraries"
  ! grep 'not found' "$directory/libraries"
}
gpu_backend() { ls -l /usr/local/lib/zerotrain/libzerotrain_cuda.so; }
checksum() { sed -n 's/.*"weights_checksum": "\([0-9a-f]*\)".*/\1/p' "$directory/$1/summary.json"; }
train() {  # the name of the run, then what starts it
  name_of_run=$1
  shift
  "$@" --config configs/gpt.json --set training.max_steps=4 --output "$directory/$name_of_run"
}
same_weights() {
  echo "by mpirun $(checksum mpi), by --ranks $(checksum local), by one rank $(checksum one)"
  [ -n "$(checksum mpi)" ] && [ "$(checksum mpi)" = "$(checksum local)" ] && [ "$(checksum mpi)" = "$(checksum one)" ]
}
stops_by_signal() {  # under mpirun, as `docker stop` does it
  mpirun -n 2 zerotrain --config configs/mlp.json --set training.max_steps=100000000 --output "$directory/stopped" &
  process=$! waited=0
  while [ ! -s "$directory/stopped/metrics.jsonl" ] && [ "$waited" -lt 60 ]; do
    sleep 1
    waited=$((waited + 1))
  done
  kill -USR1 "$process"
  ends_with 138 wait "$process" && grep '"stop_reason": "signal"' "$directory/stopped/summary.json"
}

check "the user is not root" not_root
check "no compiler" no_compiler
check "zerotrain --version names the commit and MPI" version_names
check "every library is there" all_libraries
[ "$target" = cpu ] || check "the CUDA backend is there" gpu_backend
check "trains a GPT with mpirun -n 2" train mpi mpirun -n 2 zerotrain
check "trains it with --ranks 2" train local zerotrain --ranks 2
check "trains it alone, with the same micro-batches" train one zerotrain --set train_micro_batch_size_per_gpu=4
check "the same weights each time" same_weights
check "runs/ in the working directory can be written" zerotrain --config configs/mixed_precision.json --overwrite
check "more ranks than cores" mpirun -n 5 zerotrain --config configs/mlp.json --set train_batch_size=5 \
  --set training.max_steps=2 --output "$directory/five"
check "a mistake in the config ends with 2" ends_with 2 mpirun -n 2 zerotrain --config configs/gpt.json --set no.such=1
check "SIGUSR1 ends a run under mpirun in order, with 138" stops_by_signal
rm -rf "$directory"
exit $failed
