// Attention's forward pass on tensor cores: included by the .cu files that make its instances.
#pragma once

#include "device/cuda/attention_tiles.h"

namespace zt::cuda::attention {

// A row's largest score is followed only when it grows by more than this power of 2: until then probabilities are at
// most 2^8 times too large, which neither fp16 nor the sums mind, and accumulators need not be rescaled. Decided for
// each row by itself, so that a query's bits do not depend on later queries.
constexpr float followed_growth = 8.0F;

// What a row has so far, in powers of 2; of `sum` each lane of four has a part.
template <int M>
struct RowStates {
  float largest[M][2];
  float sum[M][2];
};

// Scores become probabilities relative to 2^largest; accumulators follow.
template <int M, int N, int D>
__device__ __forceinline__ void take_scores(float (&scores)[M][N / 8][4], float factor, RowStates<M>& states,
                                            float (&out)[M][D / 8][4]) {
  float rescale[M][2];
  bool any_grows = false;
#pragma unroll
  for (int m = 0; m < M; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float largest = fmaxf(scores[m][0][2 * half], scores[m][0][2 * half + 1]);
#pragma unroll
      for (int n = 1; n < N / 8; ++n)
        largest = fmaxf(largest, fmaxf(scores[m][n][2 * half], scores[m][n][2 * half + 1]));
      largest = fmaxf(largest, __shfl_xor_sync(all_lanes, largest, 1));
      largest = fmaxf(largest, __shfl_xor_sync(all_lanes, largest, 2));
      const float scaled = largest * factor;
      const bool grows = scaled > states.largest[m][half] + followed_growth;
      rescale[m][half] = grows ? gpu::exp2_fast(states.largest[m][half] - scaled) : 1.0F;
      if (grows) states.largest[m][half] = scaled;
      any_grows = any_grows || grows;
    }
  }
  if (__any_sync(all_lanes, any_grows)) {
#pragma unroll
    for (int m = 0; m < M; ++m) {
      states.sum[m][0] *= rescale[m][0];
      states.sum[m][1] *= rescale[m][1];
#pragma unroll
      for (int n = 0; n < D / 8; ++n) {
#pragma unroll
        for (int e = 0; e < 4; ++e) out[m][n][e] *= rescale[m][e / 2];
      }
    }
  }
#pragma unroll
  for (int m = 0; m < M; ++m) {
#pragma unroll
    for (int n = 0; n < N / 8; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        scores[m][n][e] = gpu::exp2_fast(fmaf(scores[m][n][e], factor, -states.largest[m][e / 2]));
        states.sum[m][e / 2] += scores[m][n][e];
      }
    }
  }
}

// A block: 64 M queries of a head against tiles of N keys, of which the next is loaded while one is worked on. A warp:
// 16 M queries.
template <typename T, int D, int M, int N, bool Drops>
__global__ void __launch_bounds__(threads) forward_kernel(const Problem problem) {
  constexpr int block_rows = 16 * M * warps;
  const int length = problem.length;
  const Place place = place_of_block(problem, (length + block_rows - 1) / block_rows, true);
  const auto* qkv = static_cast<const T*>(problem.qkv);
  const Rows<const T> queries = rows_of_qkv(qkv, problem, place, Part::queries);
  const Rows<const T> keys = rows_of_qkv(qkv, problem, place, Part::keys);
  const Rows<const T> values = rows_of_qkv(qkv, problem, place, Part::values);
  constexpr unsigned tile_bytes = N * D * sizeof(T);
  const Tile<D> query_tile{0};                                  // [block_rows, D]
  constexpr unsigned key_tiles = block_rows * D * sizeof(T);    // [2, N, D]
  constexpr unsigned value_tiles = key_tiles + 2 * tile_bytes;  // [2, N, D]

  const auto lane = static_cast<int>(threadIdx.x) % 32;
  const int row = static_cast<int>(threadIdx.x) / 32 * 16 * M;  // the warp's, within the tile
  const int first = place.tile * block_rows;                    // query of the block
  const int query = first + row;                                // of the warp
  const int tiles = (min(first + block_rows, length) + N - 1) / N;

  TileLoader<T, D, block_rows>(queries, first, length, problem.is_aligned).load(query_tile);
  TileLoader<T, D, N> key_loader(keys, 0, length, problem.is_aligned);
  TileLoader<T, D, N> value_loader(values, 0, length, problem.is_aligned);
  key_loader.load({key_tiles});
  value_loader.load({value_tiles});
  gpu::cp_async_commit();

  constexpr bool is_held = M * D / 4 <= 32;  // registers
  LeftRows<T, D, M, is_held> left(query_tile, row);
  float out[M][D / 8][4];
  clear(out);
  RowStates<M> states;
#pragma unroll
  for (int m = 0; m < M; ++m) {
    states.largest[m][0] = states.largest[m][1] = -INFINITY;
    states.sum[m][0] = states.sum[m][1] = 0.0F;
  }

#pragma unroll 1
  for (int tile = 0; tile < tiles; ++tile) {
    gpu::cp_async_wait<0>();
    __syncthreads();
    if (tile + 1 < tiles) {
      const unsigned next_stage = tile % 2 == 0 ? tile_bytes : 0;
      key_loader.load({key_tiles + next_stage});
      value_loader.load({value_tiles + next_stage});
      gpu::cp_async_commit();
    }
    if (tile == 0) left.hold();
    const int key = tile * N;
    const unsigned stage = tile % 2 == 0 ? 0 : tile_bytes;
    if (query >= length || key >= query + 16 * M) continue;  // nothing for this warp

    KeptOfQueries<M, N> kept;
    if constexpr (Drops) kept.draw(problem.keeping, place.sample, place.head, length, query, key);
    float scores[M][N / 8][4];
    left.template multiply_rows<N>(scores, {key_tiles + stage});
    if (key + N > query + 1) {  // the diagonal passes through
#pragma unroll
      for (int m = 0; m < M; ++m) {
#pragma unroll
        for (int n = 0; n < N / 8; ++n) {
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            const int after = key + 8 * n + lane % 4 * 2 + e % 2 - (query + 16 * m + lane / 4 + e / 2 * 8);
            if (after > 0) scores[m][n][e] = -INFINITY;
          }
        }
      }
    }
    take_scores<M, N, D>(scores, problem.scale * log2_e, states, out);
    if constexpr (Drops) {
#pragma unroll
      for (int m = 0; m < M; ++m) {
#pragma unroll
        for (int span = 0; span < N / 16; ++span) {
          const std::uint32_t part = kept.part(m, span);
#pragma unroll
          for (int column = 0; column < 2; ++column) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
              if (!kept.kept(part, column, e)) scores[m][2 * span + column][e] = 0.0F;
            }
          }
        }
      }
    }
    multiply_rounded<T, D, M, N>(out, scores, {value_tiles + stage});
  }

  if (query >= length) return;
  float factor[M][2];
  float* log_sum_exp =
      problem.log_sum_exp + (static_cast<std::int64_t>(place.sample) * problem.heads + place.head) * length;
#pragma unroll
  for (int m = 0; m < M; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float sum = states.sum[m][half];
      sum += __shfl_xor_sync(all_lanes, sum, 1);
      sum += __shfl_xor_sync(all_lanes, sum, 2);
      factor[m][half] = problem.keeping.factor / sum;
      const int mine = query + 16 * m + 8 * half + lane / 4;
      if (lane % 4 == 0 && mine < length) log_sum_exp[mine] = fmaf(states.largest[m][half], ln_2, logf(sum));
    }
  }
  const Rows<T> results = rows_of_out(static_cast<T*>(problem.result), problem, place);
  store_rows<D, M>(out, factor, query_tile, row, results, first, length, problem.is_aligned);
}

template <typename T, int D, int M, int N, bool Drops>
void launch_forward(const Problem& problem, const Launch& where) {
  constexpr int block_rows = 16 * M * warps;
  constexpr int shared_bytes = (block_rows + 4 * N) * D * static_cast<int>(sizeof(T));
  static SharedMemoryAllowance allowance;
  allowance.obtain(reinterpret_cast<const void*>(forward_kernel<T, D, M, N, Drops>), shared_bytes);
  const auto blocks = static_cast<unsigned>(problem.batch_heads() * ((problem.length + block_rows - 1) / block_rows));
  launch("attention forward", forward_kernel<T, D, M, N, Drops>, blocks, threads, shared_bytes, where, problem);
}

// Two operands of 16 queries a warp, so that what is read of keys and values serves twice; of keys, as many as leave
// room in 255 registers.
template <typename T, int D>
void forward_on_tensor_cores(const Problem& problem, const Launch& where) {
  if (problem.keeping.threshold == 0) {
    launch_forward<T, D, 2, D <= 96 ? 64 : 32, false>(problem, where);
  } else {
    launch_forward<T, D, 2, 32, true>(problem, where);
  }
}

}  // namespace zt::cuda::attention
