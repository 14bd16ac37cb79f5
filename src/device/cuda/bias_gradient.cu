#include "device/cuda/column_sums.h"

namespace zt::cuda {
namespace {

template <typename T>
struct Elements {
  const T* in;  // [rows, columns]
  __device__ __forceinline__ void operator()(std::int64_t row, int at, int columns, bool whole,
                                             float (&sums)[1][Pack<T>::size]) const {
    const Pack<T> pack = load_row_pack(in + row * columns, at, columns, whole);
#pragma unroll
    for (int k = 0; k < Pack<T>::size; ++k) sums[0][k] += to_float(pack.values[k]);
  }
};

}  // namespace

void run(const BiasGradient& op, const Launch& where) {
  const gpu::RowChunks cut = gpu::column_sum_chunks(op.rows, op.columns, op.d_out.dtype);
  auto* partials = reinterpret_cast<float*>(where.workspace);
  by_type(op.d_out.dtype, [&]<typename T>(T*) {
    column_sums<T, 1>("bias gradient", Elements<T>{pointer<T>(op.d_out)}, are_whole<T>(op.columns, op.d_out.data),
                      op.rows, op.columns, cut, partials, where);
  });
  add_partial_sums({partials, op.d_bias, op.add}, {}, cut.chunks, gpu::partial_stride(op.columns), op.columns, where);
}

}  // namespace zt::cuda
