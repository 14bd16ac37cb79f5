// Matrix products by cuBLASLt. Plans (descriptors and algorithm) are made once per shape and kept.
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

  // Makes the plan for an operation of these shapes.
  void prepare(const MatMul& op);
  // workspace: gpu::product_workspace bytes, aligned to 256.
  void run(const MatMul& op, cudaStream_t stream, std::byte* workspace);

 private:
  struct Plans;
  std::unique_ptr<Plans> plans_;
};

}  // namespace zt::cuda
