// The ratios of norms by which LAMB scales the step of each tensor. One thread a tensor.
#include "device/cuda/exact_sum_value.h"

namespace zt::cuda {
namespace {

constexpr int ratio_threads = 32;

__global__ void trust_ratios_kernel(const Accumulator* squares, float* out, std::int64_t count, double least,
                                    double most) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * ratio_threads + static_cast<int>(threadIdx.x);
  if (i >= count) return;
  const double parameters = sqrt(value_of(reinterpret_cast<const std::int64_t*>(&squares[2 * i])));
  const double directions = sqrt(value_of(reinterpret_cast<const std::int64_t*>(&squares[2 * i + 1])));
  double ratio = 1.0;
  if (parameters > 0.0 && directions > 0.0) ratio = fmax(least, fmin(most, parameters / directions));
  out[i] = static_cast<float>(ratio);
}

}  // namespace

void run(const TrustRatios& op, const Launch& where) {
  static_assert(offsetof(Accumulator, limbs) == 0);
  if (op.count == 0) return;
  const auto blocks = static_cast<unsigned>((op.count + ratio_threads - 1) / ratio_threads);
  launch("trust_ratios", trust_ratios_kernel, dim3(blocks), dim3(ratio_threads), 0, where, op.squares, op.out, op.count,
         op.least, op.most);
}

}  // namespace zt::cuda
