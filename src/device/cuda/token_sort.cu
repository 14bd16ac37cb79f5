#include "device/cuda/kernel_support.h"
#include "device/cuda/token_sort.h"

namespace zt::cuda {
namespace {

// A block has a tile of the positions; each of its warps a stretch of the tile, 32 at a time.
constexpr int warps = 8;
constexpr int rounds = static_cast<int>(gpu::sort_tile) / (32 * warps);
constexpr int most_bins = 1 << gpu::most_sort_bits;

// One digit of the tokens: `bits` bits from `shift` on.
struct Digit {
  int shift, bins;
};
__device__ __forceinline__ int digit_of(std::int32_t token, Digit digit) {
  return (token >> digit.shift) & (digit.bins - 1);
}

// counts[bin][tile] = how many tokens of the tile have this digit.
__global__ void __launch_bounds__(32 * warps)
    count_digits_kernel(const std::int32_t* tokens, std::int64_t count, Digit digit, std::int64_t tiles,
                        std::int32_t* counts) {
  __shared__ std::int32_t bins[most_bins];
  for (int bin = static_cast<int>(threadIdx.x); bin < digit.bins; bin += 32 * warps) bins[bin] = 0;
  __syncthreads();
  const std::int64_t tile = blockIdx.x;
  for (int i = static_cast<int>(threadIdx.x); i < gpu::sort_tile; i += 32 * warps) {
    const std::int64_t at = tile * gpu::sort_tile + i;
    if (at < count) atomicAdd(&bins[digit_of(tokens[at], digit)], 1);
  }
  __syncthreads();
  for (int bin = static_cast<int>(threadIdx.x); bin < digit.bins; bin += 32 * warps) {
    counts[bin * tiles + tile] = bins[bin];
  }
}

__device__ __forceinline__ std::int32_t sum_of_lanes_before(std::int32_t value) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  std::int32_t sum = value;
  for (unsigned distance = 1; distance < 32; distance *= 2) {
    const std::int32_t below = __shfl_up_sync(all_lanes, sum, distance);
    if (lane >= static_cast<int>(distance)) sum += below;
  }
  return sum - value;
}

// counts[bin][tile] becomes the count of the tiles before; totals[bin] that of all. A warp has a bin.
__global__ void __launch_bounds__(32 * warps)
    add_tiles_kernel(std::int32_t* counts, std::int64_t tiles, std::int32_t* totals, int bins) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int bin = static_cast<int>(blockIdx.x * warps + threadIdx.x / 32);
  if (bin >= bins) return;
  std::int32_t total = 0;
  for (std::int64_t first = 0; first < tiles; first += 32) {
    const std::int64_t tile = first + lane;
    const std::int32_t value = tile < tiles ? counts[bin * tiles + tile] : 0;
    const std::int32_t before = sum_of_lanes_before(value);
    if (tile < tiles) counts[bin * tiles + tile] = total + before;
    total += __shfl_sync(all_lanes, before + value, 31);
  }
  if (lane == 0) totals[bin] = total;
}

// Moves the tile's tokens and positions to where their digit puts them, in the order they have. positions null: they
// are 0, 1, 2, ...
__global__ void __launch_bounds__(32 * warps)
    move_kernel(const std::int32_t* tokens, const std::int32_t* positions, std::int64_t count, Digit digit,
                std::int64_t tiles, const std::int32_t* counts, const std::int32_t* totals, std::int32_t* tokens_out,
                std::int32_t* positions_out) {
  __shared__ std::int32_t starts[most_bins];          // where the tile's first element of a bin goes
  __shared__ std::int32_t counted[warps][most_bins];  // how many of a bin the warp has seen; then, those before it
  __shared__ std::int32_t warp_totals[warps];
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  const int warp = thread / 32;
  const std::int64_t tile = blockIdx.x;

  // Starts of the bins: sums of the totals before, a stretch of them a thread.
  const int stretch = (digit.bins + 32 * warps - 1) / (32 * warps);
  std::int32_t own = 0;
  for (int bin = thread * stretch; bin < min(digit.bins, (thread + 1) * stretch); ++bin) own += totals[bin];
  std::int32_t before = sum_of_lanes_before(own);
  if (lane == 31) warp_totals[warp] = before + own;
  for (int bin = thread; bin < digit.bins; bin += 32 * warps) {
    for (int w = 0; w < warps; ++w) counted[w][bin] = 0;
  }
  __syncthreads();
  for (int w = 0; w < warp; ++w) before += warp_totals[w];
  for (int bin = thread * stretch; bin < min(digit.bins, (thread + 1) * stretch); ++bin) {
    starts[bin] = before + counts[bin * tiles + tile];
    before += totals[bin];
  }

  // An element's rank among those of its digit that this warp has seen.
  std::int32_t token[rounds];
  std::int32_t rank[rounds];
  const std::int64_t first = tile * gpu::sort_tile + warp * (32 * rounds) + lane;
#pragma unroll
  for (int round = 0; round < rounds; ++round) {
    const std::int64_t at = first + round * 32;
    token[round] = at < count ? tokens[at] : -1;
    const int bin = token[round] < 0 ? digit.bins : digit_of(token[round], digit);
    const unsigned same = __match_any_sync(all_lanes, bin);
    const int earlier = __popc(same & ((1U << lane) - 1U));
    if (token[round] >= 0) rank[round] = counted[warp][bin] + earlier;
    __syncwarp();
    if (token[round] >= 0 && earlier == 0) counted[warp][bin] += __popc(same);
    __syncwarp();
  }
  __syncthreads();
  for (int bin = thread; bin < digit.bins; bin += 32 * warps) {
    std::int32_t sum = 0;
    for (int w = 0; w < warps; ++w) {
      const std::int32_t value = counted[w][bin];
      counted[w][bin] = sum;
      sum += value;
    }
  }
  __syncthreads();
#pragma unroll
  for (int round = 0; round < rounds; ++round) {
    const std::int64_t at = first + round * 32;
    if (at >= count) continue;
    const int bin = digit_of(token[round], digit);
    const std::int32_t to = starts[bin] + counted[warp][bin] + rank[round];
    tokens_out[to] = token[round];
    positions_out[to] = positions == nullptr ? static_cast<std::int32_t>(at) : positions[at];
  }
}

__global__ void clear_kernel(std::int32_t* out, std::int64_t count) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) out[i] = 0;
}

// Where the positions of each token that occurs begin and end.
__global__ void find_ends_kernel(const std::int32_t* tokens, std::int64_t count, std::int32_t* begins,
                                 std::int32_t* ends) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const std::int32_t token = tokens[i];
  if (i == 0 || tokens[i - 1] != token) begins[token] = static_cast<std::int32_t>(i);
  if (i == count - 1 || tokens[i + 1] != token) ends[token] = static_cast<std::int32_t>(i + 1);
}

}  // namespace

SortedPositions sort_positions(const std::int32_t* tokens, std::int64_t count, std::int64_t vocabulary,
                               const Launch& where) {
  const gpu::SortPlan plan = gpu::token_sort(count, vocabulary);
  const auto bins = static_cast<int>(plan.bins());
  auto* begins = reinterpret_cast<std::int32_t*>(where.workspace);
  std::int32_t* ends = begins + vocabulary;
  std::int32_t* counts = ends + vocabulary;
  std::int32_t* totals = counts + plan.bins() * plan.tiles;
  std::int32_t* buffers[2][2];  // tokens and positions, twice
  for (int i = 0; i < 4; ++i) buffers[i / 2][i % 2] = totals + plan.bins() + i * count;

  const std::int32_t* from_tokens = tokens;
  const std::int32_t* from_positions = nullptr;
  const char* name = "sorting positions by token";
  const auto tiles = static_cast<unsigned>(plan.tiles);
  for (int pass = 0; pass < plan.passes; ++pass) {
    const Digit digit{pass * plan.bits, bins};
    const auto& to = buffers[pass % 2];
    launch(name, count_digits_kernel, tiles, 32 * warps, 0, where, from_tokens, count, digit, plan.tiles, counts);
    launch(name, add_tiles_kernel, blocks_for(bins, warps), 32 * warps, 0, where, counts, plan.tiles, totals, bins);
    launch(name, move_kernel, tiles, 32 * warps, 0, where, from_tokens, from_positions, count, digit, plan.tiles,
           counts, totals, to[0], to[1]);
    from_tokens = to[0];
    from_positions = to[1];
  }
  launch(name, clear_kernel, blocks_for(2 * vocabulary, 256), 256, 0, where, begins, 2 * vocabulary);
  launch(name, find_ends_kernel, blocks_for(count, 256), 256, 0, where, from_tokens, count, begins, ends);
  return {from_positions, begins, ends};
}

}  // namespace zt::cuda
