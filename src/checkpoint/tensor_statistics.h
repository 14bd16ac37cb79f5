// What the elements of a tensor in a checkpoint are like.
#pragma once

#include <cstdint>
#include <string>

#include "checkpoint/native.h"

namespace zt {

// Over the finite elements; all 0 where there are none.
struct TensorStatistics {
  std::int64_t elements = 0, zeros = 0, not_finite = 0;
  double mean = 0.0, deviation = 0.0;  // of the population
  double smallest = 0.0, largest = 0.0;
};

// Reads it through a small buffer.
TensorStatistics statistics_of(const NativeCheckpoint& checkpoint, const std::string& kind, int tensor);

}  // namespace zt
