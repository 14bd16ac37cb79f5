# shellcheck shell=bash
# Which program makes images here. Sourced by the scripts of this folder.

# Prints docker, podman or buildah: what CONTAINER_TOOL says, or the first that works.
container_tool() {
  local tool
  for tool in ${CONTAINER_TOOL:-docker podman buildah}; do
    case $tool in
      docker) docker info >/dev/null 2>&1 && echo docker && return ;;
      podman | buildah) "$tool" info >/dev/null 2>&1 && echo "$tool" && return ;;
      *) echo "CONTAINER_TOOL is docker, podman or buildah, not $tool" >&2; return 1 ;;
    esac
  done
  echo "none of ${CONTAINER_TOOL:-docker, podman and buildah} works here (docker needs its service running)" >&2
  return 1
}
