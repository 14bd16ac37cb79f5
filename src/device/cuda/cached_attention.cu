// CachedAttention: one block a query of a head, on the ordinary units. 256 keys at a time: each thread finds the score
// of one key, then sums values for its own columns; the softmax is rescaled as larger scores come.
#include <cmath>

#include "device/cuda/kernel_support.h"

namespace zt::cuda {
namespace {

constexpr int threads = 256;

struct Cached {
  const void* qkv;
  void* out;
  std::int64_t capacity, first, length, heads;
  int head_size;
  float scale;
};

// `shared`: room for one float a warp. All threads take part and get the result.
__device__ __forceinline__ float block_max(float value, float* shared) {
  value = warp_max(value);
  __syncthreads();
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  float result = shared[0];
  for (int warp = 1; warp < threads / 32; ++warp) result = fmaxf(result, shared[warp]);
  return result;
}

// grid.x: queries of all heads; grid.y: parts of `threads` columns of D, which find the scores again.
template <typename T>
__global__ void __launch_bounds__(threads) cached_attention_kernel(const Cached op) {
  __shared__ float probabilities[threads];
  __shared__ float of_warps[threads / 32];
  const auto thread = static_cast<int>(threadIdx.x);
  const std::int64_t width = op.heads * op.head_size;
  const auto block = static_cast<std::int64_t>(blockIdx.x);
  const std::int64_t head = block % op.heads;
  const std::int64_t row = block / op.heads;
  const std::int64_t position = op.first + row % op.length;
  const T* const of_head =
      static_cast<const T*>(op.qkv) + row / op.length * op.capacity * 3 * width + head * op.head_size;
  const T* const query = of_head + position * 3 * width;
  const T* const keys = of_head + width;
  const T* const values = of_head + 2 * width;
  const int column = static_cast<int>(blockIdx.y) * threads + thread;

  float largest = -INFINITY;
  float sum = 0.0F;
  float out = 0.0F;
  for (std::int64_t start = 0; start <= position; start += threads) {
    const bool is_inside = start + thread <= position;
    float score = -INFINITY;
    if (is_inside) {
      const T* const key = keys + (start + thread) * 3 * width;
      float product = 0.0F;
      for (int d = 0; d < op.head_size; ++d) product = fmaf(to_float(query[d]), to_float(key[d]), product);
      score = product * op.scale;
    }
    const float next = fmaxf(largest, block_max(score, of_warps));
    const float rescale = expf(largest - next);
    largest = next;
    const float p = is_inside ? expf(score - next) : 0.0F;
    probabilities[thread] = to_float(from_float<T>(p));
    sum = sum * rescale + block_sum(p, of_warps);  // its barriers are between the writing of probabilities and the use
    out *= rescale;
    if (column < op.head_size) {
      const std::int64_t left = position + 1 - start;
      const int count = left < threads ? static_cast<int>(left) : threads;
      const T* value = values + start * 3 * width + column;
      for (int key = 0; key < count; ++key, value += 3 * width) out = fmaf(probabilities[key], to_float(*value), out);
    }
    __syncthreads();
  }
  if (column < op.head_size)
    static_cast<T*>(op.out)[row * width + head * op.head_size + column] = from_float<T>(out / sum);
}

}  // namespace

void run(const CachedAttention& op, const Launch& launch) {
  if (op.batch <= 0 || op.length <= 0 || op.heads <= 0 || op.head_size <= 0) return;
  const Cached cached{.qkv = op.qkv.data,
                      .out = op.out.data,
                      .capacity = op.capacity,
                      .first = op.first,
                      .length = op.length,
                      .heads = op.heads,
                      .head_size = static_cast<int>(op.head_size),
                      .scale = 1.0F / std::sqrt(static_cast<float>(op.head_size))};
  const dim3 grid(static_cast<unsigned>(op.batch * op.length * op.heads), blocks_for(op.head_size, threads));
  by_type(op.qkv.dtype, [&]<typename T>(T*) {
    zt::cuda::launch("cached attention", cached_attention_kernel<T>, grid, threads, 0, launch, cached);
  });
}

}  // namespace zt::cuda
