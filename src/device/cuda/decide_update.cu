// Whether a step is applied, and by which factor, as zero/finish_step.cpp decides on the host. One thread: a few
// hundred additions, once a step.
#include "device/cuda/exact_sum_value.h"

namespace zt::cuda {
namespace {

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
