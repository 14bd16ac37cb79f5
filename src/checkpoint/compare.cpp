#include "checkpoint/compare.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "core/errors.h"

namespace zt {

namespace {

std::optional<TensorDifference> difference_in(const NativeCheckpoint& a, int in_a, const NativeCheckpoint& b, int in_b,
                                              const std::string& kind) {
  constexpr std::int64_t most = std::int64_t{1} << 18;
  const CheckpointTensor& tensor = a.manifest().tensors[static_cast<std::size_t>(in_a)];
  TensorDifference difference{kind, tensor.name, 0, 0.0F, 0.0F, 0, tensor.count(), 0.0};
  std::vector<float> of_a(static_cast<std::size_t>(std::min(most, tensor.count()))), of_b(of_a.size());
  for (std::int64_t first = 0; first < tensor.count(); first += most) {
    const std::int64_t count = std::min(most, tensor.count() - first);
    a.read(kind, in_a, first, count, of_a.data());
    b.read(kind, in_b, first, count, of_b.data());
    for (std::int64_t i = 0; i < count; ++i) {
      const float x = of_a[static_cast<std::size_t>(i)];
      const float y = of_b[static_cast<std::size_t>(i)];
      if (std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y)) continue;
      if (difference.differing++ == 0) {
        difference.element = first + i;
        difference.first = x;
        difference.second = y;
      }
      const double apart = std::abs(static_cast<double>(x) - static_cast<double>(y));
      if (std::isfinite(apart)) difference.largest = std::max(difference.largest, apart);
    }
  }
  if (difference.differing == 0) return std::nullopt;
  return difference;
}

}  // namespace

std::optional<TensorDifference> first_difference(const NativeCheckpoint& a, const NativeCheckpoint& b) {
  const auto& of_a = a.manifest().tensors;
  const auto& of_b = b.manifest().tensors;
  std::vector<int> index_in_b;
  for (const CheckpointTensor& tensor : of_a) {
    const int index = b.manifest().tensor_index(tensor.name);
    if (index < 0) throw UserError(tensor.name + " is in " + a.directory() + " alone: these are two models");
    if (of_b[static_cast<std::size_t>(index)].shape != tensor.shape)
      throw UserError(tensor.name + " has another shape in " + b.directory() + ": these are two models");
    index_in_b.push_back(index);
  }
  for (const CheckpointTensor& tensor : of_b) {
    if (a.manifest().tensor_index(tensor.name) < 0)
      throw UserError(tensor.name + " is in " + b.directory() + " alone: these are two models");
  }
  for (const std::string& kind : a.manifest().kinds()) {
    if (!b.has(kind)) continue;
    for (std::size_t index = 0; index < of_a.size(); ++index) {
      const int other = index_in_b[index];
      if (!a.has(kind, static_cast<int>(index)) || !b.has(kind, other)) continue;
      if (auto found = difference_in(a, static_cast<int>(index), b, other, kind)) return found;
    }
  }
  return std::nullopt;
}

}  // namespace zt
