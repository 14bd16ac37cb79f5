// What is left of a product where cuBLASLt does not do it.
#pragma once

#include "device/cuda/kernels.h"

namespace zt::cuda {

// out[m, n] = bias[n], or 0 without a bias, rounded to out's format; with `add`, added to what out holds.
void store_bias(const MatMul& op, bool add, const Launch& launch);

}  // namespace zt::cuda
