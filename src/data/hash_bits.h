// A bit for each of the highest values of a hash: says of most hashes that a table lacks that it lacks them. The bits
// lie in a near cache where the table does not.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace zt {

class HashBits {
 public:
  // 8 to 16 bits for each of `count` hashes; about a tenth of the others is taken for one of them.
  explicit HashBits(std::size_t count = 0) {
    const std::size_t bits = std::bit_ceil(std::max<std::size_t>(8 * count, 64));
    words_.resize(bits / 64);
    shift_ = 64 - static_cast<unsigned>(std::countr_zero(bits));
  }

  void add(std::uint64_t hash) { words_[(hash >> shift_) / 64] |= bit_of(hash); }
  bool may_have(std::uint64_t hash) const { return (words_[(hash >> shift_) / 64] & bit_of(hash)) != 0; }

 private:
  std::uint64_t bit_of(std::uint64_t hash) const { return std::uint64_t{1} << ((hash >> shift_) % 64); }

  std::vector<std::uint64_t> words_;
  unsigned shift_;  // 64 less the binary logarithm of the bits
};

}  // namespace zt
