// The order of samples in an epoch, computed instead of stored.
#pragma once

#include <array>
#include <cstdint>

namespace zt {

// A bijection of [0, n) chosen by a key: a Feistel network over the next power of two, walked until it lands
// inside (Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002). Fewer than two rounds of the
// network are expected per value, as the power of two is below 2 n.
class Permutation {
 public:
  Permutation(std::int64_t n, std::uint64_t key);  // n >= 1

  std::int64_t size() const { return size_; }
  std::int64_t operator()(std::int64_t index) const;  // index in [0, n)

 private:
  static constexpr int rounds = 10;

  std::int64_t size_;
  int right_bits_;
  std::uint64_t left_mask_, right_mask_;
  std::array<std::uint64_t, rounds> keys_{};
};

// The order of epoch `epoch` (from 0) of a run with this seed.
Permutation epoch_order(std::int64_t samples, std::uint64_t seed, std::int64_t epoch);

}  // namespace zt
