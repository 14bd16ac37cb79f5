// The operations of device/operations.h as CUDA kernels: one overload each, which checks nothing of what the header
// promises, launches on the given stream and returns. Products are elsewhere (products.h).
//
// All are cut into blocks by shape alone: bits depend neither on the grid nor on which GPU of a kind runs them.
// Fill, Cast, Initialize, DropoutForward, ReduceOnto, what optimizers run, SumValues, SumSquares, Checksum and the
// gradient of SquaredError give the CPU's bits, normal numbers those of a CPU with fused multiplication and addition
// (AVX2 and above). Of NaN that is true for Cast and Checksum; arithmetic makes NaN of the GPU's own.
// Errors: RunError for what CUDA reports at the launch.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "device/operations.h"

namespace zt::cuda {

struct Launch {
  cudaStream_t stream = nullptr;
  std::byte* workspace = nullptr;  // at least gpu::workspace_of(operation) bytes, aligned to 256
};

void run(const Fill& op, const Launch& launch);
void run(const Cast& op, const Launch& launch);
void run(const Initialize& op, const Launch& launch);
void run(const BiasGradient& op, const Launch& launch);
void run(const EmbeddingForward& op, const Launch& launch);
void run(const EmbeddingBackward& op, const Launch& launch);
void run(const LayerNormForward& op, const Launch& launch);
void run(const LayerNormBackward& op, const Launch& launch);
void run(const ActivationForward& op, const Launch& launch);
void run(const ActivationBackward& op, const Launch& launch);
void run(const DropoutForward& op, const Launch& launch);
void run(const AttentionForward& op, const Launch& launch);
void run(const AttentionBackward& op, const Launch& launch);
void run(const CachedAttention& op, const Launch& launch);
void run(const CrossEntropy& op, const Launch& launch);
void run(const SquaredError& op, const Launch& launch);
void run(const SumValues& op, const Launch& launch);
void run(const SumSquares& op, const Launch& launch);
// The span of sources is read before run() returns. Up to reduce_onto_sources are added in one launch; more if acc is
// fp32 and none of the sources beyond that number lies in acc's memory, else RunError.
constexpr std::size_t reduce_onto_sources = 1024;
void run(const ReduceOnto& op, const Launch& launch);
void run(const DecideUpdate& op, const Launch& launch);
void run(const AdamUpdate& op, const Launch& launch);
void run(const SgdUpdate& op, const Launch& launch);
void run(const AdagradUpdate& op, const Launch& launch);
void run(const LionUpdate& op, const Launch& launch);
void run(const LambMoments& op, const Launch& launch);
void run(const TrustRatios& op, const Launch& launch);
void run(const LambUpdate& op, const Launch& launch);
void run(const MuonDirection& op, const Launch& launch);
void run(const DivideByNorm& op, const Launch& launch);
void run(const Combine& op, const Launch& launch);
void run(const MuonUpdate& op, const Launch& launch);
void run(const Checksum& op, const Launch& launch);

}  // namespace zt::cuda
