#include "data/byte_pair_merge.h"

#include <algorithm>
#include <bit>

namespace zt {

PairTable::PairTable(const std::vector<BytePairVocabulary::Merge>& merges) : hashes_(merges.size()) {
  low_.assign(std::size_t{low_ids} * low_ids, no_rank);
  pairs_.resize(std::bit_ceil(2 * merges.size() + 2));
  mask_ = pairs_.size() - 1;
  for (const BytePairVocabulary::Merge& merge : merges) {
    const auto left = static_cast<std::uint32_t>(merge.left), right = static_cast<std::uint32_t>(merge.right);
    if ((left | right) < low_ids) low_[left * low_ids + right] = merge.rank;
    const std::uint64_t key = static_cast<std::uint64_t>(left) << 32 | right;
    const std::uint64_t hash = hash_of(key);
    hashes_.add(hash);
    std::uint64_t slot = slot_of(hash);
    while (pairs_[slot].rank != no_rank) slot = (slot + 1) & mask_;
    pairs_[slot] = {key, merge.rank};
    if (results_.size() <= merge.rank) results_.resize(merge.rank + 1);
    results_[merge.rank] = static_cast<std::uint32_t>(merge.result);
  }
}

void PieceMerger::merge(std::vector<std::uint32_t>& ids) {
  constexpr std::size_t longest_short = 96;
  if (ids.size() <= longest_short) {
    ids.resize(merge_few(ids, nullptr));
  } else if (!merge_in_blocks(ids)) {
    merge_as_list(ids);
  }
}

// In place; gives how many ids are left. `starts`, where it is not null, gets the place of each one's first byte.
std::size_t PieceMerger::merge_few(std::span<std::uint32_t> ids, std::uint32_t* starts) const {
  constexpr std::size_t fewest_by_turns = 33;  // fewer are done in some passes
  const bool by_turns = ids.size() >= fewest_by_turns && ids.size() <= most_by_turns &&
                        pairs_.ranks() <= PairTable::no_rank / most_by_turns;
  return by_turns ? merge_by_turns(ids, starts) : merge_by_passes(ids, starts);
}

// At least one id. One pair after the other. A token stays where its first byte is. Each has a key, the rank of its
// pair with the next one, then its place, so the least of them is the pair whose turn it is; of eight keys each the
// least is kept, and a merge changes three keys.
std::size_t PieceMerger::merge_by_turns(std::span<std::uint32_t> ids, std::uint32_t* starts) const {
  constexpr std::size_t group = 8;
  constexpr std::uint32_t no_key = 0xffffffff;
  std::uint32_t keys[most_by_turns], least[most_by_turns / group];
  const std::size_t count = ids.size(), groups = (count + group - 1) / group;
  const auto key_of = [&](std::size_t at, std::size_t next) {
    const std::uint32_t rank = pairs_.rank_of(ids[at], ids[next]);
    return rank == PairTable::no_rank
               ? no_key
               : rank * static_cast<std::uint32_t>(most_by_turns) + static_cast<std::uint32_t>(at);
  };
  const auto least_of_eight = [](const std::uint32_t* of) {
    return std::min(std::min(std::min(of[0], of[1]), std::min(of[2], of[3])),
                    std::min(std::min(of[4], of[5]), std::min(of[6], of[7])));
  };
  for (std::size_t at = 0; at + 1 < count; ++at) keys[at] = key_of(at, at + 1);
  std::fill(keys + count - 1, keys + groups * group, no_key);
  for (std::size_t i = 0; i < groups; ++i) least[i] = least_of_eight(keys + i * group);
  std::fill(least + groups, std::end(least), no_key);

  // A run of one sign has the same pair everywhere, and a pass takes them all.
  const std::uint32_t lowest = least_of_eight(least) / most_by_turns;
  std::size_t equal = 0;
  for (std::size_t at = 0; at < groups * group; ++at) equal += keys[at] / most_by_turns == lowest ? 1 : 0;
  if (equal > count / 8 && lowest != no_key / most_by_turns) return merge_by_passes(ids, starts);

  std::uint64_t alive = ~std::uint64_t{0} >> (64 - count);  // a bit a token, at its place
  for (std::uint32_t turn; (turn = least_of_eight(least)) != no_key;) {
    const std::size_t at = turn % most_by_turns;
    std::uint64_t behind = alive & (~std::uint64_t{1} << at);
    const auto taken = static_cast<std::size_t>(std::countr_zero(behind));
    behind &= behind - 1;
    alive &= ~(std::uint64_t{1} << taken);
    ids[at] = pairs_.result_of(turn / most_by_turns);
    keys[taken] = no_key;
    keys[at] = behind == 0 ? no_key : key_of(at, static_cast<std::size_t>(std::countr_zero(behind)));
    if (const std::uint64_t before = alive & ((std::uint64_t{1} << at) - 1); before != 0) {
      const auto last = static_cast<std::size_t>(63 - std::countl_zero(before));
      keys[last] = key_of(last, at);
      least[last / group] = least_of_eight(keys + last / group * group);
    }
    least[at / group] = least_of_eight(keys + at / group * group);
    least[taken / group] = least_of_eight(keys + taken / group * group);
  }

  std::size_t kept = 0;
  for (; alive != 0; alive &= alive - 1) {
    const auto at = static_cast<std::size_t>(std::countr_zero(alive));
    if (starts != nullptr) starts[kept] = static_cast<std::uint32_t>(at);
    ids[kept++] = ids[at];
  }
  return kept;
}

// One pass takes all pairs of the lowest rank from left to right, up to one whose merge makes a pair that comes before.
std::size_t PieceMerger::merge_by_passes(std::span<std::uint32_t> ids, std::uint32_t* starts) const {
  std::uint32_t ranks[most_at_once];  // of each token with the next one
  std::size_t count = ids.size();
  for (std::size_t i = 0; i + 1 < count; ++i) ranks[i] = pairs_.rank_of(ids[i], ids[i + 1]);
  if (starts != nullptr) {
    for (std::size_t i = 0; i < count; ++i) starts[i] = static_cast<std::uint32_t>(i);
  }
  while (count > 1) {
    std::uint32_t lowest = PairTable::no_rank;
    for (std::size_t i = 0; i + 1 < count; ++i) lowest = std::min(lowest, ranks[i]);
    if (lowest == PairTable::no_rank) break;
    const std::uint32_t made = pairs_.result_of(lowest);
    ranks[count - 1] = PairTable::no_rank;
    std::size_t at = 0;
    while (ranks[at] != lowest) ++at;
    bool is_turn = true;
    std::size_t kept = at;
    while (at < count) {
      if (starts != nullptr) starts[kept] = starts[at];
      if (!is_turn || ranks[at] != lowest) {
        ids[kept] = ids[at];
        ranks[kept++] = ranks[at++];
        continue;
      }
      at += 2;
      ids[kept] = made;
      ranks[kept] = at < count ? pairs_.rank_of(made, ids[at]) : PairTable::no_rank;
      is_turn = ranks[kept] > lowest;
      if (kept > 0) {
        ranks[kept - 1] = pairs_.rank_of(ids[kept - 1], made);
        is_turn = is_turn && ranks[kept - 1] > lowest;
      }
      ++kept;
    }
    count = kept;
  }
  return count;
}

// Block after block, so that what is at work stays in the nearest cache. Two texts that are merged apart give what they
// give together exactly if the last token of the one and the first of the other do, by themselves: until a pair across
// the seam merges, each side goes its own way, and which pair merges there first, and when, depends on these two
// tokens' parts alone. A block's last tokens, which do not know what follows, are left to the next block. Where two
// tokens are no seam, the next block starts earlier. False: it would have to start too early; ids are as they were.
bool PieceMerger::merge_in_blocks(std::vector<std::uint32_t>& ids) {
  constexpr std::size_t block = 64, left_over = 8, most_taken_back = 192;
  static_assert(block + most_taken_back <= most_at_once);
  const std::span<const std::uint32_t> bytes = ids;
  std::uint32_t tokens[most_at_once], starts[most_at_once];
  std::size_t may_take_back = 2 * bytes.size();
  merged_.clear();
  starts_.clear();
  for (std::size_t first = 0, taken_back = 0, times = 0; first < bytes.size();) {
    const std::size_t end = std::min(first + block + taken_back, bytes.size());
    const std::span<const std::uint32_t> part = bytes.subspan(first, end - first);
    std::ranges::copy(part, tokens);
    std::size_t count = merge_few({tokens, part.size()}, starts);
    const std::size_t second = count > 1 ? first + starts[1] : end;
    if (!merged_.empty() &&
        !is_seam(bytes.subspan(starts_.back(), second - starts_.back()), merged_.back(), tokens[0])) {
      for (std::size_t i = std::size_t{1} << times++; i > 0 && !merged_.empty(); --i) {
        taken_back += first - starts_.back();
        first = starts_.back();
        merged_.pop_back();
        starts_.pop_back();
      }
      if (taken_back > most_taken_back || taken_back > may_take_back) return false;
      may_take_back -= taken_back;
      continue;
    }
    std::size_t next = end;
    while (end < bytes.size() && count > 1 && next + left_over > end) next = first + starts[--count];
    for (std::size_t i = 0; i < count; ++i) {
      merged_.push_back(tokens[i]);
      starts_.push_back(static_cast<std::uint32_t>(first + starts[i]));
    }
    first = next;
    taken_back = times = 0;
  }
  ids.swap(merged_);
  return true;
}

// Whether two tokens, whose bytes these are, stay what they are side by side. A run of one sign asks for the same two
// again and again.
bool PieceMerger::is_seam(std::span<const std::uint32_t> bytes, std::uint32_t left, std::uint32_t right) {
  if (left == seam_left_ && right == seam_right_) return true;
  if (bytes.size() > most_at_once) return false;
  std::uint32_t tokens[most_at_once];
  std::ranges::copy(bytes, tokens);
  if (merge_few({tokens, bytes.size()}, nullptr) != 2 || tokens[0] != left || tokens[1] != right) return false;
  seam_left_ = left;
  seam_right_ = right;
  return true;
}

}  // namespace zt
