// The backward pass of layer normalization. With xhat = (x - mean) rstd and g = d_out * weight, for each row:
//   d_in = rstd (g - mean(g) - xhat mean(g xhat)) + d_residual,  d_weight += d_out xhat,  d_bias += d_out.
#include "device/cuda/column_sums.h"

namespace zt::cuda {
namespace {

struct Arguments {
  LayerNormBackward op;
  Dropper dropper;
  bool whole;            // rows are made of aligned packs
  bool vectors_aligned;  // so are weight and bias
};

struct Pair {
  float g, g_xhat;
};
// As block_sum, of two values and with one barrier: `shared` must not be that of the call before.
__device__ __forceinline__ Pair block_sum_of_pair(Pair value, Pair* shared) {
  value.g = warp_sum(value.g);
  value.g_xhat = warp_sum(value.g_xhat);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  Pair result = shared[0];
  for (unsigned warp = 1; warp < blockDim.x / 32; ++warp) {
    result.g += shared[warp].g;
    result.g_xhat += shared[warp].g_xhat;
  }
  return result;
}

// A pack of d_in, and of d_delta where that is wanted, from the row's means.
template <typename T>
__device__ __forceinline__ void store_gradients(const Arguments& arguments, std::int64_t row, int at, const Pack<T>& x,
                                                const Pack<T>& d_out, const Pack<T>& d_residual,
                                                const float (&weight)[Pack<T>::size], float mean, float rstd,
                                                Pair means) {
  constexpr int size = Pack<T>::size;
  const LayerNormBackward& op = arguments.op;
  const int columns = static_cast<int>(op.columns);
  const std::int64_t start = row * op.columns;
  Pack<T> out;
#pragma unroll
  for (int k = 0; k < size; ++k) {
    const float xhat = (to_float(x.values[k]) - mean) * rstd;
    const float g = __fmul_rn(to_float(d_out.values[k]), weight[k]);
    const float centred = __fmaf_rn(-xhat, means.g_xhat, g - means.g);
    out.values[k] = from_float<T>(__fmaf_rn(centred, rstd, to_float(d_residual.values[k])));
  }
  store_row_pack(static_cast<T*>(op.d_in.data) + start, at, columns, arguments.whole, out);
  if (op.out.data != nullptr) {
    float bias[size] = {};
    const int valid = valid_elements<T>(at, columns);
    if (op.bias.data != nullptr) load_floats(op.bias, at, valid, arguments.vectors_aligned && valid == size, bias);
    Pack<T> normalized;  // by the very operations of the forward pass
#pragma unroll
    for (int k = 0; k < size; ++k) {
      normalized.values[k] = from_float<T>(__fmaf_rn((to_float(x.values[k]) - mean) * rstd, weight[k], bias[k]));
    }
    store_row_pack(static_cast<T*>(op.out.data) + start, at, columns, arguments.whole, normalized);
  }
  if (op.d_delta.data == nullptr) return;
  float change[size];
#pragma unroll
  for (int k = 0; k < size; ++k) change[k] = to_float(out.values[k]);
  arguments.dropper.apply(change, start + at);
#pragma unroll
  for (int k = 0; k < size; ++k) out.values[k] = from_float<T>(change[k]);
  store_row_pack(static_cast<T*>(op.d_delta.data) + start, at, columns, arguments.whole, out);
}

// A block goes through a chunk of rows. A thread has the same columns of all of them, so that it adds up its part of
// the chunk's d_weight and d_bias in registers.
template <typename T, int packs>
__global__ void __launch_bounds__(gpu::norm_backward_threads)
    layer_norm_backward_kernel(Arguments arguments, std::int64_t rows_per_chunk, float* d_weights, float* d_biases,
                               std::int64_t partial_stride) {
  constexpr int size = Pack<T>::size;
  __shared__ Pair shared[2][gpu::norm_backward_threads / 32];
  const LayerNormBackward& op = arguments.op;
  const int columns = static_cast<int>(op.columns);
  const int first = static_cast<int>(threadIdx.x) * size;
  const int stride = static_cast<int>(blockDim.x) * size;
  float weight[packs][size];
  float d_weight[packs][size] = {};
  float d_bias[packs][size] = {};
#pragma unroll
  for (int i = 0; i < packs; ++i) {
    const int at = first + i * stride;
    const int valid = valid_elements<T>(at, columns);
    load_floats(op.weight, at, valid, arguments.vectors_aligned && valid == size, weight[i]);
  }
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * rows_per_chunk;
  const std::int64_t end = min(op.rows, begin + rows_per_chunk);
  for (std::int64_t row = begin; row < end; ++row) {
    Pack<T> x[packs];
    Pack<T> d_out[packs];
    Pack<T> d_residual[packs] = {};
    const std::int64_t start = row * op.columns;
    load_row_packs(static_cast<const T*>(op.in.data) + start, first, stride, columns, arguments.whole, x);
    load_row_packs(static_cast<const T*>(op.d_out.data) + start, first, stride, columns, arguments.whole, d_out);
    if (op.d_residual.data != nullptr) {
      load_row_packs(static_cast<const T*>(op.d_residual.data) + start, first, stride, columns, arguments.whole,
                     d_residual);
    }
    const float mean = op.mean[row];
    const float rstd = op.rstd[row];
    Pair sums{0.0F, 0.0F};
#pragma unroll
    for (int i = 0; i < packs; ++i) {
      const int valid = valid_elements<T>(first + i * stride, columns);
#pragma unroll
      for (int k = 0; k < size; ++k) {
        if (k >= valid) continue;
        const float xhat = (to_float(x[i].values[k]) - mean) * rstd;
        const float dy = to_float(d_out[i].values[k]);
        const float g = __fmul_rn(dy, weight[i][k]);
        sums.g += g;
        sums.g_xhat = __fmaf_rn(g, xhat, sums.g_xhat);
        d_weight[i][k] = __fmaf_rn(dy, xhat, d_weight[i][k]);
        d_bias[i][k] += dy;
      }
    }
    Pair means = block_sum_of_pair(sums, shared[row % 2]);
    means.g /= static_cast<float>(columns);
    means.g_xhat /= static_cast<float>(columns);
#pragma unroll
    for (int i = 0; i < packs; ++i) {
      const int at = first + i * stride;
      if (at < columns) {
        store_gradients(arguments, row, at, x[i], d_out[i], d_residual[i], weight[i], mean, rstd, means);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < packs; ++i) {
    const std::int64_t at = first + i * stride;
    if (at >= columns) continue;
    const std::int64_t to = static_cast<std::int64_t>(blockIdx.x) * partial_stride + at;
#pragma unroll
    for (int k = 0; k < size; k += 4) {  // partial_stride has room for whole packs
      const float* w = &d_weight[i][k];
      const float* b = &d_bias[i][k];
      if (op.d_weight.data != nullptr) store_pack(d_weights + to + k, Pack<float>{{w[0], w[1], w[2], w[3]}});
      if (op.d_bias.data != nullptr) store_pack(d_biases + to + k, Pack<float>{{b[0], b[1], b[2], b[3]}});
    }
  }
}

// Wide rows: a block a row, which it reads twice; d_weight and d_bias are other kernels' work.
template <typename T>
__global__ void __launch_bounds__(gpu::norm_backward_threads) layer_norm_backward_wide_kernel(Arguments arguments) {
  constexpr int size = Pack<T>::size;
  __shared__ Pair shared[gpu::norm_backward_threads / 32];
  const LayerNormBackward& op = arguments.op;
  const int columns = static_cast<int>(op.columns);
  const int first = static_cast<int>(threadIdx.x) * size;
  const int stride = static_cast<int>(blockDim.x) * size;
  const std::int64_t row = blockIdx.x;
  const T* in = static_cast<const T*>(op.in.data) + row * op.columns;
  const T* d_out_row = static_cast<const T*>(op.d_out.data) + row * op.columns;
  const T* residual =
      op.d_residual.data == nullptr ? nullptr : static_cast<const T*>(op.d_residual.data) + row * op.columns;
  const float mean = op.mean[row];
  const float rstd = op.rstd[row];
  float weight[size];
  const auto load = [&](int at, Pack<T>& x, Pack<T>& d_out) {
    const int valid = valid_elements<T>(at, columns);
    x = load_row_pack(in, at, columns, arguments.whole);
    d_out = load_row_pack(d_out_row, at, columns, arguments.whole);
    load_floats(op.weight, at, valid, arguments.vectors_aligned && valid == size, weight);
    return valid;
  };
  Pair sums{0.0F, 0.0F};
  for (int at = first; at < columns; at += stride) {
    Pack<T> x;
    Pack<T> d_out;
    const int valid = load(at, x, d_out);
#pragma unroll
    for (int k = 0; k < size; ++k) {
      if (k >= valid) continue;
      const float g = __fmul_rn(to_float(d_out.values[k]), weight[k]);
      sums.g += g;
      sums.g_xhat = __fmaf_rn(g, (to_float(x.values[k]) - mean) * rstd, sums.g_xhat);
    }
  }
  Pair means = block_sum_of_pair(sums, shared);
  means.g /= static_cast<float>(columns);
  means.g_xhat /= static_cast<float>(columns);
  for (int at = first; at < columns; at += stride) {
    Pack<T> x;
    Pack<T> d_out;
    Pack<T> d_residual{};
    load(at, x, d_out);
    if (residual != nullptr) d_residual = load_row_pack(residual, at, columns, arguments.whole);
    store_gradients(arguments, row, at, x, d_out, d_residual, weight, mean, rstd, means);
  }
}

// What a row adds to d_weight and d_bias.
template <typename T>
struct WeightTerms {
  const T* in;     // [rows, columns]
  const T* d_out;  // [rows, columns]
  const float* mean;
  const float* rstd;
  __device__ __forceinline__ void operator()(std::int64_t row, int at, int columns, bool whole,
                                             float (&sums)[2][Pack<T>::size]) const {
    const Pack<T> x = load_row_pack(in + row * columns, at, columns, whole);
    const Pack<T> dy = load_row_pack(d_out + row * columns, at, columns, whole);
    const float row_mean = mean[row];
    const float row_rstd = rstd[row];
#pragma unroll
    for (int k = 0; k < Pack<T>::size; ++k) {
      const float d = to_float(dy.values[k]);
      sums[0][k] = __fmaf_rn(d, (to_float(x.values[k]) - row_mean) * row_rstd, sums[0][k]);
      sums[1][k] += d;
    }
  }
};

template <typename T>
void run_usual(const Arguments& arguments, std::int64_t packs, const gpu::RowChunks& cut, float* d_weights,
               float* d_biases, const Launch& where) {
  constexpr int most = gpu::norm_backward_threads;
  launch("gradient of layer normalization",
         packs <= most ? layer_norm_backward_kernel<T, 1> : layer_norm_backward_kernel<T, gpu::norm_backward_packs>,
         static_cast<unsigned>(cut.chunks),
         threads_for(packs <= most ? packs : (packs + gpu::norm_backward_packs - 1) / gpu::norm_backward_packs, most),
         0, where, arguments, cut.rows_per_chunk, d_weights, d_biases, gpu::partial_stride(arguments.op.columns));
}

}  // namespace

void run(const LayerNormBackward& op, const Launch& where) {
  const bool fits = gpu::norm_backward_fits(op.columns, op.in.dtype);
  const gpu::RowChunks cut =
      fits ? gpu::norm_backward_chunks(op.rows) : gpu::column_sum_chunks(op.rows, op.columns, op.in.dtype);
  const std::int64_t stride = gpu::partial_stride(op.columns);
  auto* d_weights = reinterpret_cast<float*>(where.workspace);
  float* d_biases = d_weights + cut.chunks * stride;
  if (op.columns == 0) return;
  const bool wants_sums = op.d_weight || op.d_bias;
  by_type(op.in.dtype, [&]<typename T>(T*) {
    const Arguments arguments{op, Dropper(op.dropout),
                              are_whole<T>(op.columns, op.in.data, op.d_out.data, op.d_residual.data, op.d_in.data,
                                           op.d_delta.data, op.out.data),
                              is_aligned(op.weight.data) && is_aligned(op.bias.data)};
    if (fits) {
      run_usual<T>(arguments, (op.columns + Pack<T>::size - 1) / Pack<T>::size, cut, d_weights, d_biases, where);
      return;
    }
    launch("gradient of layer normalization", layer_norm_backward_wide_kernel<T>, static_cast<unsigned>(op.rows),
           gpu::norm_backward_threads, 0, where, arguments);
    if (!wants_sums) return;
    const WeightTerms<T> terms{pointer<T>(op.in), pointer<T>(op.d_out), op.mean, op.rstd};
    column_sums<T, 2>("gradient of a norm's weights", terms, are_whole<T>(op.columns, op.in.data, op.d_out.data),
                      op.rows, op.columns, cut, d_weights, where);
  });
  if (wants_sums) {
    add_partial_sums({d_weights, op.d_weight, op.add_weight}, {d_biases, op.d_bias, op.add_bias}, cut.chunks, stride,
                     op.columns, where);
  }
}

}  // namespace zt::cuda
