#include "core/exact_sum.h"

#include <cmath>

namespace zt {

double exact_sum_value(std::span<const std::int64_t, exact_sum_limbs> limbs) {
  // Canonical form: digits 0 ... 2^32 - 1 of the absolute value, so equal sums have equal digits.
  std::array<std::int64_t, exact_sum_limbs + 1> digits{};
  const auto normalize = [&](std::int64_t sign) {
    std::int64_t carry = 0;
    for (std::size_t i = 0; i < exact_sum_limbs; ++i) {
      // |limb| < 2^63 and the carry is small: split before adding so that nothing overflows.
      const std::int64_t limb = sign * limbs[i];
      const std::int64_t sum = (limb & 0xffffffffLL) + carry;
      digits[i] = sum & 0xffffffffLL;
      carry = (limb >> 32) + (sum >> 32);
    }
    digits[exact_sum_limbs] = carry;
    return carry >= 0;
  };
  double sign = 1.0;
  if (!normalize(1)) {
    sign = -1.0;
    normalize(-1);
  }
  double value = 0.0;
  for (int i = exact_sum_limbs; i >= 0; --i) {
    value += std::ldexp(static_cast<double>(digits[static_cast<std::size_t>(i)]), 32 * i - 1088);
  }
  return sign * value;
}

}  // namespace zt
