// CachedAttention: one query of one head at a time, against the keys and values where they lie. Bound by reading those.
#include <cmath>

#include "device/cpu/attention_rows.h"
#include "device/cpu/simd.h"
#include "device/cpu/simd_layout.h"
#include "device/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/cached_attention.cpp"
// First, as it includes this file again for each instruction set.
// clang-format off
#include "hwy/foreach_target.h"
// clang-format on
#include "device/cpu/simd_common-inl.h"
#include "device/cpu/simd_few_rows-inl.h"
#include "hwy/highway.h"

#ifndef ZT_CACHED_ATTENTION_SCRATCH_
#define ZT_CACHED_ATTENTION_SCRATCH_
namespace zt::cpu {
// A worker's: the query in fp32, then its scores with all keys up to it.
inline std::int64_t padded_row(std::int64_t count) { return (count + row_step - 1) / row_step * row_step; }
inline std::int64_t scratch_floats(const CachedAttention& op) {
  return padded_row(op.head_size) + padded_row(op.first + op.length);
}
}  // namespace zt::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace zt::cpu {
namespace HWY_NAMESPACE {

// scores[j] = query . key j
template <typename T>
void scores_of_keys(const float* query, const T* keys, std::int64_t stride, std::int64_t head_size, std::int64_t count,
                    float* scores) {
  constexpr int at_once = 8;
  std::int64_t j = 0;
  for (; j + at_once <= count; j += at_once)
    dot_products<1, at_once>(query, 0, keys + j * stride, stride, head_size, scores + j);
  for (; j < count; ++j) dot_products<1, 1>(query, 0, keys + j * stride, stride, head_size, scores + j);
}

// out = sum over j of probabilities[j] value j
template <typename T>
void sum_of_values(const float* probabilities, const T* values, std::int64_t stride, std::int64_t head_size,
                   std::int64_t count, T* out) {
  const F32 d;
  constexpr auto lanes = static_cast<std::int64_t>(hn::MaxLanes(d));
  constexpr int at_once = lanes >= 16 ? 4 : 8;
  HWY_ALIGN float tile[at_once * lanes];
  const auto sum = [&]<int V, class Extent>(std::int64_t column, std::integral_constant<int, V>, Extent extent) {
    sums_of_rows<1, V>(probabilities, 0, values + column, stride, count, tile, extent);
    for (int v = 0; v < V; ++v) store(d, load(d, tile + v * lanes), out + column + v * lanes, extent);
  };
  std::int64_t column = 0;
  for (; column + at_once * lanes <= head_size; column += at_once * lanes)
    sum(column, std::integral_constant<int, at_once>(), Whole{});
  for (; column + lanes <= head_size; column += lanes) sum(column, std::integral_constant<int, 1>(), Whole{});
  if (column < head_size)
    sum(column, std::integral_constant<int, 1>(), Part{static_cast<std::size_t>(head_size - column)});
}

void cached_attention(const CachedAttention& op, Context& context) {
  const std::int64_t width = op.heads * op.head_size;
  const float scale = 1.0F / std::sqrt(static_cast<float>(op.head_size));
  context.pool.for_each(op.batch * op.length * op.heads, [&](std::int64_t task, int worker) {
    const std::int64_t head = task % op.heads;
    const std::int64_t row = task / op.heads;  // of out
    const std::int64_t b = row / op.length;
    const std::int64_t position = op.first + row % op.length;
    auto* const query = reinterpret_cast<float*>(context.of(worker));
    float* const scores = query + padded_row(op.head_size);
    dispatch(op.qkv.dtype, [&]<typename T>(T*) {
      const T* const first = op.qkv.as<T>() + b * op.capacity * 3 * width + head * op.head_size;
      const T* const own = first + position * 3 * width;
      for_vectors(F32(), op.head_size, [&](std::int64_t i, auto extent) HWY_ATTR {
        store(F32(), load(F32(), own + i, extent), query + i, extent);
      });
      const std::int64_t count = position + 1;
      scores_of_keys(query, first + width, 3 * width, op.head_size, count, scores);
      softmax_row(scores, scores, count, padded_row(count), scale, {.rounded = op.qkv.dtype, .stored = DType::f32}, {},
                  0);
      sum_of_values(scores, first + 2 * width, 3 * width, op.head_size, count,
                    op.out.as<T>() + row * width + head * op.head_size);
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace zt::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zt::cpu {

HWY_EXPORT(cached_attention);

WorkspaceNeed workspace_of(const CachedAttention& op) {
  if (op.batch <= 0 || op.length <= 0 || op.heads <= 0 || op.head_size <= 0) return {};
  return {.per_worker = scratch_floats(op) * static_cast<std::int64_t>(sizeof(float)), .shared = 0};
}
void run(const CachedAttention& op, Context& context) {
  if (op.batch <= 0 || op.length <= 0 || op.heads <= 0 || op.head_size <= 0) return;
  HWY_DYNAMIC_DISPATCH(cached_attention)(op, context);
}

}  // namespace zt::cpu
#endif
