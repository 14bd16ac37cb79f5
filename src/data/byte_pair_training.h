// Learning a byte-pair vocabulary from text: the same tokens and merges as the trainer of the package tokenizers gives
// (BpeTrainer with ByteLevel's alphabet and GPT-2's pattern), ties included.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/byte_pair_vocabulary.h"

namespace zt {

// How often each piece of the texts occurs.
class PieceCounts {
 public:
  void add(std::string_view text);  // cut by GPT-2's pattern, by itself
  void add(const PieceCounts& other);

  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  using Map = std::unordered_map<std::string, std::int64_t, Hash, std::equal_to<>>;
  const Map& map() const { return counts_; }

 private:
  Map counts_;
};

struct BytePairTraining {
  std::int64_t vocab_size = 0;              // with special tokens and the 256 bytes; fewer come where no pair is left
  std::int64_t min_frequency = 0;           // of a pair to be merged
  std::vector<std::string> special_tokens;  // get the first ids
};

// UserError where vocab_size does not hold the bytes and the special tokens.
BytePairVocabulary train_byte_pairs(const PieceCounts& pieces, const BytePairTraining& settings);

}  // namespace zt
