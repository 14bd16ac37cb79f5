#include "device/cuda/attention_plain.h"

namespace zt::cuda::attention {
namespace {

// As the tensor cores' backward_kernel (attention_backward.h): blocks own keys and values, or queries.
template <typename T, int Blocks, bool OwnsKeys>
__global__ void __launch_bounds__(plain_threads) plain_backward_kernel(const Problem problem) {
  const int length = problem.length;
  const int head_size = problem.head_size;
  const Place place = place_of_block(problem, (length + plain_tile - 1) / plain_tile, !OwnsKeys);
  const auto* qkv = static_cast<const T*>(problem.qkv);
  const Rows<const T> queries = rows_of_qkv(qkv, problem, place, Part::queries);
  const Rows<const T> keys = rows_of_qkv(qkv, problem, place, Part::keys);
  const Rows<const T> values = rows_of_qkv(qkv, problem, place, Part::values);
  const Rows<const T> d_out = rows_of_out(static_cast<const T*>(problem.d_out), problem, place);
  const Statistics* statistics =
      problem.statistics +
      (static_cast<std::int64_t>(place.sample) * problem.heads + place.head) * gpu::attention_padded_length(length);
  auto* panel = reinterpret_cast<float*>(gpu::dynamic_shared());
  float* gradient_tile = panel + panel_floats;
  float* probability_tile = gradient_tile + tile_floats;  // OwnsKeys only
  const int first = place.tile * plain_tile;
  const int first_d = static_cast<int>(blockIdx.y) * plain_tile * Blocks;
  const float gradient_factor = problem.scale * problem.keeping.factor;

  float sums[4][4 * Blocks] = {};
  float value_sums[4][4 * Blocks] = {};
  const int end = OwnsKeys ? length : min(first + plain_tile, length);
  for (int column = OwnsKeys ? first : 0; column < end; column += plain_tile) {
    const int query_first = OwnsKeys ? column + 4 * plain_x() : first + 4 * plain_y();
    const int key_first = OwnsKeys ? first + 4 * plain_y() : column + 4 * plain_x();
    const std::uint32_t kept = kept_of_part(problem, place, query_first, key_first);
    float p[4][4];
    float gradient[4][4];
    multiply_rows(p, OwnsKeys ? keys : queries, first, OwnsKeys ? queries : keys, column, length, head_size, panel);
    multiply_rows(gradient, OwnsKeys ? values : d_out, first, OwnsKeys ? d_out : values, column, length, head_size,
                  panel);
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      const int query = query_first + q;
      const Statistics of_query = statistics[query];
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        float& score = OwnsKeys ? p[k][q] : p[q][k];
        float& d_p = OwnsKeys ? gradient[k][q] : gradient[q][k];
        const bool is_kept = (kept >> (4 * q + k) & 1U) != 0;
        const float whole = key_first + k > query ? 0.0F : expf(score * problem.scale - of_query.log_sum_exp);
        d_p = whole * ((is_kept ? d_p : 0.0F) * gradient_factor - of_query.delta);
        score = is_kept ? whole : 0.0F;
      }
    }
    store_rounded<T>(gradient, gradient_tile);
    if constexpr (OwnsKeys) store_rounded<T>(p, probability_tile);
    add_product<Blocks>(sums, gradient_tile, OwnsKeys ? queries : keys, column, length, first_d, head_size, panel);
    if constexpr (OwnsKeys)
      add_product<Blocks>(value_sums, probability_tile, d_out, column, length, first_d, head_size, panel);
  }

  const float ones[4] = {1.0F, 1.0F, 1.0F, 1.0F};
  auto* d_qkv = static_cast<T*>(problem.result);
  store_sums<Blocks>(sums, ones, rows_of_qkv(d_qkv, problem, place, OwnsKeys ? Part::keys : Part::queries), first,
                     length, first_d, head_size);
  if constexpr (OwnsKeys) {
    const float kept = problem.keeping.factor;
    const float factors[4] = {kept, kept, kept, kept};
    store_sums<Blocks>(value_sums, factors, rows_of_qkv(d_qkv, problem, place, Part::values), first, length, first_d,
                       head_size);
  }
}

template <typename T, int Blocks>
void launch_backward(const Problem& problem, const Launch& where) {
  const dim3 grid = plain_grid<Blocks>(problem);
  launch("attention backward, plain, keys", plain_backward_kernel<T, Blocks, true>, grid, plain_threads,
         (panel_floats + 2 * tile_floats) * sizeof(float), where, problem);
  launch("attention backward, plain, queries", plain_backward_kernel<T, Blocks, false>, grid, plain_threads,
         (panel_floats + tile_floats) * sizeof(float), where, problem);
}

}  // namespace

template <typename T>
void backward_plain(const Problem& problem, const Launch& where) {
  if (problem.head_size <= plain_tile) {
    launch_backward<T, 1>(problem, where);
  } else {
    launch_backward<T, 2>(problem, where);
  }
}

template void backward_plain<float>(const Problem& problem, const Launch& launch);
template void backward_plain<__half>(const Problem& problem, const Launch& launch);
template void backward_plain<__nv_bfloat16>(const Problem& problem, const Launch& launch);

}  // namespace zt::cuda::attention
