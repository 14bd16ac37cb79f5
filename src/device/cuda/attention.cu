// Attention: which kernels an operation takes, and what backward needs to know of every query.
#include <cmath>
#include <type_traits>

#include "device/cuda/attention.h"
#include "device/gpu/workspace.h"

namespace zt::cuda {
namespace {

using attention::Problem;
using attention::Statistics;

constexpr int statistics_threads = 128;
constexpr int lanes_of_query = 8;

// Eight lanes a query, in the order of out: chunk c of 16 bytes of a row is lane c % 8's, whether or not it may be read
// at once.
template <typename T>
__global__ void __launch_bounds__(statistics_threads)
    statistics_kernel(const Problem problem, const float* log_sum_exp, float log_factor, Statistics* statistics) {
  constexpr int size = Pack<T>::size;
  const std::int64_t padded = gpu::attention_padded_length(problem.length);
  const std::int64_t number =
      static_cast<std::int64_t>(blockIdx.x) * (statistics_threads / lanes_of_query) + threadIdx.x / lanes_of_query;
  const auto lane = static_cast<int>(threadIdx.x) % lanes_of_query;
  const std::int64_t head = number % problem.heads;
  const std::int64_t query = number / problem.heads % padded;
  const std::int64_t sample = number / problem.heads / padded;
  const bool is_inside = sample < problem.batch && query < problem.length;
  float delta = 0.0F;
  if (is_inside) {
    const std::int64_t row =
        ((sample * problem.length + query) * problem.heads + head) * static_cast<std::int64_t>(problem.head_size);
    const T* out = static_cast<const T*>(problem.out) + row;
    const T* d_out = static_cast<const T*>(problem.d_out) + row;
    const bool whole_chunks = problem.is_aligned && problem.head_size % size == 0;
    for (int d = lane * size; d < problem.head_size; d += lanes_of_query * size) {
      if (whole_chunks) {
        const Pack<T> a = load_pack(out + d);
        const Pack<T> b = load_pack(d_out + d);
#pragma unroll
        for (int i = 0; i < size; ++i) delta = fmaf(to_float(a.values[i]), to_float(b.values[i]), delta);
      } else {
        for (int i = d; i < min(d + size, problem.head_size); ++i)
          delta = fmaf(to_float(out[i]), to_float(d_out[i]), delta);
      }
    }
  }
  for (int bits = lanes_of_query / 2; bits > 0; bits /= 2) delta += __shfl_xor_sync(all_lanes, delta, bits);
  if (lane != 0 || sample >= problem.batch) return;
  const std::int64_t batch_head = sample * problem.heads + head;
  Statistics result{INFINITY, 0.0F};
  if (is_inside) {
    result = {log_sum_exp[batch_head * problem.length + query] * log_factor, delta * problem.scale};
  }
  statistics[batch_head * padded + query] = result;
}

template <typename Op>
Problem problem_of(const Op& op) {
  Problem problem;
  problem.qkv = op.qkv.data;
  problem.batch = static_cast<int>(op.batch);
  problem.length = static_cast<int>(op.length);
  problem.heads = static_cast<int>(op.heads);
  problem.head_size = static_cast<int>(op.head_size);
  problem.scale = 1.0F / std::sqrt(static_cast<float>(op.head_size));
  problem.keeping = attention::keeping_of(op.dropout);
  return problem;
}

template <typename Op>
bool is_empty(const Op& op) {
  return op.batch <= 0 || op.length <= 0 || op.heads <= 0 || op.head_size <= 0;
}

// Calls f.operator()<D>() if there are kernels on tensor cores; false if not.
template <typename T, typename F>
bool on_tensor_cores(int head_size, const F& f) {
  if constexpr (std::is_same_v<T, float>) {
    return false;
  } else {
    switch (head_size) {
      case 32: f.template operator()<32>(); return true;
      case 64: f.template operator()<64>(); return true;
      case 96: f.template operator()<96>(); return true;
      case 128: f.template operator()<128>(); return true;
      default: return false;
    }
  }
}

}  // namespace

void run(const AttentionForward& op, const Launch& launch) {
  if (is_empty(op)) return;
  Problem problem = problem_of(op);
  problem.result = op.out.data;
  problem.log_sum_exp = op.log_sum_exp;
  problem.is_aligned = is_aligned(op.qkv.data) && is_aligned(op.out.data);
  by_type(op.qkv.dtype, [&]<typename T>(T*) {
    const bool done = on_tensor_cores<T>(problem.head_size,
                                         [&]<int D>() { attention::forward_on_tensor_cores<T, D>(problem, launch); });
    if (!done) attention::forward_plain<T>(problem, launch);
  });
}

void run(const AttentionBackward& op, const Launch& launch) {
  if (is_empty(op)) return;
  auto* statistics = reinterpret_cast<Statistics*>(launch.workspace);
  Problem problem = problem_of(op);
  problem.out = op.out.data;
  problem.d_out = op.d_out.data;
  problem.result = op.d_qkv.data;
  problem.statistics = statistics;
  problem.is_aligned =
      is_aligned(op.qkv.data) && is_aligned(op.out.data) && is_aligned(op.d_out.data) && is_aligned(op.d_qkv.data);
  by_type(op.qkv.dtype, [&]<typename T>(T*) {
    const auto prepare = [&](float log_factor) {
      const std::int64_t queries = problem.batch_heads() * gpu::attention_padded_length(problem.length);
      zt::cuda::launch("attention backward, statistics", statistics_kernel<T>,
                       blocks_for(queries, statistics_threads / lanes_of_query), statistics_threads, 0, launch, problem,
                       op.log_sum_exp, log_factor, statistics);
    };
    const bool done = on_tensor_cores<T>(problem.head_size, [&]<int D>() {
      prepare(attention::log2_e);
      attention::backward_on_tensor_cores<T, D>(problem, launch);
    });
    if (done) return;
    prepare(1.0F);
    attention::backward_plain<T>(problem, launch);
  });
}

}  // namespace zt::cuda
