// Layer normalization (Ba et al. 2016), fused with the residual sum and its dropout.
#include "device/cuda/rows.h"

namespace zt::cuda {
namespace {

constexpr int held_packs = 4;      // of a row, in a thread's registers
constexpr int most_threads = 512;  // of a row

// A row narrow enough is one warp's, and a block has several; else it is a block's. A row that a block's registers
// cannot hold is read again for each pass.
enum class Plan { warp, block, reread };
constexpr int warps_of_block = 4;  // Plan::warp

struct Arguments {
  LayerNormForward op;
  Dropper dropper;
  bool whole;            // rows are made of aligned packs
  bool weights_aligned;  // so are weight and bias
};

// The rounded sum, which is stored; or `in` as it is.
template <typename T>
__device__ __forceinline__ Pack<T> sum_of(const Arguments& arguments, std::int64_t row, int at, Pack<T> in,
                                          const Pack<T>& delta) {
  constexpr int size = Pack<T>::size;
  const LayerNormForward& op = arguments.op;
  if (op.delta.data == nullptr) return in;
  const std::int64_t start = row * op.columns;
  float change[size];
#pragma unroll
  for (int k = 0; k < size; ++k) change[k] = to_float(delta.values[k]);
  arguments.dropper.apply(change, start + at);
  // Not fused with dropout's multiplication: the sum has the same bits on every device.
#pragma unroll
  for (int k = 0; k < size; ++k) in.values[k] = from_float<T>(__fadd_rn(to_float(in.values[k]), change[k]));
  store_row_pack(static_cast<T*>(op.sum.data) + start, at, static_cast<int>(op.columns), arguments.whole, in);
  return in;
}

template <typename T>
__device__ __forceinline__ void normalize_pack(const Arguments& arguments, std::int64_t row, int at,
                                               const Pack<T>& pack, float mean, float rstd) {
  constexpr int size = Pack<T>::size;
  const LayerNormForward& op = arguments.op;
  const int columns = static_cast<int>(op.columns);
  const int valid = valid_elements<T>(at, columns);
  const bool whole = arguments.weights_aligned && valid == size;
  float weight[size];
  float bias[size] = {};
  load_floats(op.weight, at, valid, whole, weight);
  if (op.bias.data != nullptr) load_floats(op.bias, at, valid, whole, bias);
  Pack<T> out;
#pragma unroll
  for (int k = 0; k < size; ++k) {
    out.values[k] = from_float<T>(__fmaf_rn((to_float(pack.values[k]) - mean) * rstd, weight[k], bias[k]));
  }
  store_row_pack(static_cast<T*>(op.out.data) + row * op.columns, at, columns, arguments.whole, out);
}

template <typename T, Plan plan>
__global__ void __launch_bounds__(plan == Plan::warp ? 32 * warps_of_block : most_threads)
    layer_norm_forward_kernel(Arguments arguments) {
  constexpr int size = Pack<T>::size;
  __shared__ float shared[32];
  const LayerNormForward& op = arguments.op;
  const int columns = static_cast<int>(op.columns);
  const int threads = plan == Plan::warp ? 32 : static_cast<int>(blockDim.x);
  const int thread = plan == Plan::warp ? static_cast<int>(threadIdx.x % 32) : static_cast<int>(threadIdx.x);
  const std::int64_t row = plan == Plan::warp
                               ? static_cast<std::int64_t>(blockIdx.x) * warps_of_block + threadIdx.x / 32
                               : static_cast<std::int64_t>(blockIdx.x);
  if (row >= op.rows) return;
  const int stride = threads * size;
  const T* summed = static_cast<const T*>(op.delta.data == nullptr ? op.in.data : op.sum.data) + row * op.columns;
  const auto total_of = [&](float value) {
    if constexpr (plan == Plan::warp) return warp_sum(value);
    return block_sum(value, shared);
  };
  // f(at, pack) for this thread's packs of the row, as rounded.
  Pack<T> held[held_packs];
  const auto for_packs = [&](const auto& f) {
    if constexpr (plan == Plan::reread) {
      for (int at = thread * size; at < columns; at += stride) {
        f(at, load_row_pack(summed, at, columns, arguments.whole));
      }
    } else {
#pragma unroll
      for (int i = 0; i < held_packs; ++i) {
        const int at = thread * size + i * stride;
        if (at < columns) f(at, held[i]);
      }
    }
  };

  float total = 0.0F;
  const auto add_to_total = [&](const Pack<T>& pack) {
#pragma unroll
    for (int k = 0; k < size; ++k) total += to_float(pack.values[k]);
  };
  const T* in = static_cast<const T*>(op.in.data) + row * op.columns;
  const T* delta = op.delta.data == nullptr ? nullptr : static_cast<const T*>(op.delta.data) + row * op.columns;
  if constexpr (plan == Plan::reread) {
    for (int at = thread * size; at < columns; at += stride) {
      Pack<T> change{};
      if (delta != nullptr) change = load_row_pack(delta, at, columns, arguments.whole);
      add_to_total(sum_of(arguments, row, at, load_row_pack(in, at, columns, arguments.whole), change));
    }
  } else {
    Pack<T> changes[held_packs];
    load_row_packs(in, thread * size, stride, columns, arguments.whole, held);
    if (delta != nullptr) {
      load_row_packs(delta, thread * size, stride, columns, arguments.whole, changes);
#pragma unroll
      for (int i = 0; i < held_packs; ++i) {
        const int at = thread * size + i * stride;
        if (at < columns) held[i] = sum_of(arguments, row, at, held[i], changes[i]);
      }
    }
    for_packs([&](int, const Pack<T>& pack) { add_to_total(pack); });
  }
  const float mean = total_of(total) / static_cast<float>(columns);

  float squares = 0.0F;
  for_packs([&](int at, const Pack<T>& pack) {
    const int valid = valid_elements<T>(at, columns);
#pragma unroll
    for (int k = 0; k < size; ++k) {
      const float difference = to_float(pack.values[k]) - mean;
      if (k < valid) squares = __fmaf_rn(difference, difference, squares);
    }
  });
  const float rstd = 1.0F / sqrtf(total_of(squares) / static_cast<float>(columns) + op.epsilon);
  if (thread == 0) {
    op.mean[row] = mean;
    op.rstd[row] = rstd;
  }
  for_packs([&](int at, const Pack<T>& pack) { normalize_pack(arguments, row, at, pack, mean, rstd); });
}

}  // namespace

void run(const LayerNormForward& op, const Launch& where) {
  if (op.columns == 0) return;
  by_type(op.in.dtype, [&]<typename T>(T*) {
    const Arguments arguments{op, Dropper(op.dropout),
                              are_whole<T>(op.columns, op.in.data, op.delta.data, op.sum.data, op.out.data),
                              is_aligned(op.weight.data) && is_aligned(op.bias.data)};
    const std::int64_t packs = (op.columns + Pack<T>::size - 1) / Pack<T>::size;
    const std::int64_t threads = (packs + held_packs - 1) / held_packs;
    if (threads <= 32) {
      launch("layer normalization", layer_norm_forward_kernel<T, Plan::warp>, blocks_for(op.rows, warps_of_block),
             32 * warps_of_block, 0, where, arguments);
    } else {
      launch("layer normalization",
             threads <= most_threads ? layer_norm_forward_kernel<T, Plan::block>
                                     : layer_norm_forward_kernel<T, Plan::reread>,
             static_cast<unsigned>(op.rows), threads_for(threads, most_threads), 0, where, arguments);
    }
  });
}

}  // namespace zt::cuda
