// Where two checkpoints differ.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "checkpoint/native.h"

namespace zt {

struct TensorDifference {
  std::string kind, tensor;
  std::int64_t element = 0;  // the first that differs
  float first = 0.0F, second = 0.0F;
  std::int64_t differing = 0, elements = 0;
  double largest = 0.0;  // of the differences between finite values
};

// In the order of kinds (weights first) and of the model's tensors: the first tensor with bits that differ. Tensors of
// other names or shapes are an error (UserError, both named).
std::optional<TensorDifference> first_difference(const NativeCheckpoint& a, const NativeCheckpoint& b);

}  // namespace zt
