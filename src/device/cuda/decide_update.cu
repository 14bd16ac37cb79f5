// Whether a step is applied, and by which factor, as zero/finish_step.cpp decides on the host. One thread: a few
// hundred additions, once a step.
#include "device/cuda/kernel_support.h"

namespace zt::cuda {
namespace {

// exact_sum_value() of core/exact_sum.h, operation by operation, of a sum that is not negative.
__device__ double value_of(const std::int64_t* limbs) {
  std::int64_t digits[exact_sum_limbs + 1];
  std::int64_t carry = 0;
  for (int i = 0; i < exact_sum_limbs; ++i) {
    const std::int64_t sum = (limbs[i] & 0xffffffffLL) + carry;
    digits[i] = sum & 0xffffffffLL;
    carry = (limbs[i] >> 32) + (sum >> 32);
  }
  digits[exact_sum_limbs] = carry;
  double value = 0.0;
  for (int i = exact_sum_limbs; i >= 0; --i) {
    value = __dadd_rn(value, ldexp(static_cast<double>(digits[i]), 32 * i - 1088));
  }
  return value;
}

__global__ void decide_update_kernel(const Accumulator* sums, double unscale, double clip, UpdateDecision* out) {
  if (threadIdx.x != 0) return;
  const auto* limbs = reinterpret_cast<const std::int64_t*>(&sums[1]);  // the limbs come first
  double factor = unscale;
  if (clip > 0.0) {
    const double norm = __dmul_rn(sqrt(value_of(limbs)), unscale);
    factor = __dmul_rn(unscale, fmin(1.0, clip / __dadd_rn(norm, 1e-6)));
  }
  out->factor = static_cast<float>(factor);
  if (sums[0].not_finite != 0 || sums[1].not_finite != 0) out->apply = 0;
}

}  // namespace

void run(const DecideUpdate& op, const Launch& where) {
  static_assert(offsetof(Accumulator, limbs) == 0);
  launch("decide_update", decide_update_kernel, dim3(1), dim3(32), 0, where, op.sums, op.unscale, op.clip, op.out);
}

}  // namespace zt::cuda
