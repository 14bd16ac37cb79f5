// Positions of a batch sorted by token, those of a token in order: a stable radix sort with integers alone, so that the
// result is one, whatever the threads' order.
#pragma once

#include "device/cuda/kernels.h"
#include "device/gpu/chunks.h"

namespace zt::cuda {

struct SortedPositions {
  const std::int32_t* positions;  // [count]: those that hold token v are positions[begins[v] ... ends[v])
  const std::int32_t* begins;     // [vocabulary]
  const std::int32_t* ends;       // [vocabulary]; equal to begins where there are none
};

// tokens[count], each in [0, vocabulary); count < 2^31. The result lies in workspace of gpu::token_sort_bytes.
SortedPositions sort_positions(const std::int32_t* tokens, std::int64_t count, std::int64_t vocabulary,
                               const Launch& where);

}  // namespace zt::cuda
