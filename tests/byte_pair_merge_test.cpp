// Merging the bytes of a piece, short or long, against one pair after the other.
#include "data/byte_pair_merge.h"

#include <random>

#include "data/tokenizer.h"
#include "data_support.h"

using namespace zt::testing;

namespace {

using Ids = std::vector<std::uint32_t>;
using Merges = std::vector<zt::BytePairVocabulary::Merge>;

// What the merging promises, as plainly as can be: the lowest rank first, of equal ones the leftmost.
Ids merged_plainly(const zt::PairTable& pairs, Ids ids) {
  for (;;) {
    std::uint32_t best = zt::PairTable::no_rank;
    std::size_t place = 0;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      if (const std::uint32_t rank = pairs.rank_of(ids[i], ids[i + 1]); rank < best) best = rank, place = i;
    }
    if (best == zt::PairTable::no_rank) return ids;
    ids[place] = pairs.result_of(best);
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
}

// Token 0 and its doublings: 1 is two of it, 2 is four.
Merges doublings(std::int32_t count) {
  Merges merges;
  for (std::int32_t i = 0; i < count; ++i) merges.push_back({i, i, i + 1, static_cast<std::uint32_t>(i)});
  return merges;
}

void check_as_plainly(const Merges& merges, const Ids& bytes) {
  const zt::PairTable pairs(merges);
  Ids ids = bytes;
  zt::PieceMerger(pairs).merge(ids);
  CHECK(ids == merged_plainly(pairs, bytes));
}

}  // namespace

TEST_CASE("pieces of every length merge as one pair after the other would, also with ranks in a wild order") {
  std::mt19937 random(5);
  const auto number = [&](std::uint32_t below) { return static_cast<std::int32_t>(random() % below); };
  for (int round = 0; round < 60; ++round) {
    // Tokens 0-3 are bytes; each merge makes one more, at a rank that is shuffled in every other round.
    Merges merges;
    for (std::int32_t made = 4; made < 40; ++made) {
      const std::int32_t left = number(static_cast<std::uint32_t>(made));
      const std::int32_t right = number(static_cast<std::uint32_t>(made));
      const bool is_known =
          std::ranges::any_of(merges, [&](const auto& merge) { return merge.left == left && merge.right == right; });
      if (!is_known) merges.push_back({left, right, made, static_cast<std::uint32_t>(merges.size())});
    }
    if (round % 2 == 1) {
      for (std::size_t i = merges.size() - 1; i > 0; --i)
        std::swap(merges[i].rank, merges[static_cast<std::size_t>(number(static_cast<std::uint32_t>(i + 1)))].rank);
    }
    const zt::PairTable pairs(merges);
    zt::PieceMerger merger(pairs);
    for (const std::size_t length : {1UL, 2UL, 5UL, 90UL, 97UL, 150UL, 400UL, 1200UL}) {
      Ids ids(length);
      for (auto& id : ids) id = static_cast<std::uint32_t>(number(round % 3 == 0 ? 1 : 4));
      const Ids expected = merged_plainly(pairs, ids);
      merger.merge(ids);
      CHECK(ids == expected);
    }
  }
}

TEST_CASE("a long run merges to the longest tokens, wherever it starts and ends") {
  for (const std::int32_t longest :
       {1, 2, 6, 9}) {  // a token of 2^longest, up to more than a block and than is taken back
    const Merges merges = doublings(longest);
    for (const std::size_t before : {0UL, 1UL, 3UL, 63UL}) {
      for (const std::size_t length : {97UL, 1000UL, 2049UL}) {
        Ids bytes(before, 600);  // merges with nothing
        bytes.resize(before + length, 0);
        check_as_plainly(merges, bytes);
      }
    }
  }
}

TEST_CASE("what one end of a long piece decides at the other is merged so") {
  // 10 takes up three 0 before any two of them merge: the tokens behind it start elsewhere.
  const Merges merges = {{10, 0, 11, 0}, {11, 0, 12, 1}, {12, 0, 13, 2}, {0, 0, 1, 3}, {1, 1, 2, 4}};
  Ids bytes(1500, 0);
  check_as_plainly(merges, bytes);
  bytes[0] = 10;
  check_as_plainly(merges, bytes);
  bytes[700] = 10;
  check_as_plainly(merges, bytes);
}

TEST_CASE("pairs of low and of high ids are told apart") {
  const Merges merges = {{0, 511, 512, 0}, {511, 512, 513, 1}, {512, 512, 514, 2}, {70000, 0, 70001, 3}};
  const zt::PairTable pairs(merges);
  for (const auto& merge : merges) {
    CHECK(pairs.rank_of(static_cast<std::uint32_t>(merge.left), static_cast<std::uint32_t>(merge.right)) == merge.rank);
    CHECK(pairs.result_of(merge.rank) == static_cast<std::uint32_t>(merge.result));
  }
  CHECK(pairs.rank_of(511, 0) == zt::PairTable::no_rank);
  CHECK(pairs.rank_of(1, 511) == zt::PairTable::no_rank);
  CHECK(pairs.rank_of(0, 70000) == zt::PairTable::no_rank);
  CHECK(zt::PairTable({}).rank_of(1000, 1000) == zt::PairTable::no_rank);
}

TEST_CASE("long runs of one letter take time in proportion") {
  const auto tokenizer =
      zt::open_tokenizer(std::string(ZEROTRAIN_SOURCE_DIR) + "/tests/golden/byte_pairs/tokenizer.json", "x");
  // Quadratic time would be minutes.
  for (const std::string sign : {"a", " ", "=", "\xc3\xa9", "\xff"}) {
    std::string text;
    while (text.size() < 2'000'000) text += sign;
    CHECK(tokenizer->decode(tokenizer->encode(text)) == text);
  }
}
