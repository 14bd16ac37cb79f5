// exact_sum_value() of core/exact_sum.h on a device. For .cu files only.
#pragma once

#include "device/cuda/kernel_support.h"

namespace zt::cuda {

// Operation by operation as there, of a sum that is not negative. Loops that stay loops keep the digits in memory: in
// registers they would take most of what a block has.
__device__ inline double value_of(const std::int64_t* limbs) {
  std::int64_t digits[exact_sum_limbs + 1];
  std::int64_t carry = 0;
#pragma unroll 1
  for (int i = 0; i < exact_sum_limbs; ++i) {
    const std::int64_t sum = (limbs[i] & 0xffffffffLL) + carry;
    digits[i] = sum & 0xffffffffLL;
    carry = (limbs[i] >> 32) + (sum >> 32);
  }
  digits[exact_sum_limbs] = carry;
  double value = 0.0;
#pragma unroll 1
  for (int i = exact_sum_limbs; i >= 0; --i) {
    value = __dadd_rn(value, ldexp(static_cast<double>(digits[i]), 32 * i - 1088));
  }
  return value;
}

}  // namespace zt::cuda
