// Tiles of 16-bit elements in shared memory and in the registers of tensor cores, for attention's kernels.
// For .cu files only. Blocks have four warps.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "device/cuda/attention.h"
#include "device/cuda/attention_rows.h"

namespace zt::cuda::attention {

constexpr int warps = 4;
constexpr int threads = 32 * warps;
constexpr float ln_2 = 0.6931471805599453F;

// A tile of rows of D elements in shared memory: where it begins, in bytes, a multiple of 128.
//
// The chunks of 16 bytes of a row are permuted: chunk c of row r lies where chunk c ^ turn(r) would. Then the same
// chunk of 8 rows that follow each other, which is what ldmatrix reads and accumulators are written to, lies in
// different banks: a line of all banks is 8 chunks, which is a row, half of one or, for D = 32 and (as to banks) 96,
// two. Only the lowest bits of a chunk's number change, so a step of 16 elements along D is an exclusive or with a
// constant within `period` steps, and an addition beyond, which instructions have for free: few addresses are held.
template <int D>
struct Tile {
  static constexpr int chunks = D / 8;
  static constexpr int turns = D % 64 == 0 ? 8 : 4;
  static constexpr int period = turns / 2;  // steps of two chunks
  unsigned first;

  static __device__ __forceinline__ unsigned offset(int row, int chunk) {
    const int turn = turns == 8 ? row % 8 : row / 2 % 4;
    return static_cast<unsigned>(row * (2 * D) + (chunk ^ turn) * 16);
  }
  // `steps` steps along D and `rows` rows, a multiple of 8, on from an offset of a chunk with an even number, or from
  // the one after such a chunk.
  __device__ __forceinline__ unsigned char* at(unsigned offset, int steps, int rows) const {
    const unsigned turned = offset ^ static_cast<unsigned>(steps % period * 32);
    return gpu::dynamic_shared() + turned +
           (first + static_cast<unsigned>(steps / period * period * 32 + rows * 2 * D));
  }
};
__device__ __forceinline__ unsigned char* shared_at(unsigned offset) { return gpu::dynamic_shared() + offset; }

// Copies rows of global memory, tile after tile, in the background where that can be. Rows from `length` on become 0.
template <typename T, int D, int Count>
class TileLoader {
 public:
  // To begin with row `first` of the head.
  __device__ __forceinline__ TileLoader(const Rows<const T>& rows, int first, int length, bool is_aligned)
      : next_(rows.at(first + row_in_tile()) + chunk_in_row() * 8),
        stride_(rows.stride),
        left_(length - first - row_in_tile()),
        is_aligned_(is_aligned) {}

  // The next `Count` rows. The caller commits.
  __device__ __forceinline__ void load(Tile<D> tile) {
    const unsigned to = tile.first + Tile<D>::offset(row_in_tile(), chunk_in_row());
#pragma unroll
    for (int i = 0; i < Count / rows_at_once; ++i) {
      const bool inside = i * rows_at_once < left_;
#pragma unroll
      for (int part = 0; part < D / 8 / lanes_of_row; ++part) {
        const T* from = next_ + i * rows_at_once * stride_ + part * lanes_of_row * 8;
        copy(shared_at(to + static_cast<unsigned>(i * rows_at_once * 2 * D + part * lanes_of_row * 16)), from, inside);
      }
    }
    next_ += Count * stride_;
    left_ -= Count;
  }

 private:
  static constexpr int lanes_of_row = Tile<D>::turns;
  static constexpr int rows_at_once = threads / lanes_of_row;
  static_assert(Count % rows_at_once == 0);
  static __device__ __forceinline__ int row_in_tile() { return static_cast<int>(threadIdx.x) / lanes_of_row; }
  static __device__ __forceinline__ int chunk_in_row() { return static_cast<int>(threadIdx.x) % lanes_of_row; }

  __device__ __forceinline__ void copy(unsigned char* to, const T* from, bool inside) const {
    if (is_aligned_) {
      gpu::cp_async_16(to, from, inside ? 16 : 0);
      return;
    }
    Pack<T> pack;
#pragma unroll
    for (int e = 0; e < 8; ++e) pack.values[e] = inside ? from[e] : from_float<T>(0.0F);
    store_pack(reinterpret_cast<T*>(to), pack);
  }

  const T* next_;
  std::int64_t stride_;
  int left_;  // rows from this thread's first on
  bool is_aligned_;
};

// Where a lane's row for ldmatrix lies, counted from the tile's row 0.
// For A[m, k] = tile[m][k], and for B[k, n] = tile[k][n], transposed; the four matrices begin at (0, 0), (8, 0), (0, 8)
// and (8, 8).
template <int D>
__device__ __forceinline__ unsigned lane_by_rows() {
  const auto lane = static_cast<int>(threadIdx.x) % 32;
  return Tile<D>::offset(lane % 16, lane / 16);
}
// For B[k, n] = tile[n][k]; they begin at (0, 0), (0, 8), (8, 0) and (8, 8).
template <int D>
__device__ __forceinline__ unsigned lane_by_columns() {
  const auto lane = static_cast<int>(threadIdx.x) % 32;
  return Tile<D>::offset(lane / 16 * 8 + lane % 8, lane / 8 % 2);
}

template <int M, int Columns>
__device__ __forceinline__ void clear(float (&sums)[M][Columns][4]) {
#pragma unroll
  for (int m = 0; m < M; ++m) {
#pragma unroll
    for (int n = 0; n < Columns; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) sums[m][n][e] = 0.0F;
    }
  }
}

// sums += A B for 16 M rows of A and 16 columns of B, two accumulators of 8.
template <typename T, int M, int Columns>
__device__ __forceinline__ void multiply(float (&sums)[M][Columns][4], int column, const std::uint32_t (&a)[M][4],
                                         const std::uint32_t (&b)[4]) {
#pragma unroll
  for (int m = 0; m < M; ++m) {
    gpu::mma_m16n8k16<T>(sums[m][column], a[m], {b[0], b[1]});
    gpu::mma_m16n8k16<T>(sums[m][column + 1], a[m], {b[2], b[3]});
  }
}

// 16 M rows of a tile, from `row` on, as the operand A of products over D, kept in registers (after hold()) or loaded
// for each.
template <typename T, int D, int M, bool IsHeld>
class LeftRows {
 public:
  __device__ __forceinline__ LeftRows(Tile<D> tile, int row)
      : tile_(tile), lane_(lane_by_rows<D>() + static_cast<unsigned>(row * 2 * D)) {}
  __device__ __forceinline__ void hold() {
    if constexpr (IsHeld) {
#pragma unroll
      for (int step = 0; step < D / 16; ++step) load(held_[step], lane_, step);
    }
  }
  // sums = these times N rows of the other tile, transposed.
  template <int N>
  __device__ __forceinline__ void multiply_rows(float (&sums)[M][N / 8][4], Tile<D> other) const {
    const unsigned lane = gpu::opaque(lane_by_columns<D>());
    const unsigned left = gpu::opaque(lane_);
    clear(sums);
#pragma unroll
    for (int step = 0; step < D / 16; ++step) {
      std::uint32_t loaded[M][4];
      if constexpr (!IsHeld) load(loaded, left, step);
#pragma unroll
      for (int n = 0; n < N / 16; ++n) {
        std::uint32_t b[4];
        gpu::ldmatrix_x4(b, other.at(lane, step, 16 * n));
        if constexpr (IsHeld) {
          multiply<T>(sums, 2 * n, held_[step], b);
        } else {
          multiply<T>(sums, 2 * n, loaded, b);
        }
      }
    }
  }

 private:
  __device__ __forceinline__ void load(std::uint32_t (&a)[M][4], unsigned lane, int step) const {
#pragma unroll
    for (int m = 0; m < M; ++m) gpu::ldmatrix_x4(a[m], tile_.at(lane, step, 16 * m));
  }

  Tile<D> tile_;
  unsigned lane_;
  std::uint32_t held_[IsHeld ? D / 16 : 1][M][4];
};

template <typename T>
__device__ __forceinline__ std::uint32_t pair_of(float low, float high) {
  std::uint32_t bits;
  if constexpr (std::is_same_v<T, __half>) {
    const __half2 pair = __floats2half2_rn(low, high);
    memcpy(&bits, &pair, sizeof bits);
  } else {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    memcpy(&bits, &pair, sizeof bits);
  }
  return bits;
}

// Accumulators, rounded, as the operand A of the next product: 16 M rows by N columns times N rows of a tile,
// added to sums. What is 16 columns of accumulators is k of the operand.
template <typename T, int D, int M, int N>
__device__ __forceinline__ void multiply_rounded(float (&sums)[M][D / 8][4], const float (&left)[M][N / 8][4],
                                                 Tile<D> tile) {
  const unsigned lane = gpu::opaque(lane_by_rows<D>());
#pragma unroll
  for (int n = 0; n < N / 16; ++n) {
    std::uint32_t a[M][4];
#pragma unroll
    for (int m = 0; m < M; ++m) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float(&values)[4] = left[m][2 * n + i / 2];
        a[m][i] = pair_of<T>(values[i % 2 * 2], values[i % 2 * 2 + 1]);
      }
    }
#pragma unroll
    for (int step = 0; step < D / 16; ++step) {
      std::uint32_t b[4];
      gpu::ldmatrix_x4_transposed(b, tile.at(lane, step, 16 * n));
      multiply<T>(sums, 2 * step, a, b);
    }
  }
}

// Writes a warp's 16 M rows, times factor[m][0 or 1] (of rows l / 4 and l / 4 + 8 of 16), to the tile's rows from `row`
// on, which no other warp uses, and from there to global memory: `first` is the tile's first row there.
template <int D, int M, typename T>
__device__ __forceinline__ void store_rows(const float (&sums)[M][D / 8][4], const float (&factor)[M][2], Tile<D> tile,
                                           int row, const Rows<T>& rows, int first, int length, bool is_aligned) {
  const auto lane = static_cast<int>(threadIdx.x) % 32;
  __syncwarp();
#pragma unroll
  for (int m = 0; m < M; ++m) {
#pragma unroll
    for (int n = 0; n < D / 8; ++n) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const std::uint32_t pair =
            pair_of<T>(sums[m][n][2 * half] * factor[m][half], sums[m][n][2 * half + 1] * factor[m][half]);
        const unsigned to = tile.first + Tile<D>::offset(row + 16 * m + 8 * half + lane / 4, n);
        *reinterpret_cast<std::uint32_t*>(shared_at(to) + lane % 4 * 4) = pair;
      }
    }
  }
  __syncwarp();
#pragma unroll 4
  for (int i = 0; i < 16 * M * Tile<D>::chunks / 32; ++i) {
    const int number = i * 32 + lane;
    const int r = row + number / Tile<D>::chunks;
    const int chunk = number % Tile<D>::chunks;
    if (first + r >= length) continue;
    const Pack<T> pack = load_pack(reinterpret_cast<const T*>(shared_at(tile.first + Tile<D>::offset(r, chunk))));
    T* to = rows.at(first + r) + chunk * 8;
    if (is_aligned) {
      store_pack(to, pack);
    } else {
      for (int e = 0; e < 8; ++e) to[e] = pack.values[e];
    }
  }
}

// CUDA wants to be told, once on each device, that a kernel takes more than 48 KiB of dynamic shared memory. One
// object a kernel.
class SharedMemoryAllowance {
 public:
  void obtain(const void* kernel, int bytes) {
    if (bytes <= 48 * 1024) return;
    int device = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    const std::uint64_t bit = std::uint64_t{1} << (device % 64);
    if ((devices_.load() & bit) != 0) return;
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes), "cudaFuncSetAttribute");
    devices_.fetch_or(bit);
  }

 private:
  std::atomic<std::uint64_t> devices_{0};
};

}  // namespace zt::cuda::attention
