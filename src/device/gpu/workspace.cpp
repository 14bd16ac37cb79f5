#include "device/gpu/workspace.h"

#include <algorithm>

namespace zt::gpu {
namespace {

template <typename T>
std::int64_t scratch(const T& /*operation*/) {
  return 0;
}

// Behind what cuBLASLt uses, a bias in the format of the output.
std::int64_t scratch(const MatMul& operation) {
  if (!operation.bias) return product_workspace;
  return product_workspace + operation.n * static_cast<std::int64_t>(size_of(operation.out.dtype));
}

}  // namespace

std::int64_t workspace_of(const Operation& operation) {
  return std::visit([](const auto& op) { return scratch(op); }, operation);
}

std::int64_t workspace_of(const std::vector<Operation>& operations) {
  std::int64_t most = 0;
  for (const Operation& operation : operations) most = std::max(most, workspace_of(operation));
  return most;
}

}  // namespace zt::gpu
