#!/usr/bin/env bash
# Checks scripts/slurm/train.sbatch without Slurm: its options fit together, and with a made-up srun in its place, what
# it starts and how it ends.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
batch=scripts/slurm/train.sbatch
failed=0
wrong() { echo "$batch: $*" >&2; failed=1; }

directive() { sed -n "s/^#SBATCH --$1=//p" "$batch"; }
first_command=$(grep -n -m 1 '^[^#]' "$batch" | cut -d: -f1)
last_directive=$(grep -n '^#SBATCH' "$batch" | tail -n 1 | cut -d: -f1)
[ "$last_directive" -lt "$first_command" ] || wrong "sbatch reads no options behind the first command, line $first_command"
known='job-name|nodes|gpus-per-node|ntasks-per-node|cpus-per-task|exclusive|mem|time|signal|requeue|output|open-mode'
unknown=$(sed -n 's/^#SBATCH --\([a-z-]*\).*/\1/p' "$batch" | grep -vxE "$known" || true)
[ -z "$unknown" ] || wrong "options that this check does not know: $unknown"
repeated=$(sed -n 's/^#SBATCH \(--[a-z-]*\).*/\1/p' "$batch" | sort | uniq -d)
[ -z "$repeated" ] || wrong "given twice: $repeated"
[ "$(directive gpus-per-node)" = "$(directive ntasks-per-node)" ] || wrong "not one rank a GPU"
[[ $(directive signal) =~ ^USR1@[0-9]+$ ]] || wrong "--signal must reach the ranks (no B:) as USR1, with the seconds after @"

temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
cat >"$temporary/srun" <<'END'
#!/bin/sh
echo "${0##*/} $*"
exit "${SRUN_CODE:-0}"
END
sed '/^exit/d' "$temporary/srun" >"$temporary/scontrol"
chmod +x "$temporary"/*

# Runs the batch file as job 7 with the variables given, checks its code and that its output matches.
expect() {  # code, pattern, variables..., --, arguments of the batch file
  local code=$1 pattern=$2 variables=() output got=0
  shift 2
  while [ "$1" != -- ]; do variables+=("$1"); shift; done
  shift
  output=$(env PATH="$temporary:$PATH" SLURM_JOB_ID=7 SLURM_JOB_NAME=name SLURM_NTASKS=16 SLURM_JOB_NODELIST='n[1-2]' \
    SLURM_NTASKS_PER_NODE=8 SLURM_CPUS_PER_TASK=4 ZEROTRAIN=true "${variables[@]}" bash "$batch" "$@" 2>&1) || got=$?
  [ "$got" = "$code" ] || wrong "with ${variables[*]} and arguments $* it ended with $got, not $code"$'\n'"$output"
  grep -qE -- "$pattern" <<<"$output" || wrong "with ${variables[*]} and arguments $* it does not say $pattern:"$'\n'"$output"
}
gpus=SLURM_GPUS_PER_NODE
expect 0 '^srun --mpi=pmix --cpus-per-task=4 .* true --config c.json --output runs/name-7$' $gpus=h200:8 -- --config c.json
if grep -q '^ *--gpu' "$batch"; then wrong "srun hides GPUs from the ranks"; fi
expect 0 '^srun --mpi=pmix_v4 .*--wait=[0-9]+ true --config c.json --output mine$' $gpus=0 ZEROTRAIN_MPI=pmix_v4 -- --config c.json --output mine
expect 0 ' --output=mine$' $gpus=0 -- --config c.json --output=mine
expect 0 ' true in image --config c.json ' "ZEROTRAIN=true in image" -- --config c.json
expect 0 ' --resume$' SLURM_RESTART_COUNT=1 -- --config c.json
expect 0 ' --overwrite --output runs/name-7$' SLURM_RESTART_COUNT=1 -- --config c.json --overwrite
expect 2 '8 ranks and 4 GPUs a node' $gpus=4 -- --config c.json
expect 2 'say what to train' $gpus=8 --
expect 2 'is not there' ZEROTRAIN=no/such/program -- --config c.json
expect 2 'submit this script' SLURM_JOB_ID= -- --config c.json
expect 138 '^srun ' SRUN_CODE=138 -- --config c.json
expect 138 '^scontrol requeue 7$' SRUN_CODE=138 ZEROTRAIN_REQUEUE=1 -- --config c.json
expect 1 '^srun ' SRUN_CODE=1 ZEROTRAIN_REQUEUE=1 -- --config c.json
[ $failed = 0 ] || exit 1
echo "$batch: no mistakes found"
