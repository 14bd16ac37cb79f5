#include "data/byte_pair_encoder.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

#include "core/errors.h"
#include "data/byte_pair_split.h"

namespace zt {
namespace {

static_assert(std::endian::native == std::endian::little);  // a word's first byte is the lowest of its number

constexpr std::uint32_t no_id = 0xffffffff;

std::uint64_t mixed(std::uint64_t value) {
  value *= 0x9e3779b97f4a7c15ULL;
  return value ^ (value >> 32);
}

std::uint64_t hash_of(std::string_view bytes) {
  std::uint64_t hash = bytes.size();
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, 8);
    hash = mixed(hash ^ word);
  }
  std::uint64_t word = 0;
  std::memcpy(&word, at, left);
  return mixed(hash ^ word);
}

}  // namespace

BytePairEncoder::BytePairEncoder(const BytePairVocabulary& vocabulary)
    : tokens_(vocabulary.tokens), pairs_(vocabulary.merges), added_(vocabulary.added) {
  byte_ids_.fill(-1);
  for (std::size_t id = 0; id < tokens_.size(); ++id) {
    if (tokens_[id].size() == 1 && !vocabulary.is_not_bytes[id])
      byte_ids_[static_cast<unsigned char>(tokens_[id][0])] = static_cast<std::int32_t>(id);
  }
  if (vocabulary.whole_pieces) {
    whole_.assign(std::bit_ceil(2 * tokens_.size() + 2), no_id);
    whole_hashes_ = HashBits(tokens_.size());
    for (std::size_t id = 0; id < tokens_.size(); ++id) {
      if (tokens_[id].empty() || vocabulary.is_not_bytes[id]) continue;
      const std::uint64_t hash = hash_of(tokens_[id]);
      std::uint64_t slot = hash & (whole_.size() - 1);
      while (whole_[slot] != no_id) slot = (slot + 1) & (whole_.size() - 1);
      whole_[slot] = static_cast<std::uint32_t>(id);
      whole_hashes_.add(hash);
    }
  }
  std::ranges::stable_sort(added_, [](const auto& a, const auto& b) { return a.text.size() > b.text.size(); });
  for (const BytePairVocabulary::Added& token : added_) {
    starts_added_[static_cast<unsigned char>(token.text.front())] = true;
    if (token.text.find('\n') != std::string::npos) may_be_cut_ = false;
  }
}

std::uint32_t BytePairEncoder::whole_token(std::string_view piece) const {
  if (whole_.empty()) return no_id;
  const std::uint64_t hash = hash_of(piece);
  if (!whole_hashes_.may_have(hash)) return no_id;
  std::uint64_t slot = hash & (whole_.size() - 1);
  while (whole_[slot] != no_id && tokens_[whole_[slot]] != piece) slot = (slot + 1) & (whole_.size() - 1);
  return whole_[slot];
}

template <typename Id>
class BytePairEncoder::Pieces {
 public:
  Pieces(const BytePairEncoder& encoder, std::string_view text, const std::string& origin, std::vector<Id>& out)
      : encoder_(encoder),
        text_(text),
        origin_(origin),
        out_(out),
        merger_(encoder.pairs_),
        words_(std::clamp(std::bit_ceil(text.size() / 16), std::size_t{16}, std::size_t{1} << 15)),
        seen_(std::clamp(std::bit_ceil(text.size() / 64), std::size_t{16}, std::size_t{1} << 12)) {}

  void encode() {
    std::size_t first = 0;
    for (std::size_t at = 0; !encoder_.added_.empty() && (at = next_candidate(at)) < text_.size();) {
      const auto found = std::ranges::find_if(
          encoder_.added_, [&](const auto& token) { return text_.substr(at).starts_with(token.text); });
      if (found == encoder_.added_.end()) {
        ++at;
        continue;
      }
      encode_between(first, at);
      out_.push_back(static_cast<Id>(found->id));
      first = at = at + found->text.size();
    }
    encode_between(first, text_.size());
  }

 private:
  // A short piece that was encoded before in this call, with its ids.
  struct Word {
    std::uint64_t bytes[2] = {};  // as in key_of
    std::uint32_t ids[3] = {};
    std::uint32_t count = 0;
  };
  static constexpr std::size_t longest_word = 15;
  // A longer one: its bytes are in the text, its ids in what has been written.
  struct Seen {
    std::uint64_t hash = 0;
    const char* piece = nullptr;
    std::uint32_t length = 0, count = 0;
    std::size_t ids = 0;
  };
  static constexpr std::size_t longest_seen = 64;                     // bytes; longer pieces seldom come again
  static constexpr std::size_t longest_piece = std::size_t{1} << 30;  // its places are counted in 32 bits

  std::size_t next_candidate(std::size_t at) const {
    if (encoder_.added_.size() == 1) {
      const void* found = std::memchr(text_.data() + at, encoder_.added_.front().text.front(), text_.size() - at);
      return found == nullptr ? text_.size() : static_cast<std::size_t>(static_cast<const char*>(found) - text_.data());
    }
    while (at < text_.size() && !encoder_.starts_added_[static_cast<unsigned char>(text_[at])]) ++at;
    return at;
  }

  // A piece, and where it would be known from: what is there is asked for while the piece before is encoded.
  struct Next {
    std::string_view piece;
    Word key{};  // of a word
    Word* word = nullptr;
  };

  void encode_between(std::size_t first, std::size_t end) {
    const std::string_view part = text_.substr(first, end - first);
    if (part.empty()) return;
    const PieceSplitter splitter(part);
    const auto piece_at = [&](std::size_t at) { return next_of(part.substr(at, splitter.end_of_piece(at) - at)); };
    Next next = piece_at(0);
    for (std::size_t at = 0; at < part.size();) {
      const Next now = next;
      at += now.piece.size();
      if (at < part.size()) next = piece_at(at);
      if (now.word != nullptr) {
        encode_word(now);
      } else if (now.piece.size() <= longest_seen) {
        encode_seen(now.piece);
      } else {
        encode_new(now.piece);
      }
    }
  }

  Next next_of(std::string_view piece) {
    if (piece.size() > longest_word) return {piece};
    const Word key = key_of(piece);
    Word* word = &words_[mixed(mixed(key.bytes[0]) ^ key.bytes[1]) & (words_.size() - 1)];
    __builtin_prefetch(word, 1);
    return {piece, key, word};
  }

  // The bytes of a word with zeros behind them, its length in the last byte.
  Word key_of(std::string_view piece) const {
    Word key;
    if (text_.data() + text_.size() - piece.data() >= 16) {
      std::memcpy(key.bytes, piece.data(), 16);
      const std::size_t length = piece.size();
      const auto low_bytes = [](std::size_t count) { return (std::uint64_t{1} << (8 * count)) - 1; };
      if (length < 8) {
        key.bytes[0] &= low_bytes(length);
        key.bytes[1] = 0;
      } else {
        key.bytes[1] &= low_bytes(length - 8);
      }
    } else {
      std::memcpy(key.bytes, piece.data(), piece.size());
    }
    key.bytes[1] |= static_cast<std::uint64_t>(piece.size()) << 56;
    return key;
  }

  void encode_word(const Next& next) {
    Word& word = *next.word;
    if (word.bytes[0] == next.key.bytes[0] && word.bytes[1] == next.key.bytes[1]) {
      for (std::uint32_t i = 0; i < word.count; ++i) out_.push_back(static_cast<Id>(word.ids[i]));
      return;
    }
    const std::size_t at = out_.size();
    encode_new(next.piece);
    const std::size_t count = out_.size() - at;
    if (count > std::size(word.ids)) return;
    word = next.key;
    word.count = static_cast<std::uint32_t>(count);
    for (std::size_t i = 0; i < count; ++i) word.ids[i] = static_cast<std::uint32_t>(out_[at + i]);
  }

  void encode_seen(std::string_view piece) {
    const std::uint64_t hash = hash_of(piece);
    Seen& seen = seen_[hash & (seen_.size() - 1)];
    const std::size_t at = out_.size();
    if (seen.hash == hash && seen.length == piece.size() && std::memcmp(seen.piece, piece.data(), piece.size()) == 0) {
      out_.resize(at + seen.count);
      for (std::size_t i = 0; i < seen.count; ++i) out_[at + i] = out_[seen.ids + i];
      return;
    }
    encode_new(piece);
    seen = {hash, piece.data(), static_cast<std::uint32_t>(piece.size()), static_cast<std::uint32_t>(out_.size() - at),
            at};
  }

  void encode_new(std::string_view piece) {
    if (const std::uint32_t id = encoder_.whole_token(piece); id != no_id) return out_.push_back(static_cast<Id>(id));
    if (piece.size() > longest_piece) {
      throw UserError(origin_ + ": at byte " + std::to_string(piece.data() - text_.data()) +
                      " one word of more than 1 GiB starts; give text, in words or lines");
    }
    ids_.resize(piece.size());
    for (std::size_t i = 0; i < piece.size(); ++i) {
      const std::int32_t id = encoder_.byte_ids_[static_cast<unsigned char>(piece[i])];
      if (id < 0) fail_without_token(piece.data() + i);
      ids_[i] = static_cast<std::uint32_t>(id);
    }
    merger_.merge(ids_);
    const std::size_t at = out_.size();
    out_.resize(at + ids_.size());
    for (std::size_t i = 0; i < ids_.size(); ++i) out_[at + i] = static_cast<Id>(ids_[i]);
  }

  [[noreturn]] void fail_without_token(const char* at) const {
    char byte[8];
    std::snprintf(byte, sizeof byte, "0x%02x", static_cast<unsigned>(static_cast<unsigned char>(*at)));
    throw UserError(origin_ + ": byte " + std::to_string(at - text_.data()) + " (" + byte +
                    ") has no token in the vocabulary; train one that has all 256 bytes, as zerotrain tokenize --train "
                    "does, or leave the character out");
  }

  const BytePairEncoder& encoder_;
  std::string_view text_;
  const std::string& origin_;
  std::vector<Id>& out_;
  PieceMerger merger_;
  std::vector<Word> words_;  // by hash, one each; so are those seen
  std::vector<Seen> seen_;
  std::vector<std::uint32_t> ids_;
};

template <typename Id>
void BytePairEncoder::encode(std::string_view text, const std::string& origin, std::vector<Id>& out) const {
  Pieces<Id>(*this, text, origin, out).encode();
}

template void BytePairEncoder::encode(std::string_view, const std::string&, std::vector<std::uint8_t>&) const;
template void BytePairEncoder::encode(std::string_view, const std::string&, std::vector<std::uint16_t>&) const;
template void BytePairEncoder::encode(std::string_view, const std::string&, std::vector<std::uint32_t>&) const;
template void BytePairEncoder::encode(std::string_view, const std::string&, std::vector<std::int32_t>&) const;

std::string BytePairEncoder::decode(std::span<const std::int32_t> ids) const {
  std::string text;
  for (const std::int32_t id : ids) {
    const bool known = id >= 0 && id < vocabulary_size() && !tokens_[static_cast<std::size_t>(id)].empty();
    text += known ? std::string_view(tokens_[static_cast<std::size_t>(id)]) : std::string_view("\xef\xbf\xbd");
  }
  return text;
}

std::size_t BytePairEncoder::cut_before(std::string_view text, std::size_t at) const {
  return may_be_cut_ ? piece_cut_before(text, at) : 0;
}

}  // namespace zt
