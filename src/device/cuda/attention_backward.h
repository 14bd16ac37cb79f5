// Attention's backward pass on tensor cores: included by the .cu files that make its instances.
//
// Two kernels, of which each block owns what it writes, so that nothing is added up across blocks: one for d_keys and
// d_values, whose blocks own keys and go through the queries after them, and one for d_queries, whose blocks own
// queries and go through the keys before them. Scores and d_P are computed in both, seven products where five would do
// with atomic additions of d_queries, whose order would change from run to run. In return P and d_S never leave
// registers: the owned rows, keys or queries, are rows of all products, so accumulators become operands as they are.
#pragma once

#include "device/cuda/attention_tiles.h"

namespace zt::cuda::attention {

// OwnsKeys: rows are keys and values, columns queries and d_out. Else: rows are queries and d_out, columns keys and
// values. In both cases
//   S or its transpose = rows[0] columns[0]^T      d_P or its transpose = rows[1] columns[1]^T
//   sums[0] += d_S columns[0]  (d_keys or d_queries)      sums[1] += P columns[1]  (d_values; OwnsKeys only).
template <typename T, int D, int M, int N, bool OwnsKeys>
struct BackwardTiles {
  static constexpr int rows = 16 * M * warps;
  static constexpr unsigned row_bytes = rows * D * sizeof(T);
  static constexpr unsigned column_bytes = N * D * sizeof(T);
  static constexpr unsigned statistics_bytes = OwnsKeys ? N * sizeof(Statistics) : 0;
  static constexpr unsigned stage_bytes = 2 * column_bytes + (statistics_bytes + 127) / 128 * 128;
  static constexpr unsigned stages = 2 * row_bytes;  // where they begin
  static constexpr unsigned bytes = stages + 2 * stage_bytes;
};

// From scores and d_P (in `gradients`) to P, dropped out but without its factor, and d_S.
//   P = 2^(score * factor - log_sum_exp),  d_S = P * (d_P / sqrt(D) - delta)
template <int M, int N, bool Drops, typename StatisticsOf, typename KeptOf>
__device__ __forceinline__ void differentiate(float (&scores)[M][N / 8][4], float (&gradients)[M][N / 8][4],
                                              float score_factor, float gradient_factor,
                                              const StatisticsOf& statistics_of, const KeptOf& kept_of) {
#pragma unroll
  for (int n = 0; n < N / 8; ++n) {
    const auto statistics = statistics_of(n);
    [[maybe_unused]] const auto kept = kept_of(n);
#pragma unroll
    for (int m = 0; m < M; ++m) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const Statistics query = statistics(m, e);
        const float p = gpu::exp2_fast(fmaf(scores[m][n][e], score_factor, -query.log_sum_exp));
        bool is_kept = true;
        if constexpr (Drops) is_kept = kept(m, e);
        gradients[m][n][e] = p * fmaf(is_kept ? gradients[m][n][e] : 0.0F, gradient_factor, -query.delta);
        scores[m][n][e] = is_kept ? p : 0.0F;
      }
    }
  }
}

template <typename T, int D, int M, int N, bool OwnsKeys, bool IsHeld, bool Drops>
__global__ void __launch_bounds__(threads) backward_kernel(const Problem problem) {
  using Tiles = BackwardTiles<T, D, M, N, OwnsKeys>;
  const int length = problem.length;
  const Place place = place_of_block(problem, (length + Tiles::rows - 1) / Tiles::rows, !OwnsKeys);
  const auto* qkv = static_cast<const T*>(problem.qkv);
  const Rows<const T> queries = rows_of_qkv(qkv, problem, place, Part::queries);
  const Rows<const T> keys = rows_of_qkv(qkv, problem, place, Part::keys);
  const Rows<const T> values = rows_of_qkv(qkv, problem, place, Part::values);
  const Rows<const T> d_out = rows_of_out(static_cast<const T*>(problem.d_out), problem, place);
  const Statistics* statistics =
      problem.statistics +
      (static_cast<std::int64_t>(place.sample) * problem.heads + place.head) * gpu::attention_padded_length(length);

  const auto lane = static_cast<int>(threadIdx.x) % 32;
  const int row_in_tile = static_cast<int>(threadIdx.x) / 32 * 16 * M;  // the warp's first
  const int first = place.tile * Tiles::rows;                           // of the block
  const int row = first + row_in_tile;
  const int first_tile = OwnsKeys ? first / N : 0;
  const int end_tile = ((OwnsKeys ? length : min(first + Tiles::rows, length)) + N - 1) / N;

  TileLoader<T, D, N> loader(OwnsKeys ? queries : keys, first_tile * N, length, problem.is_aligned);
  TileLoader<T, D, N> other_loader(OwnsKeys ? d_out : values, first_tile * N, length, problem.is_aligned);
  const auto load_columns = [&](int tile, unsigned stage) {
    loader.load({stage});
    other_loader.load({stage + Tiles::column_bytes});
    if constexpr (OwnsKeys) {
      static_assert(N / 2 <= threads);
      const int pair = static_cast<int>(threadIdx.x) * 2;
      if (pair < N) {
        gpu::cp_async_16(shared_at(stage + 2 * Tiles::column_bytes) + pair * sizeof(Statistics),
                         statistics + tile * N + pair);
      }
    }
    gpu::cp_async_commit();
  };
  TileLoader<T, D, Tiles::rows>(OwnsKeys ? keys : queries, first, length, problem.is_aligned).load({0});
  TileLoader<T, D, Tiles::rows>(OwnsKeys ? values : d_out, first, length, problem.is_aligned).load({Tiles::row_bytes});
  load_columns(first_tile, Tiles::stages);

  LeftRows<T, D, M, IsHeld> left({0}, row_in_tile);
  LeftRows<T, D, M, IsHeld> other_left({Tiles::row_bytes}, row_in_tile);
  Statistics of_rows[M][2];
  if constexpr (!OwnsKeys) {
#pragma unroll
    for (int m = 0; m < M; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) of_rows[m][half] = statistics[row + 16 * m + 8 * half + lane / 4];
    }
  }
  float sums[M][D / 8][4];
  float value_sums[OwnsKeys ? M : 1][D / 8][4];
  clear(sums);
  if constexpr (OwnsKeys) clear(value_sums);

#pragma unroll 1
  for (int tile = first_tile; tile < end_tile; ++tile) {
    gpu::cp_async_wait<0>();
    __syncthreads();
    const bool is_even = (tile - first_tile) % 2 == 0;
    if (tile + 1 < end_tile) load_columns(tile + 1, Tiles::stages + (is_even ? Tiles::stage_bytes : 0));
    if (tile == first_tile) {
      left.hold();
      other_left.hold();
    }
    const int column = tile * N;
    if (row >= length || (OwnsKeys ? column + N <= row : column >= row + 16 * M)) continue;  // nothing for this warp

    using Kept = std::conditional_t<OwnsKeys, KeptOfKeys<M, N>, KeptOfQueries<M, N>>;
    Kept kept;
    if constexpr (Drops) {
      kept.draw(problem.keeping, place.sample, place.head, length, OwnsKeys ? column : row, OwnsKeys ? row : column);
    }
    const unsigned stage = Tiles::stages + (is_even ? 0 : Tiles::stage_bytes);
    float scores[M][N / 8][4];
    float gradients[M][N / 8][4];
    left.template multiply_rows<N>(scores, {stage});
    other_left.template multiply_rows<N>(gradients, {stage + Tiles::column_bytes});
    if (OwnsKeys ? column < row + 16 * M - 1 : column + N > row + 1) {  // the diagonal passes through
#pragma unroll
      for (int m = 0; m < M; ++m) {
#pragma unroll
        for (int n = 0; n < N / 8; ++n) {
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            const int after = column + 8 * n + lane % 4 * 2 + e % 2 - (row + 16 * m + lane / 4 + e / 2 * 8);
            if (OwnsKeys ? after < 0 : after > 0) scores[m][n][e] = -INFINITY;
          }
        }
      }
    }
    const auto statistics_of = [&](int n) {
      if constexpr (OwnsKeys) {
        const auto* pairs = shared_at(stage + 2 * Tiles::column_bytes) + (8 * n + lane % 4 * 2) * sizeof(Statistics);
        const Pack<float> pair = load_pack(reinterpret_cast<const float*>(pairs));
        return [pair](int, int e) { return Statistics{pair.values[e % 2 * 2], pair.values[e % 2 * 2 + 1]}; };
      } else {
        return [&](int m, int e) { return of_rows[m][e / 2]; };
      }
    };
    const auto kept_of = [&](int n) {
      if constexpr (!Drops) {
        return 0;
      } else if constexpr (OwnsKeys) {
        return [part = kept.part(n)](int m, int e) { return Kept::kept(part, m, e); };
      } else {
        struct Parts {
          std::uint32_t of[M];
        } parts;
#pragma unroll
        for (int m = 0; m < M; ++m) parts.of[m] = kept.part(m, n / 2);
        return [parts, n](int m, int e) { return Kept::kept(parts.of[m], n % 2, e); };
      }
    };
    differentiate<M, N, Drops>(scores, gradients, problem.scale * log2_e, problem.scale * problem.keeping.factor,
                               statistics_of, kept_of);
    multiply_rounded<T, D, M, N>(sums, gradients, {stage});
    if constexpr (OwnsKeys) multiply_rounded<T, D, M, N>(value_sums, scores, {stage + Tiles::column_bytes});
  }

  if (row >= length) return;
  float ones[M][2];
  float kept_factors[M][2];
#pragma unroll
  for (int m = 0; m < M; ++m) {
    ones[m][0] = ones[m][1] = 1.0F;
    kept_factors[m][0] = kept_factors[m][1] = problem.keeping.factor;
  }
  auto* d_qkv = static_cast<T*>(problem.result);
  store_rows<D, M>(sums, ones, {0}, row_in_tile,
                   rows_of_qkv(d_qkv, problem, place, OwnsKeys ? Part::keys : Part::queries), first, length,
                   problem.is_aligned);
  if constexpr (OwnsKeys) {
    store_rows<D, M>(value_sums, kept_factors, {Tiles::row_bytes}, row_in_tile,
                     rows_of_qkv(d_qkv, problem, place, Part::values), first, length, problem.is_aligned);
  }
}

template <typename T, int D, int M, int N, bool OwnsKeys, bool IsHeld, bool Drops>
void launch_backward(const Problem& problem, const Launch& where) {
  using Tiles = BackwardTiles<T, D, M, N, OwnsKeys>;
  const auto kernel = backward_kernel<T, D, M, N, OwnsKeys, IsHeld, Drops>;
  static SharedMemoryAllowance allowance;
  allowance.obtain(reinterpret_cast<const void*>(kernel), static_cast<int>(Tiles::bytes));
  const auto blocks = static_cast<unsigned>(problem.batch_heads() * ((problem.length + Tiles::rows - 1) / Tiles::rows));
  launch(OwnsKeys ? "attention backward, keys" : "attention backward, queries", kernel, blocks, threads, Tiles::bytes,
         where, problem);
}

// Rows and columns such that 255 registers suffice. Two operands of 16 rows a warp are better, as what is read of
// columns then serves twice; with one, the rows' own operands are held in registers where they fit.
template <typename T, int D, bool Drops>
void launch_both(const Problem& problem, const Launch& where) {
  if constexpr (D == 32) {
    launch_backward<T, D, 2, 32, true, true, Drops>(problem, where);
    launch_backward<T, D, 2, 32, false, true, Drops>(problem, where);
  } else if constexpr (D == 64) {
    launch_backward<T, D, Drops ? 1 : 2, Drops ? 64 : 32, true, Drops, Drops>(problem, where);
    launch_backward<T, D, 2, 32, false, false, Drops>(problem, where);
  } else if constexpr (D == 96) {
    launch_backward<T, D, 1, 64, true, false, Drops>(problem, where);
    launch_backward<T, D, 1, 64, false, true, Drops>(problem, where);
  } else {
    launch_backward<T, D, 1, 32, true, false, Drops>(problem, where);
    launch_backward<T, D, 1, 64, false, false, Drops>(problem, where);
  }
}

template <typename T, int D>
void backward_on_tensor_cores(const Problem& problem, const Launch& where) {
  if (problem.keeping.threshold == 0) {
    launch_both<T, D, false>(problem, where);
  } else {
    launch_both<T, D, true>(problem, where);
  }
}

}  // namespace zt::cuda::attention
