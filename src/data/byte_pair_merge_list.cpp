// The tokens of a long piece as a list in which all pairs are at work at once: what merge_in_blocks cannot cut.
#include <algorithm>
#include <bit>
#include <functional>
#include <queue>

#include "data/byte_pair_merge.h"

namespace zt {

void PieceMerger::merge_as_list(std::vector<std::uint32_t>& ids) {
  tokens_.resize(ids.size());
  const auto count = static_cast<std::uint32_t>(ids.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    const bool is_last = i + 1 == count;
    tokens_[i] = {ids[i], is_last ? PairTable::no_rank : pairs_.rank_of(ids[i], ids[i + 1]), i == 0 ? none : i - 1,
                  is_last ? none : i + 1};
  }
  merge_by_rank();
  ids.clear();
  for (std::uint32_t at = 0; at != none; at = tokens_[at].next) ids.push_back(tokens_[at].id);
}

std::uint32_t PieceMerger::join(std::uint32_t at) {
  Token& token = tokens_[at];
  Token& taken = tokens_[token.next];
  token.id = pairs_.result_of(token.rank);
  taken.rank = PairTable::no_rank;
  token.next = taken.next;
  token.rank = PairTable::no_rank;
  if (token.next != none) {
    tokens_[token.next].previous = at;
    token.rank = pairs_.rank_of(token.id, tokens_[token.next].id);
  }
  if (token.previous == none) return at;
  Token& before = tokens_[token.previous];
  before.rank = pairs_.rank_of(before.id, token.id);
  return token.previous;
}

std::uint32_t PieceMerger::note(std::uint32_t at) {
  const std::uint32_t rank = tokens_[at].rank;
  if (rank == PairTable::no_rank) return rank;
  std::uint64_t& bits = noted_[rank / 64];
  const std::uint64_t bit = std::uint64_t{1} << (rank % 64);
  places_.push_back({at, (bits & bit) != 0 ? heads_[rank] : none});
  heads_[rank] = static_cast<std::uint32_t>(places_.size() - 1);
  bits |= bit;
  return rank;
}

// Rank by rank upward: all places of a rank are then known when its turn comes, and are taken from left to right. Where
// a merge makes a pair whose turn would have been before, the rest of the turn is put back.
void PieceMerger::merge_by_rank() {
  heads_.resize(pairs_.ranks());
  noted_.assign((pairs_.ranks() + 63) / 64, 0);
  places_.clear();
  for (std::uint32_t at = 0; at < tokens_.size(); ++at) note(at);
  std::size_t may_put_back = 8 * tokens_.size();
  for (std::size_t word = 0; word < noted_.size();) {
    if (noted_[word] == 0) {
      ++word;
      continue;
    }
    const auto rank = static_cast<std::uint32_t>(word * 64 + static_cast<std::size_t>(std::countr_zero(noted_[word])));
    noted_[word] &= noted_[word] - 1;
    turn_.clear();
    for (std::uint32_t place = heads_[rank]; place != none; place = places_[place].next)
      turn_.push_back(places_[place].at);
    std::ranges::reverse(turn_);  // they were mostly noted from left to right
    if (!std::ranges::is_sorted(turn_)) std::ranges::sort(turn_);
    for (std::size_t i = 0; i < turn_.size(); ++i) {
      const std::uint32_t at = turn_[i];
      if (tokens_[at].rank != rank) continue;
      const std::uint32_t before = join(at);
      const std::uint32_t lowest = std::min(note(at), before == at ? PairTable::no_rank : note(before));
      if (lowest > rank) continue;
      for (std::size_t rest = i + 1; rest < turn_.size(); ++rest) {
        if (tokens_[turn_[rest]].rank == rank) note(turn_[rest]);
      }
      word = lowest / 64;
      if (turn_.size() - i > may_put_back) return merge_by_queue();
      may_put_back -= turn_.size() - i;
      break;
    }
  }
}

// What is left to merge, in n log n.
void PieceMerger::merge_by_queue() {
  std::priority_queue<std::uint64_t, std::vector<std::uint64_t>, std::greater<>> queue;  // rank << 32 | place
  const auto put = [&](std::uint32_t at) {
    const std::uint32_t rank = tokens_[at].rank;
    if (rank != PairTable::no_rank) queue.push(static_cast<std::uint64_t>(rank) << 32 | at);
  };
  for (std::uint32_t at = 0; at < tokens_.size(); ++at) put(at);
  while (!queue.empty()) {
    const std::uint64_t top = queue.top();
    queue.pop();
    const auto at = static_cast<std::uint32_t>(top);
    if (tokens_[at].rank != static_cast<std::uint32_t>(top >> 32)) continue;
    const std::uint32_t before = join(at);
    put(at);
    if (before != at) put(before);
  }
}

}  // namespace zt
