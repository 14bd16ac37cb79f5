#include "device/gpu/workspace.h"

#include <algorithm>

#include "device/gpu/chunks.h"

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

constexpr auto float_bytes = static_cast<std::int64_t>(sizeof(float));

std::int64_t scratch(const BiasGradient& op) {
  return column_sum_chunks(op.rows, op.columns, op.d_out.dtype).chunks * partial_stride(op.columns) * float_bytes;
}
std::int64_t scratch(const LayerNormBackward& op) {
  const RowChunks cut = norm_backward_fits(op.columns, op.in.dtype)
                            ? norm_backward_chunks(op.rows)
                            : column_sum_chunks(op.rows, op.columns, op.in.dtype);
  return 2 * cut.chunks * partial_stride(op.columns) * float_bytes;
}
std::int64_t scratch(const EmbeddingBackward& op) { return token_sort_bytes(op.batch * op.length, op.vocabulary); }

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
