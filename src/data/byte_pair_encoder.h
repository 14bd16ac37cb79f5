// Text to ids and back by a byte-pair vocabulary: the arithmetic of it, without files.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/byte_pair_merge.h"
#include "data/byte_pair_vocabulary.h"
#include "data/hash_bits.h"

namespace zt {

class BytePairEncoder {
 public:
  explicit BytePairEncoder(const BytePairVocabulary& vocabulary);

  // Appends the ids of a text; Id is std::uint8_t, uint16_t, uint32_t or int32_t and holds the vocabulary. Throws
  // UserError, which names `origin`, where a byte has no token. Several threads may call.
  template <typename Id>
  void encode(std::string_view text, const std::string& origin, std::vector<Id>& out) const;

  // Ids that no token has become U+FFFD.
  std::string decode(std::span<const std::int32_t> ids) const;

  std::int64_t vocabulary_size() const { return static_cast<std::int64_t>(tokens_.size()); }

  // As Tokenizer::cut_before: piece_cut_before, unless an added token holds the end of a line.
  std::size_t cut_before(std::string_view text, std::size_t at) const;

 private:
  template <typename Id>
  class Pieces;  // one call of encode

  std::uint32_t whole_token(std::string_view piece) const;

  std::vector<std::string> tokens_;
  std::array<std::int32_t, 256> byte_ids_{};  // -1: none
  PairTable pairs_;
  std::vector<std::uint32_t> whole_;  // ids by the hash of their bytes, open addressing; empty unless whole_pieces
  HashBits whole_hashes_;
  std::vector<BytePairVocabulary::Added> added_;  // longer ones first
  std::array<bool, 256> starts_added_{};
  bool may_be_cut_ = true;
};

}  // namespace zt
