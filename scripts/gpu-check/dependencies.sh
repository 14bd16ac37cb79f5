# shellcheck shell=bash
# For scripts/gpu-check.sh: where the libraries that zerotrain is built from come from. Sourced.

say() { echo "gpu-check: $*" >&2; }

# Unpacks the .deb files of a folder into another, without root and without dpkg where that is missing.
unpack_packages() {
  local from=$1 to=$2 package member
  rm -rf "$to"
  mkdir -p "$to"
  for package in "$from"/*.deb; do
    [ -e "$package" ] || { say "$from has no .deb files; scripts/gpu-check-pack.sh collects them"; return 1; }
    if command -v dpkg-deb >/dev/null; then
      dpkg-deb -x "$package" "$to" || return 1
    else
      member=$(ar t "$package" | grep '^data\.tar') || return 1
      case $member in
        *.xz) ar p "$package" "$member" | tar -xJf - -C "$to" || return 1 ;;
        *.zst) ar p "$package" "$member" | tar --zstd -xf - -C "$to" || return 1 ;;
        *) ar p "$package" "$member" | tar -xzf - -C "$to" || return 1 ;;
      esac
    fi
  done
}

# Files that name the folder where they were meant to be, and commands that only an installation would link.
settle_packages() {
  local root=$1 file target name
  while IFS= read -r -d '' file; do
    sed -i "s|^prefix=/usr|prefix=$root/usr|; s|=/usr/|=$root/usr/|" "$file"
  done < <(find "$root" -name '*.pc' -type f -print0)
  while IFS= read -r -d '' file; do
    target=$root$(readlink "$file")
    if [ -e "$target" ]; then ln -sfn "$target" "$file"; fi
  done < <(find "$root" -type l -lname '/*' -print0)
  mkdir -p "$root/mpi"
  for name in mpirun mpiexec mpicc; do
    if [ -e "$root/usr/bin/$name.openmpi" ]; then ln -sfn "$root/usr/bin/$name.openmpi" "$root/mpi/$name"; fi
  done
}

# extend VARIABLE FOLDER [first]: a folder that is there joins a list of folders, as its last or its first.
extend() {
  local held=${!1:-}
  [ -d "$2" ] || return 0
  if [ "${3:-}" = first ]; then export "$1=$2${held:+:$held}"; else export "$1=${held:+$held:}$2"; fi
}

# Lets compilers, CMake and programs find what lies under a folder: DIR/include, DIR/lib, DIR/bin, or DIR/usr/...
use_prefix() {
  local root=$1 prefix=$1 triplet libraries
  [ ! -d "$root/usr" ] || prefix=$root/usr
  triplet=$("${CXX:-g++}" -print-multiarch 2>/dev/null || true)
  [ -n "$triplet" ] || triplet=$(uname -m)-linux-gnu
  for libraries in "$root/lib" "$prefix/lib" "$prefix/lib64" "$root/lib/$triplet" "$prefix/lib/$triplet"; do
    extend LD_LIBRARY_PATH "$libraries"
    extend LIBRARY_PATH "$libraries"  # the linker's; CMake finds libraries by itself
    extend PKG_CONFIG_PATH "$libraries/pkgconfig"
  done
  extend PKG_CONFIG_PATH "$prefix/share/pkgconfig"
  extend CMAKE_PREFIX_PATH "$prefix"
  extend PATH "$prefix/bin"  # after the machine's own: its python3 may have PyTorch
  use_mpi "$root" "$prefix" "$prefix/lib/$triplet"
}

# Open MPI of unpacked packages, unless the machine has one: it must be told that it is not where it was built for.
use_mpi() {
  local root=$1 prefix=$2 libraries=$3
  [ -d "$root/mpi" ] && [ -d "$libraries/openmpi" ] || return 0
  if command -v mpicc >/dev/null && command -v mpirun >/dev/null; then return 0; fi
  extend PATH "$root/mpi" first
  extend LD_LIBRARY_PATH "$libraries/openmpi/lib"
  export OPAL_PREFIX=$prefix OPAL_BINDIR=$prefix/bin OPAL_DATADIR=$prefix/share OPAL_PKGDATADIR=$prefix/share/openmpi
  export OPAL_SYSCONFDIR=$root/etc/openmpi OPAL_INCLUDEDIR=$libraries/openmpi/include
  export OPAL_LIBDIR=$libraries/openmpi/lib OPAL_PKGLIBDIR=$libraries/openmpi/lib/openmpi3
  export PMIX_INSTALL_PREFIX=$libraries/pmix2
  export OMPI_MCA_plm=isolated  # one machine: no ssh is asked for
}

# The missing ones of what the build asks for, by a file that each brings.
missing_libraries() {
  local header
  local folders=()
  IFS=: read -r -a folders <<<"${CMAKE_PREFIX_PATH:-}"
  folders=("${folders[@]/%//include}")
  for header in nlohmann/json.hpp CLI/CLI.hpp spdlog/spdlog.h oneapi/dnnl/dnnl.hpp hwy/highway.h zlib.h xxhash.h \
    unicode/uchar.h; do
    printf '#if !__has_include(<%s>)\nmissing %s\n#endif\n' "$header" "$header"
  done | "${CXX:-g++}" -E -P "${folders[@]/#/-I}" -x c++ - | sed -n 's/^missing //p'
  command -v pkg-config >/dev/null || echo pkg-config
}
