// Matrix products by cuBLASLt. Plans (descriptors and algorithm) are made once per shape and kept; an algorithm is
// cuBLASLt's choice by shape, formats and whether rows start at multiples of 16 bytes. The same GPU and library give
// the same bits.
//
// Rounding beside the one of the result: a bias of another format than out's is rounded to it first, and where cuBLASLt
// has no algorithm with a bias it is added to the rounded product. A result that is added to what out holds is not
// rounded before.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "device/gpu/backend.h"
#include "device/operations.h"

namespace zt::cuda {

class Products {
 public:
  // For the current device. Errors: UserError if cuBLASLt cannot be had.
  explicit Products(const GpuOptions& options);
  ~Products();
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  // Makes the plan for an operation of these shapes. Errors: UserError if cuBLASLt has none.
  void prepare(const MatMul& op);
  // workspace: gpu::workspace_of(op) bytes, aligned to 256. Errors: RunError.
  void run(const MatMul& op, cudaStream_t stream, std::byte* workspace);

 private:
  struct Plans;
  std::unique_ptr<Plans> plans_;
};

}  // namespace zt::cuda
