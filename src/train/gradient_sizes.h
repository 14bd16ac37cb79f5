// How large the elements of a gradient are, by power of two: what a number format and a loss scale leave of it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "train/session.h"

namespace zt {

struct GradientSizes {
  static constexpr int lowest = -149, highest = 127;  // exponents that a float can have, subnormal ones included

  std::int64_t elements = 0;
  std::int64_t not_finite = 0, zeros = 0;
  std::int64_t vanished = 0;  // zeros that were no zeros in the gradient to compare with
  std::array<std::int64_t, highest - lowest + 1> counts{};

  std::int64_t with_exponent(int exponent) const { return counts.at(static_cast<std::size_t>(exponent - lowest)); }
  // Elements in [2^first, 2^last).
  std::int64_t between(int first, int last) const;
};

// `exact`: the gradient to compare with, element by element, or nothing.
GradientSizes sizes_of(std::span<const float> gradient, std::span<const float> exact = {});

// The gradient that the last micro-steps of a session at stage 0 with one rank have left, loss scale included: the
// trained tensors whose name has `pattern` in it, in the layout's order, without padding.
std::vector<float> gradient_of(Session& session, const std::string& pattern);

}  // namespace zt
