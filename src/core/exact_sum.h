// A sum of doubles without rounding, so that it does not depend on order, threads or ranks.
//
// The value is held as a fixed-point integer in limbs of 32 bits, each kept in an int64 so that carries
// can wait: limb i weighs 2^(32 i - 1088). Every finite double (2^-1074 ... 2^1024) fits. Limbs of several
// accumulators are added element by element (an integer all-reduce), up to 2^31 additions in all.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>

namespace zt {

constexpr int exact_sum_limbs = 68;

// A finite value as three numbers of 32 bits: pieces[k] is added to limb `limb` + k, or taken off it.
struct ExactSumPieces {
  int limb;
  std::uint32_t pieces[3];
  bool negative;
};
constexpr ExactSumPieces exact_sum_pieces(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const int biased = static_cast<int>((bits >> 52) & 0x7ffU);
  std::uint64_t mantissa = bits & 0xfffffffffffffULL;
  if (biased != 0) mantissa |= 1ULL << 52;
  const int position = (biased == 0 ? 1 : biased) - 1075 + 1088;  // of the mantissa's lowest bit
  const int shift = position % 32;
  // mantissa << shift has up to 84 bits.
  const std::uint64_t low = mantissa << shift;
  const std::uint64_t high = shift == 0 ? 0 : mantissa >> (64 - shift);
  return {position / 32,
          {static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32), static_cast<std::uint32_t>(high)},
          (bits >> 63) != 0};
}

// Adds a finite value to the limbs. Infinite and NaN values must be kept out by the caller.
inline void exact_sum_add(std::span<std::int64_t, exact_sum_limbs> limbs, double value) {
  const ExactSumPieces parts = exact_sum_pieces(value);
  const auto limb = static_cast<std::size_t>(parts.limb);
  const std::int64_t sign = parts.negative ? -1 : 1;
  for (std::size_t k = 0; k < 3; ++k) limbs[limb + k] += sign * static_cast<std::int64_t>(parts.pieces[k]);
}

// The value, rounded to double by a function of the exact sum alone.
double exact_sum_value(std::span<const std::int64_t, exact_sum_limbs> limbs);

class ExactSum {
 public:
  void add(double value) { exact_sum_add(limbs_, value); }
  double value() const { return exact_sum_value(limbs_); }
  std::span<std::int64_t, exact_sum_limbs> limbs() { return limbs_; }

 private:
  std::array<std::int64_t, exact_sum_limbs> limbs_{};
};

}  // namespace zt
