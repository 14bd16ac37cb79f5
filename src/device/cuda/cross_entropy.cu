// Cross entropy of a softmax, fused with its gradient. A block has a row and goes over it twice: for the largest logit
// and the sum of exponentials at once (Milakov & Gimelshein 2018, "Online normalizer calculation for softmax"), then
// for the gradient, which comes from the cache where the row was just read.
#include <limits>

#include "device/cuda/rows.h"

namespace zt::cuda {
namespace {

constexpr int most_threads = 512;
constexpr int packs_a_thread = 4;  // fewer threads for short rows

// Some of a row's logits. The largest logit's own term of the sum, which is 1, is left out: where it is the target and
// nearly certain, the loss is the sum of the others, and would be rounded away beside it.
struct State {
  float largest;  // NaN left out
  float others;   // the sum of e^(x - largest) over all but `place`; -1 if there is no logit that is > -infinity
  int place;      // of the first largest logit
};
__device__ __forceinline__ State no_logits() {
  return {-std::numeric_limits<float>::infinity(), -1.0F, std::numeric_limits<int>::max()};
}

// e^(x - largest), with 0 instead of NaN where both are -infinity; NaN stays.
__device__ __forceinline__ float term(float x, float largest) {
  return expf(x - (largest == -std::numeric_limits<float>::infinity() ? 0.0F : largest));
}

// The same bits whichever comes first.
__device__ __forceinline__ State merged(State a, State b) {
  if (b.largest > a.largest || (b.largest == a.largest && b.place < a.place)) {
    const State other = a;
    a = b;
    b = other;
  }
  a.others += (1.0F + b.others) * term(b.largest, a.largest);
  return a;
}
__device__ __forceinline__ State merged_over_lanes(State state) {
#pragma unroll
  for (int bits = 16; bits > 0; bits /= 2) {
    State other;
    other.largest = __shfl_xor_sync(all_lanes, state.largest, bits);
    other.others = __shfl_xor_sync(all_lanes, state.others, bits);
    other.place = __shfl_xor_sync(all_lanes, state.place, bits);
    state = merged(state, other);
  }
  return state;
}

// The logits of a pack that lie at `at` and after it; those of the row's padding may be anything.
template <typename T>
__device__ __forceinline__ void add_pack(State& state, const Pack<T>& pack, int at, int vocabulary) {
  constexpr int size = Pack<T>::size;
  float x[size];
  float largest = -std::numeric_limits<float>::infinity();
#pragma unroll
  for (int k = 0; k < size; ++k) {
    x[k] = at + k < vocabulary ? to_float(pack.values[k]) : -std::numeric_limits<float>::infinity();
    largest = fmaxf(largest, x[k]);
  }
  int own = -1;
  if (largest > state.largest) {
    state.others = (1.0F + state.others) * term(state.largest, largest);
    state.largest = largest;
#pragma unroll
    for (int k = size - 1; k >= 0; --k) own = x[k] == largest ? k : own;
    state.place = at + own;
  }
  float sum = 0.0F;
#pragma unroll
  for (int k = 0; k < size; ++k) {
    const float e = term(x[k], state.largest);
    sum += k == own ? 0.0F : e;
  }
  state.others += sum;
}

// The gradient is rounded to T: in 16 bits the fast exponential, whose error of 2 + 1.2 |x| units in the last place of
// fp32 (CUDA C++ programming guide, "Intrinsic Functions") is far below that, does as well.
template <typename T>
__device__ __forceinline__ float gradient_term(float x) {
  if constexpr (sizeof(T) < sizeof(float)) {
    return __expf(x);
  } else {
    return expf(x);
  }
}

template <typename T, bool whole>
__global__ void __launch_bounds__(most_threads) cross_entropy_kernel(CrossEntropy op) {
  constexpr int size = Pack<T>::size;
  __shared__ State shared[most_threads / 32];
  const int vocabulary = static_cast<int>(op.vocabulary);
  const int columns = static_cast<int>(op.stride);
  // The rows that the product before wrote last come first: they may still be in the cache.
  const std::int64_t row = op.rows - 1 - static_cast<std::int64_t>(blockIdx.x);
  const T* logits = static_cast<const T*>(op.logits.data) + row * op.stride;
  T* d_logits = op.d_logits.data == nullptr ? nullptr : static_cast<T*>(op.d_logits.data) + row * op.stride;
  const int target = op.targets[row];
  const int thread = static_cast<int>(threadIdx.x);
  const int stride = static_cast<int>(blockDim.x) * size;
  if (target < 0) {
    if (thread == 0) {
      op.losses[row] = 0.0F;
      if (op.correct != nullptr) op.correct[row] = 0;
    }
    if (d_logits == nullptr) return;
    for (int at = thread * size; at < columns; at += stride) store_row_pack(d_logits, at, columns, whole, Pack<T>{});
    return;
  }

  // Each pack is on its way while the one before is worked on.
  State state = no_logits();
  Pack<T> next = load_row_pack(logits, thread * size, columns, whole);
  for (int at = thread * size; at < vocabulary; at += stride) {
    const Pack<T> pack = next;
    next = load_row_pack(logits, at + stride, columns, whole);
    add_pack(state, pack, at, vocabulary);
  }
  const float target_logit = to_float(logits[target]);  // the gradient may take its place
  state = merged_over_lanes(state);
  if (thread % 32 == 0) shared[thread / 32] = state;
  __syncthreads();
  // Every warp does this for itself, and all get the same bits.
  const int warps = static_cast<int>(blockDim.x / 32);
  state = merged_over_lanes(thread % 32 < warps ? shared[thread % 32] : no_logits());
  // A logit of +infinity leaves no loss that is a number.
  if (state.largest == std::numeric_limits<float>::infinity()) state.others = state.largest - state.largest;
  if (thread == 0) {
    op.losses[row] = log1pf(state.others) + (state.largest - target_logit);
    if (op.correct != nullptr) op.correct[row] = state.place == target ? 1 : 0;
  }
  if (d_logits == nullptr) return;

  const float sum = 1.0F + state.others;
  const float factor = op.scale / sum;
  // The target's probability less one; where it is the largest, without cancellation.
  const float distance = state.place == target ? -state.others / sum : expf(target_logit - state.largest) / sum - 1.0F;
  const float target_gradient = distance * op.scale;
  // From the end, which was read last.
  const int last = (columns - 1) / size * size - thread * size;
  if (last >= 0) next = load_row_pack(logits, last, columns, whole);
  for (int at = last; at >= 0; at -= stride) {
    Pack<T> pack = next;
    if (at >= stride) next = load_row_pack(logits, at - stride, columns, whole);
#pragma unroll
    for (int k = 0; k < size; ++k) {
      float d = gradient_term<T>(to_float(pack.values[k]) - state.largest) * factor;
      if (at + k == target) d = target_gradient;
      pack.values[k] = from_float<T>(at + k < vocabulary ? d : 0.0F);
    }
    store_row_pack(d_logits, at, columns, whole, pack);
  }
}

}  // namespace

void run(const CrossEntropy& op, const Launch& where) {
  by_type(op.logits.dtype, [&]<typename T>(T*) {
    const std::int64_t packs = (op.stride + Pack<T>::size - 1) / Pack<T>::size;
    launch("cross entropy",
           are_whole<T>(op.stride, op.logits.data, op.d_logits.data) ? cross_entropy_kernel<T, true>
                                                                     : cross_entropy_kernel<T, false>,
           static_cast<unsigned>(op.rows), threads_for((packs + packs_a_thread - 1) / packs_a_thread, most_threads), 0,
           where, op);
  });
}

}  // namespace zt::cuda
