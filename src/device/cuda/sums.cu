// Exact sums of values and squares, and checksums. Everything that blocks add to the same memory is an integer, so the
// results are the same in any order, on any grid and on the CPU.
#include <cfloat>
#include <cstddef>

#include "core/exact_sum.h"
#include "core/random.h"
#include "device/cuda/any_format.h"

namespace zt::cuda {
namespace {

using Word = unsigned long long;  // what CUDA adds atomically; two's complement, so negative numbers are added as well

// An accumulator in shared memory, laid out like Accumulator.
constexpr int counter = exact_sum_limbs;
constexpr int accumulator_words = exact_sum_limbs + 1;
static_assert(offsetof(Accumulator, not_finite) == counter * sizeof(Word) &&
              sizeof(Accumulator) == accumulator_words * sizeof(Word));

__device__ __forceinline__ void clear(Word* accumulator) {
  for (unsigned i = threadIdx.x; i < accumulator_words; i += blockDim.x) accumulator[i] = 0;
  __syncthreads();
}
__device__ __forceinline__ void flush(const Word* accumulator, Word* out) {
  __syncthreads();
  for (unsigned i = threadIdx.x; i < accumulator_words; i += blockDim.x) {
    if (accumulator[i] != 0) atomicAdd(&out[i], accumulator[i]);
  }
}

// The sum over a warp of pieces of 32 bits with a sign. Halves of 16 bits leave room for 32 of them.
__device__ __forceinline__ Word sum_of_pieces(std::uint32_t piece, int sign) {
  const int low = __reduce_add_sync(all_lanes, sign * static_cast<int>(piece & 0xffffU));
  const int high = __reduce_add_sync(all_lanes, sign * static_cast<int>(piece >> 16));
  return static_cast<Word>(static_cast<long long>(low) + static_cast<long long>(high) * 65536);
}

// Adds the finite values of a warp's lanes. Values of like size share their limbs, of which there are few: each set of
// three is summed over the warp first and added by one lane a limb.
__device__ __forceinline__ void add_exactly(Word* accumulator, double value) {
  const unsigned lane = threadIdx.x % 32;
  const ExactSumPieces parts = exact_sum_pieces(value);
  unsigned left = __ballot_sync(all_lanes, value != 0.0 ? 1 : 0);
  while (left != 0) {
    const int limb = __shfl_sync(all_lanes, parts.limb, __ffs(static_cast<int>(left)) - 1);
    const bool taken = value != 0.0 && parts.limb == limb;
    const int sign = taken ? (parts.negative ? -1 : 1) : 0;
    const Word sums[3] = {sum_of_pieces(parts.pieces[0], sign), sum_of_pieces(parts.pieces[1], sign),
                          sum_of_pieces(parts.pieces[2], sign)};
    const Word own = lane == 0 ? sums[0] : (lane == 1 ? sums[1] : sums[2]);
    if (lane < 3 && own != 0) atomicAdd(&accumulator[limb + static_cast<int>(lane)], own);
    left &= ~__ballot_sync(all_lanes, taken ? 1 : 0);
  }
}

__device__ __forceinline__ bool is_finite(float value) { return (__float_as_uint(value) & 0x7fffffffU) < 0x7f800000U; }

// ---- Values

constexpr int value_threads = 256;
constexpr int values_per_thread = 4;

__global__ void __launch_bounds__(value_threads) sum_values_kernel(const float* in, std::int64_t count, Word* out) {
  __shared__ Word accumulator[accumulator_words];
  clear(accumulator);
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * (value_threads * values_per_thread);
  float values[values_per_thread];
#pragma unroll
  for (int k = 0; k < values_per_thread; ++k) {
    const std::int64_t i = first + k * value_threads + static_cast<int>(threadIdx.x);
    values[k] = i < count ? in[i] : 0.0F;
  }
#pragma unroll
  for (const float value : values) {
    if (!is_finite(value)) atomicAdd(&accumulator[counter], Word{1});
    add_exactly(accumulator, is_finite(value) ? static_cast<double>(value) : 0.0);
  }
  flush(accumulator, out);
}

// ---- Squares. A warp copies a tile of whole blocks of 128 elements to shared memory, as they lie; then each thread
// has the same partial sums of one block all along it: all eight in 16-bit formats, four of them in fp32.

constexpr int square_warps = 4;
constexpr int square_threads = 32 * square_warps;
constexpr int block_elements = 128;
constexpr int packs_per_thread = 16;
constexpr int tile_packs = 32 * packs_per_thread;
constexpr int tiles_per_warp = 4;  // so that a block has something to do between its additions to device memory

template <typename T>
struct Tile {
  static constexpr int elements = tile_packs * Pack<T>::size;
  static constexpr int block_packs = block_elements / Pack<T>::size;
  static constexpr int threads_per_block = 8 / Pack<T>::size;
  static_assert(block_packs == packs_per_thread * threads_per_block);
  static constexpr int per_block = square_warps * tiles_per_warp * elements;

  // Where a pack lies in shared memory. In a row, a block's packs are exchanged, so that the threads of a warp, each
  // at the same place of another block, read from different banks.
  static __device__ __forceinline__ int place(int pack) {
    const int block = pack / block_packs;
    return pack ^ ((block * threads_per_block) % 8);
  }
  // The k-th pack of a lane's part of a block.
  static __device__ __forceinline__ int of_lane(int lane, int k) {
    return lane / threads_per_block * block_packs + k * threads_per_block + lane % threads_per_block;
  }

  // Copies the elements from `first` on; what lies beyond count becomes 0.
  static __device__ __forceinline__ void fill(Pack<T>* tile, const T* in, std::int64_t first, std::int64_t count,
                                              bool aligned) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    for (int turn = 0; turn < packs_per_thread; ++turn) {
      const int pack = turn * 32 + lane;
      const std::int64_t i = first + static_cast<std::int64_t>(pack) * Pack<T>::size;
      Pack<T>& to = tile[place(pack)];
      const std::int64_t left = count - i;
      if (aligned) {
        const int valid = left <= 0 ? 0 : left < Pack<T>::size ? static_cast<int>(left) : Pack<T>::size;
        gpu::cp_async_16(&to, valid == 0 ? in : in + i, valid * static_cast<int>(sizeof(T)));
      } else {
        for (int e = 0; e < Pack<T>::size; ++e) to.values[e] = e < left ? in[i + e] : from_float<T>(0.0F);
      }
    }
    gpu::cp_async_commit();
    gpu::cp_async_wait<0>();
    __syncwarp();
  }
};

template <typename T>
__global__ void __launch_bounds__(square_threads)
    sum_squares_kernel(const T* in, std::int64_t count, bool aligned, Word* out) {
  __shared__ Word accumulator[accumulator_words];
  __shared__ Pack<T> tiles[square_warps][tile_packs];
  clear(accumulator);
  Pack<T>* tile = tiles[threadIdx.x / 32];
  const int lane = static_cast<int>(threadIdx.x % 32);
  std::int64_t first =
      static_cast<std::int64_t>(blockIdx.x) * Tile<T>::per_block + threadIdx.x / 32 * Tile<T>::elements;
  for (int turn = 0; turn < tiles_per_warp && first < count; ++turn, first += square_warps * Tile<T>::elements) {
    Tile<T>::fill(tile, in, first, count, aligned);
    double partial[Pack<T>::size] = {};
#pragma unroll
    for (int k = 0; k < packs_per_thread; ++k) {
      const Pack<T> pack = tile[Tile<T>::place(Tile<T>::of_lane(lane, k))];
#pragma unroll
      for (int e = 0; e < Pack<T>::size; ++e) {
        const auto x = static_cast<double>(to_float(pack.values[e]));
        partial[e] += x * x;  // exact products: fused or not, the sum is the same
      }
    }
    double sum = (partial[0] + partial[1]) + (partial[2] + partial[3]);
    if constexpr (Pack<T>::size == 8) {
      sum += (partial[4] + partial[5]) + (partial[6] + partial[7]);
    } else {
      sum += __shfl_xor_sync(all_lanes, sum, 1);
    }
    // A finite float's square is far below double's largest, so only non-finite elements make the sum so.
    const bool finite = sum <= DBL_MAX;
    if (!finite) {
      Word not_finite = 0;
      for (int k = 0; k < packs_per_thread; ++k) {
        const Pack<T> pack = tile[Tile<T>::place(Tile<T>::of_lane(lane, k))];
        for (const T value : pack.values) not_finite += is_finite(to_float(value)) ? 0 : 1;
      }
      atomicAdd(&accumulator[counter], not_finite);
    }
    add_exactly(accumulator, finite && lane % Tile<T>::threads_per_block == 0 ? sum : 0.0);
    __syncwarp();  // the tile is filled again
  }
  flush(accumulator, out);
}

// ---- Checksum

constexpr int checksum_threads = 256;
constexpr int checksum_unroll = 2;
constexpr int checksum_turns = 4;
constexpr int checksum_elements = checksum_threads * 4 * checksum_unroll * checksum_turns;  // of a block

template <int N>
__device__ __forceinline__ Word checksum_of(const AnyTensor& in, const Bits<N>& bits, std::uint64_t tensor,
                                            std::uint64_t first) {
  const Floats<N> values = in.floats<N>(bits);
  Word sum = 0;
#pragma unroll
  for (int e = 0; e < N; ++e) {
    const std::uint64_t place = mix64(tensor ^ (first + static_cast<std::uint64_t>(e)));
    sum += mix64(place ^ __float_as_uint(values.values[e]));
  }
  return sum;
}

__global__ void __launch_bounds__(checksum_threads)
    checksum_kernel(const __grid_constant__ AnyTensor in, std::int64_t count, bool packed, std::uint64_t tensor,
                    std::uint64_t first_element, Word* out) {
  __shared__ Word shared[checksum_threads / 32];
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * checksum_elements;
  const std::int64_t end = first + checksum_elements < count ? first + checksum_elements : count;
  const std::int64_t whole = packed ? first + (end - first) / 4 * 4 : first;
  const auto thread = static_cast<int>(threadIdx.x);
  Word sum = 0;
  for (std::int64_t begin = first + 4 * thread; begin < whole; begin += checksum_unroll * 4 * checksum_threads) {
    Bits<4> bits[checksum_unroll] = {};
#pragma unroll
    for (int u = 0; u < checksum_unroll; ++u) {
      const std::int64_t i = begin + u * 4 * checksum_threads;
      if (i < whole) bits[u] = in.load<4>(i);
    }
#pragma unroll
    for (int u = 0; u < checksum_unroll; ++u) {
      const std::int64_t i = begin + u * 4 * checksum_threads;
      if (i < whole) sum += checksum_of(in, bits[u], tensor, first_element + static_cast<std::uint64_t>(i));
    }
  }
  for (std::int64_t i = whole + thread; i < end; i += checksum_threads) {
    sum += checksum_of(in, in.load<1>(i), tensor, first_element + static_cast<std::uint64_t>(i));
  }
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) atomicAdd(out, sum);
}

}  // namespace

void run(const SumValues& op, const Launch& where) {
  launch("sum_values", sum_values_kernel, blocks_for(op.count, value_threads * values_per_thread), value_threads, 0,
         where, op.in, op.count, reinterpret_cast<Word*>(op.out));
}

void run(const SumSquares& op, const Launch& where) {
  by_type(op.in.dtype, [&]<typename T>(T*) {
    launch("sum_squares", sum_squares_kernel<T>, blocks_for(op.in.count, Tile<T>::per_block), square_threads, 0, where,
           pointer<T>(op.in), op.in.count, is_aligned(op.in.data), reinterpret_cast<Word*>(op.out));
  });
}

void run(const Checksum& op, const Launch& where) {
  launch("checksum", checksum_kernel, blocks_for(op.in.count, checksum_elements), checksum_threads, 0, where,
         AnyTensor(op.in), op.in.count, can_pack<4>({op.in}), op.tensor_index << 40,
         static_cast<std::uint64_t>(op.first_element), reinterpret_cast<Word*>(op.out));
}

}  // namespace zt::cuda
