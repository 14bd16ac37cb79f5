#!/usr/bin/env bash
# Checks in seconds, without building an image, what would make one fail: the Dockerfile's stages and files, that what
# it copies is enough to configure a build, that the entry point passes every verb on, and that the run-time packages are
# those whose libraries zerotrain links.
#
#   scripts/docker/lint.sh [BINARY]      build/zerotrain; without one verbs and packages are not compared
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
binary=${1:-build/zerotrain}
failed=0
wrong() { echo "Dockerfile: $*" >&2; failed=1; }
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT

# Instructions, one a line, with the number of their first line before them.
instructions=$temporary/instructions
awk '
  /^[[:space:]]*(#|$)/ { next }
  { if (text == "") first = NR
    more = sub(/\\[[:space:]]*$/, "")
    text = text $0
    if (!more) { gsub(/[[:space:]]+/, " ", text); print first " " text; text = "" } }
  END { if (text != "") print first " " text " <continues after the last line>" }' Dockerfile >"$instructions"
if grep -q '<continues' "$instructions"; then wrong "the last instruction goes on after the end of the file"; fi

project_files() { git ls-files --cached --others --exclude-standard -- "$@"; }
let_through() {  # whether .dockerignore, which leaves out everything it does not name, names the path
  local line
  while read -r line; do
    case $line in '!'*) case $1/ in "${line#!}"/*) return 0 ;; esac ;; esac
  done <.dockerignore
  return 1
}

stages=' ' arguments=' ' stage='' sources_of_build=()
while read -r number instruction rest; do
  case $instruction in
    ARG) arguments+="${rest%%=*} " ;;
    FROM)
      read -r from as stage <<<"$rest"
      if [ "${as:-}" != AS ] || [ -z "$stage" ]; then wrong "line $number: a stage needs a name: FROM IMAGE AS NAME"; fi
      while [[ $from =~ \$\{([A-Z]+)\} ]]; do
        case $arguments in *" ${BASH_REMATCH[1]} "*) ;; *) wrong "line $number: no ARG ${BASH_REMATCH[1]} before" ;; esac
        from=${from/"${BASH_REMATCH[0]}"/}
      done
      stages+="$stage "
      ;;
    COPY)
      read -r -a words <<<"$rest"
      if [[ ${words[0]} == --from=* ]]; then
        case $stages in *" ${words[0]#--from=} "*) ;; *) wrong "line $number: no stage ${words[0]#--from=} before" ;; esac
        continue
      fi
      for source in "${words[@]:0:${#words[@]}-1}"; do
        [ -n "$(project_files "$source")" ] || wrong "line $number: no file $source in the repository"
        let_through "$source" || wrong "line $number: .dockerignore leaves out $source"
        [ "$stage" != build ] || sources_of_build+=("$source")
      done
      ;;
    RUN)
      program=${rest%% *}
      case $program in
        scripts/*) [ -x "$program" ] || wrong "line $number: $program cannot be executed" ;;
      esac
      ;;
    ENV | LABEL | WORKDIR | USER | STOPSIGNAL | ENTRYPOINT | CMD) ;;
    *) wrong "line $number: unexpected instruction $instruction" ;;
  esac
done <"$instructions"
[ "$stages" = " build build-gpu gpu cpu " ] || wrong "stages are$stages, not build, build-gpu, gpu, and cpu as the last"

# The stages for GPUs are those for CPUs but for their base, the name of the other and the backend.
of_stage() {
  awk -v stage="$1" '$2 == "FROM" { on = $NF == stage; next } on' "$instructions" | cut -d' ' -f2- |
    sed -e 's/build-gpu/build/; s/ -DZEROTRAIN_CUDA=ON "-DCMAKE_CUDA_ARCHITECTURES=[^"]*"//' \
      -e '/^ARG ARCHITECTURES=/d; s/, on GPUs and CPUs"/, on CPUs"/'
}
for pair in build:build-gpu cpu:gpu; do
  if ! difference=$(diff <(of_stage "${pair%:*}") <(of_stage "${pair#*:}")); then
    wrong "the stages ${pair%:*} and ${pair#*:} differ:"$'\n'"$difference"
  fi
done
for stage in cpu gpu; do
  user=$(of_stage "$stage" | sed -n 's/^USER //p' | tail -n 1)
  [[ $user =~ ^[1-9][0-9]*: ]] || wrong "stage $stage: the last USER is \"$user\", not the number of a user other than root"
done
version=$(sed -n 's/^project(zerotrain VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
grep -qx "ARG VERSION=$version" Dockerfile || wrong "ARG VERSION is not CMakeLists.txt's $version"

# What the build is given is enough to configure it.
mkdir "$temporary/source"
project_files "${sources_of_build[@]}" | tar -c -T - | tar -x -C "$temporary/source"
if ! cmake -S "$temporary/source" -B "$temporary/build" -G Ninja -DZEROTRAIN_TESTS=OFF -DZEROTRAIN_MPI=ON \
  -DZEROTRAIN_COMMIT=1234567 >"$temporary/log" 2>&1; then
  tail -n 20 "$temporary/log" >&2
  wrong "the files that it copies cannot be configured"
elif ! grep -q 'commit 1234567' "$temporary/build/version.cpp"; then
  wrong "-DZEROTRAIN_COMMIT is not what --version will name"
fi

# Every verb that the program has goes to it by the entry point, and nothing else does but what is no command.
if [ -x "$binary" ]; then
  mkdir "$temporary/bin"
  ln -s "$(realpath "$binary")" "$temporary/bin/zerotrain"
  enter() { PATH=$temporary/bin:$PATH sh scripts/docker/entrypoint.sh "$@" 2>&1; }
  verbs_of_entry=$(sed -n "s/^verbs='\(.*\)'$/\1/p" scripts/docker/entrypoint.sh)
  verbs_of_program="train $("$binary" --help | sed -n 's/^  zerotrain \([a-z]*\) --help: .*/\1/p' | tr '\n' ' ')"
  [ "$verbs_of_entry" = "${verbs_of_program% }" ] ||
    wrong "entrypoint.sh passes on \"$verbs_of_entry\", and $binary has \"${verbs_of_program% }\""
  for verb in $verbs_of_program; do
    [ "$(enter "$verb" --help)" = "$("$binary" "$verb" --help)" ] || wrong "entrypoint.sh $verb --help is not zerotrain's"
  done
  [ "$(enter)" = "$("$binary" --help)" ] || wrong "entrypoint.sh without arguments does not print the help"
  [ "$(enter --version)" = "$("$binary" --version)" ] || wrong "entrypoint.sh --version is not zerotrain's"
  [ "$(enter echo inspect)" = inspect ] || wrong "entrypoint.sh does not start commands"
  [[ $(enter inspekt) == *'did you mean inspect?'* ]] || wrong "entrypoint.sh does not give misspelled verbs to zerotrain"
else
  echo "no $binary: the verbs are not compared with those of the entry point" >&2
fi

# The libraries that the program names, by package, are the run-time list; what these need in turn, apt finds.
if [ -x "$binary" ]; then
  linked=$(
    ldd "$binary" >"$temporary/libraries"
    readelf -d "$binary" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | while read -r library; do
      case $library in ld-linux*) continue ;; esac  # the loader, which ldd names by its path: libc6
      file=$(awk -v name="$library" '$1 == name { print $3 }' "$temporary/libraries")
      # dpkg knows some files without, some with /usr before them.
      dpkg -S "$(readlink -f "$file")" 2>/dev/null || dpkg -S "${file#/usr}" 2>/dev/null || echo "$library: not of a package"
    done | cut -d: -f1 | grep -vxE 'libc6|libstdc\+\+6|libgcc-s1' | sort -u
  )
  listed=$(scripts/install_packages.sh --list runtime | grep -vx openmpi-bin | sort -u)
  if [ "$linked" != "$listed" ]; then
    wrong "scripts/install_packages.sh runtime is not what $binary links:"$'\n'"$(diff <(echo "$listed") <(echo "$linked"))"
  fi
else
  echo "no $binary: its libraries are not compared with the run-time packages" >&2
fi
[ $failed = 0 ] || exit 1
echo "Dockerfile: no mistakes found"
