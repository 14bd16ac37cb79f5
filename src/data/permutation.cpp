#include "data/permutation.h"

#include <bit>
#include <cassert>

#include "core/random.h"

namespace zt {

Permutation::Permutation(std::int64_t n, std::uint64_t key) : size_(n) {
  assert(n >= 1);
  const auto bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(n - 1)));
  const int left_bits = bits / 2;
  right_bits_ = bits - left_bits;
  left_mask_ = (std::uint64_t{1} << left_bits) - 1;
  right_mask_ = (std::uint64_t{1} << right_bits_) - 1;
  for (std::size_t round = 0; round < keys_.size(); ++round) keys_[round] = derive_key(key, round);
}

std::int64_t Permutation::operator()(std::int64_t index) const {
  assert(index >= 0 && index < size_);
  auto value = static_cast<std::uint64_t>(index);
  do {
    std::uint64_t left = value >> right_bits_;
    std::uint64_t right = value & right_mask_;
    // Halves take turns instead of trading places, so that they may differ in width.
    for (std::size_t round = 0; round < keys_.size(); round += 2) {
      left ^= derive_key(keys_[round], right) & left_mask_;
      right ^= derive_key(keys_[round + 1], left) & right_mask_;
    }
    value = (left << right_bits_) | right;
  } while (value >= static_cast<std::uint64_t>(size_));
  return static_cast<std::int64_t>(value);
}

Permutation epoch_order(std::int64_t samples, std::uint64_t seed, std::int64_t epoch) {
  return {samples, derive_key(derive_key(seed, "order of samples"), static_cast<std::uint64_t>(epoch))};
}

}  // namespace zt
