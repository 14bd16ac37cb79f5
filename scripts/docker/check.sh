#!/usr/bin/env bash
# Builds the container image with docker, podman or buildah, whichever works here, and checks it: no compiler in it, a
# user who is not root, training under mpirun and with --ranks that ends in the same weights, exit codes, other users,
# data from outside. Prints what it did; ends with 0 if all is well.
#
#   scripts/docker/check.sh [--target cpu|gpu] [--base IMAGE] [--bootstrap] [--image NAME] [--no-build]
#
#   --target     the stage of the Dockerfile: cpu (default) or gpu
#   --base       what the CPU image is based on: debian:12-slim (default), ubuntu:24.04, ...
#   --bootstrap  make that base here by debootstrap, where no registry can be reached (scripts/docker/bootstrap.sh;
#                root), unless an image of its name is there: localhost/debian:12-slim without --base
#   --image      name of the image, zerotrain or zerotrain:gpu
#   --no-build   check the image that is there
#
# CONTAINER_TOOL says which program to take. buildah runs everything in chroots, for machines whose kernel or sandbox
# allows no more; BUILDAH_ISOLATION says otherwise.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
# shellcheck source=scripts/docker/tool.sh
. "$here/tool.sh"
usage() { sed -n '2,17p' "${BASH_SOURCE[0]}" | cut -c3-; }
fail() { echo "check: $*" >&2; exit 1; }

target=cpu base='' image='' bootstrap=0 build=1
while [ $# -gt 0 ]; do
  case $1 in
    --target | --base | --image)
      [ $# -gt 1 ] || fail "$1 needs a value"
      printf -v "${1#--}" %s "$2"
      shift
      ;;
    --bootstrap) bootstrap=1 ;;
    --no-build) build=0 ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done
case $target in
  cpu) image=${image:-zerotrain} ;;
  gpu) image=${image:-zerotrain:gpu} ;;
  *) fail "--target is cpu or gpu, not $target" ;;
esac
tool=$(container_tool) || exit 1
case $image in */*) ;; *) [ "$tool" = docker ] || image=localhost/$image ;; esac
export BUILDAH_ISOLATION=${BUILDAH_ISOLATION:-chroot}
echo "check: $("$tool" --version)"

has_image() { "$tool" inspect --type image "$1" >/dev/null 2>&1; }

if [ $bootstrap = 1 ]; then
  base=${base:-localhost/debian:12-slim}
  case $base in
    *bookworm* | *:12*) suite=bookworm ;;
    *trixie* | *:13*) suite=trixie ;;
    *noble* | *:24.04*) suite=noble ;;
    *) fail "--bootstrap cannot tell a suite from $base; use scripts/docker/bootstrap.sh SUITE $base" ;;
  esac
  has_image "$base" || CONTAINER_TOOL=$tool "$here/bootstrap.sh" "$suite" "$base"
fi

commit=$(git -C "$root" rev-parse --short HEAD 2>/dev/null || echo unknown)
if [ $build = 1 ]; then
  arguments=(--target "$target" --build-arg "COMMIT=$commit")
  [ -z "$base" ] || arguments+=(--build-arg "BASE=$base")
  [ "$tool" != buildah ] || arguments+=(--layers)
  echo "check: $tool build ${arguments[*]} -t $image $root"
  start=$SECONDS
  "$tool" build "${arguments[@]}" -t "$image" "$root"
  echo "check: built in $((SECONDS - start)) s"
else
  has_image "$image" || fail "there is no image $image; without --no-build it is made"
  commit=''  # of whatever it was built from
fi

# Runs a command in a fresh container as `docker run` does, with the image's entry point. Options before --: --user and
# --volume, which all three tools have.
run_in() {
  local options=() container code=0
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  shift
  if [ "$tool" != buildah ]; then
    "$tool" run --rm --interactive "${options[@]}" "$image" "$@"
    return
  fi
  local entry
  read -r -a entry < <(buildah inspect --type image --format '{{range .OCIv1.Config.Entrypoint}}{{.}} {{end}}' "$image")
  container=$(buildah from --pull-never "$image")
  buildah run "${options[@]}" "$container" -- "${entry[@]}" "$@" || code=$?
  buildah rm "$container" >/dev/null
  return $code
}

failed=0
check() {  # a name, then a command that must succeed
  local name=$1 output
  shift
  if output=$("$@" 2>&1); then
    echo "ok      $name"
  else
    echo "FAILED  $name"
    tail -n 15 <<<"$output" | sed 's/^/        /'
    failed=1
  fi
}
says_help() { run_in -- "$@" </dev/null | grep -q 'Exit codes:'; }
code_is() {
  local wanted=$1 code=0
  shift
  run_in -- "$@" </dev/null || code=$?
  [ "$code" -eq "$wanted" ] || { echo "ended with $code, not $wanted"; return 1; }
}
another_user() {
  run_in --user 12345:12345 -- mpirun -n 2 zerotrain --config configs/mlp.json --set training.max_steps=2 </dev/null
}
as_root() {
  run_in --user 0:0 -- mpirun -n 2 zerotrain --config configs/mlp.json --set training.max_steps=2 </dev/null
}
data_from_outside() {
  local folder=$1
  mkdir -p "$folder/data" "$folder/runs"
  chmod 755 "$folder" "$folder/data"
  chmod 777 "$folder/runs"
  for _ in $(seq 200); do echo 'Of the making of many books there is no end.'; done >"$folder/data/kjv.txt"
  run_in --volume "$folder/data:/data:ro" --volume "$folder/runs:/runs" -- mpirun -n 2 zerotrain \
    --config configs/gpt.json --set training.max_steps=2 --set training.sample_prompt=Of </dev/null
  grep -q '"weights_checksum"' "$folder/runs/gpt/summary.json"
}

failed_inside=0
run_in -- sh -s -- "$commit" "$target" <"$here/inside.sh" || failed_inside=1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
check "without arguments it prints the help" says_help
check "--help and zerotrain --help do, too" eval 'says_help --help && says_help zerotrain --help'
check "a verb goes to zerotrain" code_is 0 init --model mlp --output /tmp/mlp.json
check "an unknown verb ends with 2" code_is 2 inspekt
check "an unknown option ends with 2" code_is 2 --no-such-option
check "any user may run it" another_user
check "root may, mpirun included" as_root
check "data and runs outside of the container" data_from_outside "$folder"
if [ "$tool" = buildah ]; then
  size=$(buildah images --format '{{.Size}}' "$image" | head -n 1)
else
  size="$("$tool" image inspect --format '{{.Size}}' "$image") bytes"
fi
echo "check: $image, $size"
if [ $failed = 0 ] && [ $failed_inside = 0 ]; then echo "check: all is well"; else fail "something is not"; fi
