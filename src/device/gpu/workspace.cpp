#include "device/gpu/workspace.h"

#include <algorithm>

namespace zt::gpu {
namespace {

template <typename T>
std::int64_t scratch(const T& /*operation*/) {
  return 0;
}

std::int64_t scratch(const MatMul& /*operation*/) { return product_workspace; }

std::int64_t scratch(const AttentionBackward& op) {
  const std::int64_t queries = op.batch * op.heads * attention_padded_length(op.length);
  return queries * 2 * static_cast<std::int64_t>(sizeof(float));
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
