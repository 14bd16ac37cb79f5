#include "train/gradient_sizes.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "catch_compat.h"

TEST_CASE("elements are counted by the power of two that they reach") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> values = {1.0F,  -1.5F, 1.99F, 2.0F,     0x1p-14F,  0x1.8p-15F, -0x1p-24F, std::nanf(""),
                                     -0.0F, 0.0F,  0.0F,  infinity, 0x1p-149F, 65504.0F,   1e38F};
  const std::vector<float> exact = {1, 1, 1, 1, 1, 1, 1, 1, 0, 1e-9F, 0, 1, 1, 1, 1};
  const zt::GradientSizes sizes = zt::sizes_of(values, exact);
  CHECK(sizes.elements == 15);
  CHECK(sizes.not_finite == 2);
  CHECK(sizes.zeros == 3);
  CHECK(sizes.vanished == 1);
  CHECK(sizes.with_exponent(0) == 3);
  CHECK(sizes.with_exponent(1) == 1);
  CHECK(sizes.with_exponent(-14) == 1);
  CHECK(sizes.with_exponent(-15) == 1);
  CHECK(sizes.with_exponent(-24) == 1);
  CHECK(sizes.with_exponent(-149) == 1);
  CHECK(sizes.with_exponent(15) == 1);
  CHECK(sizes.with_exponent(126) == 1);
  CHECK(sizes.between(-24, -14) == 2);
  CHECK(sizes.between(zt::GradientSizes::lowest, zt::GradientSizes::highest + 1) == 10);
}
