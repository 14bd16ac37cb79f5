// CUDA's error codes as exceptions.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "core/errors.h"

namespace zt::cuda {

// What CUDA said, with number and name: "CUDA error 2 (cudaErrorMemoryAllocation: out of memory) in cudaMalloc".
inline std::string describe(cudaError_t status, const std::string& where) {
  return "CUDA error " + std::to_string(static_cast<int>(status)) + " (" + cudaGetErrorName(status) + ": " +
         cudaGetErrorString(status) + ") in " + where;
}

// RunError unless the call succeeded. CUDA forgets the error then, which the next launch would find again (one that has
// broken the device stays all the same).
inline void check(cudaError_t status, const char* where) {
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());
  throw RunError(describe(status, where));
}

}  // namespace zt::cuda
