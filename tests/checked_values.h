// Values and comparisons for checks that run on all ranks, where an assertion of the test's framework may not.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

namespace zt::test {

inline void require(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error("check failed: " + what);
}

// Values of so different sizes that the order of additions shows in the sum.
inline float value_at(int rank, std::int64_t element) {
  const int kind = static_cast<int>((element * 7 + rank * 3) % 5);
  const float sign = (element + rank) % 2 == 0 ? 1.0F : -1.0F;
  const float scale[] = {1.0F, 1e-3F, 37.0F, 2.5e-2F, 311.0F};
  return sign * scale[kind] * (1.0F + static_cast<float>((element * 13 + rank * 29) % 101) / 101.0F);
}

template <typename T>
bool same_bits(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

}  // namespace zt::test
