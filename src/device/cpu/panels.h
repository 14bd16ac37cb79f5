// Blocks of matrices on their way into and out of fp32 scratch memory.
#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "device/operations.h"

namespace zt::cpu {

// out[r * out_stride + c] = float(in[r * in_stride + c]); strides in elements.
void load_panel(DType dtype, const void* in, std::int64_t in_stride, float* out, std::int64_t out_stride,
                std::int64_t rows, std::int64_t columns);

// out[r, c] = round(in[r, c]) or, with add, round(out[r, c] + round(in[r, c])), rounding to `dtype`, to nearest even.
void store_panel(const float* in, std::int64_t in_stride, DType dtype, void* out, std::int64_t out_stride,
                 std::int64_t rows, std::int64_t columns, bool add);

// Activations of blocks whose rows start `stride` elements apart, as ActivationForward and ActivationBackward find them
// (simd_activation.cpp): out = f(in), and gradient = gradient * f'(in) with, if `out` is given, out = f(in) beside it.
void activate_panel(Activation activation, DType dtype, const void* in, void* out, std::int64_t stride,
                    std::int64_t rows, std::int64_t columns);
void activation_gradient_panel(Activation activation, DType dtype, const void* in, void* gradient, void* out,
                               std::int64_t stride, std::int64_t rows, std::int64_t columns);

// In `dtype`, at an element's address.
inline const void* element(DType dtype, const void* base, std::int64_t index) {
  return static_cast<const std::byte*>(base) + index * static_cast<std::int64_t>(size_of(dtype));
}
inline void* element(DType dtype, void* base, std::int64_t index) {
  return static_cast<std::byte*>(base) + index * static_cast<std::int64_t>(size_of(dtype));
}

}  // namespace zt::cpu
