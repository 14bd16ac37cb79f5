// Scratch memory of operations on a GPU: a function of shapes alone, so that a run can be planned where there is none.
#pragma once

#include <cstdint>
#include <vector>

#include "device/operations.h"

namespace zt::gpu {

// Workspace that cuBLASLt may use for a product. NVIDIA recommends 32 MiB on Hopper (cuBLAS documentation, section
// "cublasSetWorkspace"); the same everywhere, so that a product's bits do not depend on how much there was.
constexpr std::int64_t product_workspace = std::int64_t{32} << 20;

// The backward pass of attention holds two floats for each query of a head, up to the end of the largest tile.
constexpr std::int64_t attention_padded_length(std::int64_t length) { return (length + 127) / 128 * 128; }

// Bytes of scratch for one operation; nothing is run and pointers are not followed. It belongs to the compute stream:
// operations on other streams need none.
std::int64_t workspace_of(const Operation& operation);

// Bytes of the one buffer that serves all of these.
std::int64_t workspace_of(const std::vector<Operation>& operations);

}  // namespace zt::gpu
