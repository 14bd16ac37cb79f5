#include "device/cuda/attention_plain.h"

namespace zt::cuda::attention {
namespace {

template <typename T, int Blocks>
__global__ void __launch_bounds__(plain_threads) plain_forward_kernel(const Problem problem) {
  const int length = problem.length;
  const int head_size = problem.head_size;
  const Place place = place_of_block(problem, (length + plain_tile - 1) / plain_tile, true);
  const auto* qkv = static_cast<const T*>(problem.qkv);
  const Rows<const T> queries = rows_of_qkv(qkv, problem, place, Part::queries);
  const Rows<const T> keys = rows_of_qkv(qkv, problem, place, Part::keys);
  const Rows<const T> values = rows_of_qkv(qkv, problem, place, Part::values);
  auto* panel = reinterpret_cast<float*>(gpu::dynamic_shared());
  float* tile = panel + panel_floats;
  const int first = place.tile * plain_tile;
  const int first_d = static_cast<int>(blockIdx.y) * plain_tile * Blocks;

  float out[4][4 * Blocks] = {};
  float largest[4];
  float sum[4] = {};  // of this thread's columns
  for (float& value : largest) value = -INFINITY;
  for (int key = 0; key < min(first + plain_tile, length); key += plain_tile) {
    const std::uint32_t kept = kept_of_part(problem, place, first + 4 * plain_y(), key + 4 * plain_x());
    float p[4][4];
    multiply_rows(p, queries, first, keys, key, length, head_size, panel);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int query = first + 4 * plain_y() + i;
      float row_largest = -INFINITY;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        p[i][j] = key + 4 * plain_x() + j > query ? -INFINITY : p[i][j] * problem.scale;
        row_largest = fmaxf(row_largest, p[i][j]);
      }
      for (int bits = 8; bits > 0; bits /= 2)
        row_largest = fmaxf(row_largest, __shfl_xor_sync(all_lanes, row_largest, bits));
      row_largest = fmaxf(row_largest, largest[i]);
      const float rescale = expf(largest[i] - row_largest);
      largest[i] = row_largest;
      sum[i] *= rescale;
#pragma unroll
      for (int j = 0; j < 4 * Blocks; ++j) out[i][j] *= rescale;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        p[i][j] = expf(p[i][j] - row_largest);
        sum[i] += p[i][j];
      }
#pragma unroll
      for (int k = 0; k < 4; ++k) p[i][k] = (kept >> (4 * i + k) & 1U) != 0 ? p[i][k] : 0.0F;
    }
    store_rounded<T>(p, tile);
    add_product<Blocks>(out, tile, values, key, length, first_d, head_size, panel);
  }

  float factor[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    for (int bits = 8; bits > 0; bits /= 2) sum[i] += __shfl_xor_sync(all_lanes, sum[i], bits);
    factor[i] = problem.keeping.factor / sum[i];
    const int query = first + 4 * plain_y() + i;
    if (plain_x() == 0 && blockIdx.y == 0 && query < length) {
      problem.log_sum_exp[(static_cast<std::int64_t>(place.sample) * problem.heads + place.head) * length + query] =
          largest[i] + logf(sum[i]);
    }
  }
  store_sums<Blocks>(out, factor, rows_of_out(static_cast<T*>(problem.result), problem, place), first, length, first_d,
                     head_size);
}

template <typename T, int Blocks>
void launch_forward(const Problem& problem, const Launch& where) {
  launch("attention forward, plain", plain_forward_kernel<T, Blocks>, plain_grid<Blocks>(problem), plain_threads,
         (panel_floats + tile_floats) * sizeof(float), where, problem);
}

}  // namespace

template <typename T>
void forward_plain(const Problem& problem, const Launch& where) {
  if (problem.head_size <= plain_tile) {
    launch_forward<T, 1>(problem, where);
  } else {
    launch_forward<T, 2>(problem, where);
  }
}

template void forward_plain<float>(const Problem& problem, const Launch& launch);
template void forward_plain<__half>(const Problem& problem, const Launch& launch);
template void forward_plain<__nv_bfloat16>(const Problem& problem, const Launch& launch);

}  // namespace zt::cuda::attention
