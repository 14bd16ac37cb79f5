// Merging the tokens of one piece, pair by pair: the pair of the lowest rank first, of equal ones the leftmost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/byte_pair_vocabulary.h"
#include "data/hash_bits.h"

namespace zt {

// Which pairs of tokens make another, and when; read by several threads. A pair of low ids, as bytes have them, is
// looked up directly: most pairs that are asked for are pairs of bytes. Of the others most do not merge, which their
// hash mostly tells, without a look at the pairs themselves (open addressing).
class PairTable {
 public:
  static constexpr std::uint32_t no_rank = 0xffffffff;
  struct Pair {
    std::uint64_t key = 0;  // left << 32 | right
    std::uint32_t rank = no_rank;
  };

  explicit PairTable(const std::vector<BytePairVocabulary::Merge>& merges);

  // no_rank: the two do not merge.
  std::uint32_t rank_of(std::uint32_t left, std::uint32_t right) const {
    if ((left | right) < low_ids) return low_[left * low_ids + right];
    const std::uint64_t key = static_cast<std::uint64_t>(left) << 32 | right;
    const std::uint64_t hash = hash_of(key);
    if (!hashes_.may_have(hash)) return no_rank;
    for (std::uint64_t slot = slot_of(hash);; slot = (slot + 1) & mask_) {
      const Pair& pair = pairs_[slot];
      if (pair.key == key || pair.rank == no_rank) return pair.rank;
    }
  }
  std::uint32_t ranks() const { return static_cast<std::uint32_t>(results_.size()); }  // one more than the highest
  // What the merges of a rank make: always one token.
  std::uint32_t result_of(std::uint32_t rank) const { return results_[rank]; }

 private:
  static std::uint64_t hash_of(std::uint64_t key) { return key * 0x9e3779b97f4a7c15ULL; }
  std::uint64_t slot_of(std::uint64_t hash) const { return (hash ^ (hash >> 32)) & mask_; }

  static constexpr std::uint32_t low_ids = 512;  // a power of two: the 256 bytes, with special tokens before them

  std::vector<std::uint32_t> low_;  // ranks, [low_ids, low_ids]
  HashBits hashes_;
  std::vector<Pair> pairs_;
  std::uint64_t mask_ = 0;
  std::vector<std::uint32_t> results_;  // by rank
};

class PieceMerger {
 public:
  explicit PieceMerger(const PairTable& pairs) : pairs_(pairs) {}
  // In place: one id a byte becomes what is left when no pair merges any more. Takes time linear in the piece where
  // merges mostly make pairs of higher ranks than their own, as in every vocabulary that was trained; else n log n.
  void merge(std::vector<std::uint32_t>& ids);

 private:
  static constexpr std::uint32_t none = 0xffffffff;
  static constexpr std::size_t most_at_once = 320;  // ids that merge_few takes
  static constexpr std::size_t most_by_turns = 64;  // ids that merge_by_turns takes: a bit a token
  struct Token {
    std::uint32_t id, rank;  // of the token with the next one; no_rank where it was taken up
    std::uint32_t previous, next;
  };
  struct Place {
    std::uint32_t at, next;  // next place of the same rank, in places_
  };

  std::size_t merge_few(std::span<std::uint32_t> ids, std::uint32_t* starts) const;
  std::size_t merge_by_turns(std::span<std::uint32_t> ids, std::uint32_t* starts) const;
  std::size_t merge_by_passes(std::span<std::uint32_t> ids, std::uint32_t* starts) const;
  bool merge_in_blocks(std::vector<std::uint32_t>& ids);
  bool is_seam(std::span<const std::uint32_t> bytes, std::uint32_t left, std::uint32_t right);
  void merge_as_list(std::vector<std::uint32_t>& ids);
  void merge_by_rank();
  void merge_by_queue();
  // Token `at` takes up the next one; gives the one before, or `at` itself at the start.
  std::uint32_t join(std::uint32_t at);
  std::uint32_t note(std::uint32_t at);  // gives the rank

  const PairTable& pairs_;
  // Blocks: what is merged, where each token starts in bytes, and the two tokens that were last found to be a seam.
  std::vector<std::uint32_t> merged_, starts_;
  std::uint32_t seam_left_ = none, seam_right_ = none;
  // The list.
  std::vector<Token> tokens_;
  std::vector<std::uint32_t> heads_;  // by rank: the last noted place, in places_
  std::vector<std::uint64_t> noted_;  // a bit a rank: it has places
  std::vector<Place> places_;
  std::vector<std::uint32_t> turn_;  // the places whose turn it is
};

}  // namespace zt
