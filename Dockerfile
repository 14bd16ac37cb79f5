# The container image: zerotrain, Open MPI, the configs and the text of configs/gpt.json (docs/containers.md).
#
#   docker build -t zerotrain .                     for CPUs, on Debian 12
#   docker build -t zerotrain:gpu --target gpu .    for NVIDIA's GPUs, on Ubuntu 24.04 with CUDA 13
#
# Build arguments: BASE (another Debian or Ubuntu for the CPU image), CUDA (release of NVIDIA's images), ARCHITECTURES
# (of GPUs), COMMIT (what --version names), VERSION and SOURCE (labels). Stages that the target does not need are skipped
# by BuildKit (docker since 23.0), podman 4.4 and buildah 1.28; builders before those want NVIDIA's images for the CPU
# image, too.
ARG BASE=debian:12-slim
ARG CUDA=13.0.1

# ---- CPUs: build
FROM ${BASE} AS build
WORKDIR /source
COPY scripts/install_packages.sh scripts/
RUN scripts/install_packages.sh
COPY scripts/prepare_data.sh scripts/
RUN scripts/prepare_data.sh kjv && mkdir /image && cp -R data /image/
COPY CMakeLists.txt ./
COPY scripts/build.sh scripts/
COPY src src
# A layer of its own: another commit with the same sources need not compile again.
RUN scripts/build.sh build -DCMAKE_BUILD_TYPE=Release -DZEROTRAIN_TESTS=OFF -DZEROTRAIN_MPI=ON \
      -DZEROTRAIN_COMMIT=unknown
ARG COMMIT=unknown
RUN scripts/build.sh build "-DZEROTRAIN_COMMIT=$COMMIT" && cmake --install build --prefix /image/usr/local --strip

# ---- GPUs: build
FROM nvidia/cuda:${CUDA}-devel-ubuntu24.04 AS build-gpu
WORKDIR /source
COPY scripts/install_packages.sh scripts/
RUN scripts/install_packages.sh
COPY scripts/prepare_data.sh scripts/
RUN scripts/prepare_data.sh kjv && mkdir /image && cp -R data /image/
COPY CMakeLists.txt ./
COPY scripts/build.sh scripts/
COPY src src
# A100; H100 and H200; B200.
ARG ARCHITECTURES=80;90;100
RUN scripts/build.sh build -DCMAKE_BUILD_TYPE=Release -DZEROTRAIN_TESTS=OFF -DZEROTRAIN_MPI=ON -DZEROTRAIN_CUDA=ON \
      "-DCMAKE_CUDA_ARCHITECTURES=$ARCHITECTURES" -DZEROTRAIN_COMMIT=unknown
ARG COMMIT=unknown
RUN scripts/build.sh build "-DZEROTRAIN_COMMIT=$COMMIT" && cmake --install build --prefix /image/usr/local --strip

# ---- GPUs: run. cuBLAS and NCCL are in the base.
FROM nvidia/cuda:${CUDA}-runtime-ubuntu24.04 AS gpu
COPY scripts/install_packages.sh scripts/docker/setup_image.sh scripts/docker/openmpi.conf /usr/local/share/zerotrain/
RUN /usr/local/share/zerotrain/setup_image.sh
COPY scripts/docker/entrypoint.sh /usr/local/bin/zerotrain-entrypoint
COPY LICENSE /usr/local/share/zerotrain/
COPY configs /zerotrain/configs
COPY --from=build-gpu /image/ /
ARG VERSION=0.1.0
ARG COMMIT=unknown
ARG SOURCE
LABEL org.opencontainers.image.title="zerotrain" \
      org.opencontainers.image.description="Trains GPTs and MLPs sharded by the stages of ZeRO, on GPUs and CPUs" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$COMMIT" \
      org.opencontainers.image.source="$SOURCE" \
      org.opencontainers.image.licenses="Apache-2.0"
# In a container root is no administrator: mpirun need not refuse who became it (`--user 0`, rootless podman).
ENV OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
WORKDIR /zerotrain
USER 1000:1000
# By SIGUSR1 a run finishes its step and writes its summary, under mpirun too; `docker stop --time` grants it longer.
STOPSIGNAL SIGUSR1
ENTRYPOINT ["tini", "-s", "--", "zerotrain-entrypoint"]
CMD ["--help"]

# ---- CPUs: run
FROM ${BASE} AS cpu
COPY scripts/install_packages.sh scripts/docker/setup_image.sh scripts/docker/openmpi.conf /usr/local/share/zerotrain/
RUN /usr/local/share/zerotrain/setup_image.sh
COPY scripts/docker/entrypoint.sh /usr/local/bin/zerotrain-entrypoint
COPY LICENSE /usr/local/share/zerotrain/
COPY configs /zerotrain/configs
COPY --from=build /image/ /
ARG VERSION=0.1.0
ARG COMMIT=unknown
ARG SOURCE
LABEL org.opencontainers.image.title="zerotrain" \
      org.opencontainers.image.description="Trains GPTs and MLPs sharded by the stages of ZeRO, on CPUs" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$COMMIT" \
      org.opencontainers.image.source="$SOURCE" \
      org.opencontainers.image.licenses="Apache-2.0"
ENV OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
WORKDIR /zerotrain
USER 1000:1000
STOPSIGNAL SIGUSR1
ENTRYPOINT ["tini", "-s", "--", "zerotrain-entrypoint"]
CMD ["--help"]
