#include "data/byte_pair_training.h"

#include <algorithm>

#include "core/errors.h"
#include "data/byte_pair_split.h"

namespace zt {
namespace {

using Pair = std::uint64_t;  // left << 32 | right: numbers in the order of pairs
Pair pair_of(std::uint32_t left, std::uint32_t right) { return static_cast<Pair>(left) << 32 | right; }

// A pair that may be merged next, with the words that it was met in since it was last put into the queue.
struct Candidate {
  std::int64_t count;
  Pair pair;
  std::vector<std::uint32_t> words;
};
// The most frequent first; of equals the one with the smaller ids.
bool comes_later(const Candidate& a, const Candidate& b) {
  return a.count != b.count ? a.count < b.count : a.pair > b.pair;
}

class Trainer {
 public:
  Trainer(const PieceCounts& pieces, const BytePairTraining& settings) : settings_(settings) {
    for (const std::string& token : settings.special_tokens) {
      add_token(token, token, true);
      out_.added.push_back({token, static_cast<std::int32_t>(out_.tokens.size() - 1), true});
    }
    std::vector<std::pair<std::string, std::string>> bytes;  // spelling, byte
    for (unsigned byte = 0; byte < 256; ++byte) {
      const std::string text(1, static_cast<char>(byte));
      bytes.emplace_back(spell_bytes(text), text);
    }
    // In the order of the characters that spell them, which is the order of their UTF-8.
    std::ranges::sort(bytes);
    for (const auto& [spelling, text] : bytes) {
      byte_ids_[static_cast<unsigned char>(text[0])] = add_token(spelling, text, false);
    }
    for (const auto& [piece, count] : pieces.map()) {
      words_.push_back({symbols_.size(), piece.size(), count});
      for (const char byte : piece) symbols_.push_back(byte_ids_[static_cast<unsigned char>(byte)]);
    }
  }

  BytePairVocabulary train() {
    for (std::uint32_t i = 0; i < words_.size(); ++i) {
      const Word& word = words_[i];
      for (std::size_t at = 0; at + 1 < word.length; ++at) {
        const Pair pair = pair_of(symbols_[word.first + at], symbols_[word.first + at + 1]);
        change(pair, word.count, i);
      }
    }
    queue_met();
    while (static_cast<std::int64_t>(out_.tokens.size()) < settings_.vocab_size && !queue_.empty()) {
      std::ranges::pop_heap(queue_, comes_later);
      Candidate top = std::move(queue_.back());
      queue_.pop_back();
      // Counts fall while a pair waits.
      if (const std::int64_t now = counts_[top.pair]; now != top.count) {
        top.count = now;
        put(std::move(top));
        continue;
      }
      if (top.count < 1 || top.count < settings_.min_frequency) break;
      merge(top);
      queue_met();
    }
    finish();
    return std::move(out_);
  }

 private:
  struct Word {
    std::size_t first, length;  // of its symbols
    std::int64_t count;
  };

  std::uint32_t add_token(const std::string& spelling, const std::string& bytes, bool is_not_bytes) {
    const auto [found, is_new] = ids_.emplace(spelling, static_cast<std::uint32_t>(out_.tokens.size()));
    if (is_new) {
      out_.tokens.push_back(bytes);
      out_.is_not_bytes.push_back(is_not_bytes);
      spellings_.push_back(spelling);
    }
    return found->second;
  }

  void put(Candidate candidate) {
    queue_.push_back(std::move(candidate));
    std::ranges::push_heap(queue_, comes_later);
  }

  // A pair is met `count` times more in a word, or fewer.
  void change(Pair pair, std::int64_t count, std::uint32_t word) {
    counts_[pair] += count;
    if (count <= 0) return;
    std::vector<std::uint32_t>& words = met_[pair];
    if (words.empty() || words.back() != word) words.push_back(word);
  }

  void queue_met() {
    for (auto& [pair, words] : met_) {
      if (const std::int64_t count = counts_[pair]; count > 0) put({count, pair, std::move(words)});
    }
    met_.clear();
  }

  void merge(const Candidate& top) {
    const auto left = static_cast<std::uint32_t>(top.pair >> 32);
    const auto right = static_cast<std::uint32_t>(top.pair);
    // Another pair may have made the same token before.
    const std::uint32_t made =
        add_token(spellings_[left] + spellings_[right], out_.tokens[left] + out_.tokens[right], false);
    merges_.push_back({static_cast<std::int32_t>(left), static_cast<std::int32_t>(right),
                       static_cast<std::int32_t>(made), static_cast<std::uint32_t>(merges_.size())});
    for (const std::uint32_t i : top.words) {
      Word& word = words_[i];
      std::uint32_t* symbols = &symbols_[word.first];
      std::size_t kept = 0;
      for (std::size_t at = 0; at < word.length;) {
        const bool is_pair = at + 1 < word.length && symbols[at] == left && symbols[at + 1] == right;
        if (!is_pair) {
          symbols[kept++] = symbols[at++];
          continue;
        }
        if (kept > 0) {
          change(pair_of(symbols[kept - 1], left), -word.count, i);
          change(pair_of(symbols[kept - 1], made), word.count, i);
        }
        if (at + 2 < word.length) {
          change(pair_of(right, symbols[at + 2]), -word.count, i);
          change(pair_of(made, symbols[at + 2]), word.count, i);
        }
        symbols[kept++] = made;
        at += 2;
      }
      word.length = kept;
    }
  }

  void finish() {
    // Of a pair that was merged twice the later time counts.
    std::unordered_map<Pair, std::size_t> last;
    for (std::size_t i = 0; i < merges_.size(); ++i) last[key(merges_[i])] = i;
    for (std::size_t i = 0; i < merges_.size(); ++i) {
      if (last[key(merges_[i])] != i) continue;
      merges_[i].rank = static_cast<std::uint32_t>(out_.merges.size());
      out_.merges.push_back(merges_[i]);
    }
    for (const BytePairVocabulary::Added& token : out_.added) {
      if (token.text == end_of_text_sign) out_.end_of_text = token.id;
    }
  }
  static Pair key(const BytePairVocabulary::Merge& merge) {
    return pair_of(static_cast<std::uint32_t>(merge.left), static_cast<std::uint32_t>(merge.right));
  }

  const BytePairTraining& settings_;
  BytePairVocabulary out_;
  std::vector<std::string> spellings_;  // by id
  std::unordered_map<std::string, std::uint32_t> ids_;
  std::uint32_t byte_ids_[256] = {};
  std::vector<Word> words_;
  std::vector<std::uint32_t> symbols_;
  std::unordered_map<Pair, std::int64_t> counts_;
  std::unordered_map<Pair, std::vector<std::uint32_t>> met_;  // since the last queue_met()
  std::vector<Candidate> queue_;                              // a heap
  std::vector<BytePairVocabulary::Merge> merges_;
};

}  // namespace

void PieceCounts::add(std::string_view text) {
  const PieceSplitter splitter(text);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = splitter.end_of_piece(at);
    const std::string_view piece = text.substr(at, end - at);
    if (const auto found = counts_.find(piece); found != counts_.end()) {
      ++found->second;
    } else {
      counts_.emplace(piece, 1);
    }
    at = end;
  }
}

void PieceCounts::add(const PieceCounts& other) {
  for (const auto& [piece, count] : other.counts_) counts_[piece] += count;
}

BytePairVocabulary train_byte_pairs(const PieceCounts& pieces, const BytePairTraining& settings) {
  const auto least = static_cast<std::int64_t>(256 + settings.special_tokens.size());
  constexpr std::int64_t most = std::int64_t{1} << 30;
  if (settings.vocab_size < least || settings.vocab_size > most) {
    throw UserError("--vocab-size " + std::to_string(settings.vocab_size) + " is " +
                    (settings.vocab_size < least ? "less than the 256 bytes and the special tokens take: give "
                                                 : "more than any text needs: give ") +
                    std::to_string(least) + " or more, as 50257");
  }
  for (std::size_t i = 0; i < settings.special_tokens.size(); ++i) {
    const std::string& token = settings.special_tokens[i];
    const auto before = settings.special_tokens.begin() + static_cast<std::ptrdiff_t>(i);
    if (token.empty()) throw UserError("--special: a special token is empty; give its text, as <|endoftext|>");
    if (token.size() == 1 || std::find(settings.special_tokens.begin(), before, token) != before)
      throw UserError("--special: \"" + token + "\" " +
                      (token.size() == 1 ? "is a byte, which has" : "stands there twice and has") +
                      " a token already; give another");
  }
  return Trainer(pieces, settings).train();
}

}  // namespace zt
