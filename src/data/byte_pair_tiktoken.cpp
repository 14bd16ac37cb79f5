// tiktoken's files: a line for each token, its bytes in base64 and its rank, which is its id.
#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_map>

#include "core/errors.h"
#include "core/json.h"
#include "data/byte_pair_readers.h"
#include "data/message_text.h"

namespace zt {
namespace {

constexpr std::array<std::int8_t, 256> make_base64() {
  std::array<std::int8_t, 256> values{};
  for (auto& value : values) value = -1;
  constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (std::size_t i = 0; i < letters.size(); ++i)
    values[static_cast<unsigned char>(letters[i])] = static_cast<std::int8_t>(i);
  return values;
}
constexpr std::array<std::int8_t, 256> base64 = make_base64();

// RFC 4648 with padding; false: it is not.
bool decode_base64(std::string_view text, std::string& bytes) {
  bytes.clear();
  if (text.empty() || text.size() % 4 != 0) return false;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_padding = i >= text.size() - padding;
    const int value = is_padding ? 0 : base64[static_cast<unsigned char>(text[i])];
    if (value < 0) return false;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    if (i % 4 != 3) continue;
    for (const unsigned shift : {16U, 8U, 0U}) bytes.push_back(static_cast<char>(bits >> shift & 0xffU));
    bits = 0;
  }
  bytes.resize(bytes.size() - padding);
  return true;
}

// Vocabularies whose text is cut by another pattern than GPT-2's: taken for GPT-2's they would give other ids than
// their models were trained on.
struct Known {
  std::size_t ranks;
  const char* name;
};
constexpr Known others[] = {{100256, "cl100k_base"}, {199998, "o200k_base"}, {128000, "Llama 3"}};

// Bytes; every cut of a token in two is looked at. GPT-2's longest have 128.
constexpr std::size_t longest_token = 1024;

void add_merges(BytePairVocabulary& out, const std::unordered_map<std::string_view, std::int32_t>& ids) {
  // Any two tokens that are another one together merge, at the rank of that one.
  for (std::size_t id = 0; id < out.tokens.size(); ++id) {
    const std::string_view token = out.tokens[id];
    for (std::size_t middle = 1; middle < token.size(); ++middle) {
      const auto left = ids.find(token.substr(0, middle));
      const auto right = ids.find(token.substr(middle));
      if (left == ids.end() || right == ids.end()) continue;
      out.merges.push_back(
          {left->second, right->second, static_cast<std::int32_t>(id), static_cast<std::uint32_t>(id)});
    }
  }
}

}  // namespace

BytePairVocabulary parse_tiktoken(std::string_view text, const std::string& origin) {
  BytePairVocabulary out;
  out.whole_pieces = true;
  out.tiktoken = text;
  std::vector<std::pair<std::string, std::int64_t>> ranks;
  std::int64_t largest = 0, number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    ++number;
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const std::size_t space = std::min(line.find(' '), line.size());
    std::string bytes;
    std::uint32_t rank = 0;
    const std::string_view digits = line.substr(std::min(space + 1, line.size()));
    const auto [last, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
    const bool is_rank = error == std::errc() && last == digits.data() + digits.size() && rank <= 0x7fffffff;
    if (!is_rank || !decode_base64(line.substr(0, space), bytes)) {
      throw UserError(origin + ": line " + std::to_string(number) + " is \"" + shown(line) +
                      "\", where a token in base64 and its rank should be, as in \"IQ== 0\"" +
                      (ranks.empty() ? "; tokenizers are read as tokenizer.json, vocab.json with merges.txt, or a "
                                       "tiktoken file"
                                     : ""));
    }
    if (bytes.size() > longest_token) {
      throw UserError(origin + ": line " + std::to_string(number) + " has a token of " +
                      counted(static_cast<std::int64_t>(bytes.size()), "byte") + ", and tokens have " +
                      std::to_string(longest_token) + " at most; get the file again");
    }
    largest = std::max<std::int64_t>(largest, rank);
    ranks.emplace_back(std::move(bytes), rank);
  }
  for (const Known& other : others) {
    if (ranks.size() == other.ranks) {
      throw UserError(
          origin + " has " + std::to_string(other.ranks) + " ranks, as " + other.name +
          " has, whose texts are cut by another pattern than GPT-2's; use GPT-2's ranks (50256 of them), or "
          "train a vocabulary with zerotrain tokenize --train");
    }
  }
  require_dense_ids(largest, ranks.size(), origin);
  out.tokens.resize(static_cast<std::size_t>(largest) + 1);
  std::unordered_map<std::string_view, std::int32_t> ids;
  ids.reserve(ranks.size());
  for (const auto& [bytes, rank] : ranks) {
    std::string& token = out.tokens[static_cast<std::size_t>(rank)];
    if (!token.empty()) throw UserError(origin + ": the rank " + std::to_string(rank) + " stands there twice");
    token = bytes;
    if (!ids.emplace(bytes, static_cast<std::int32_t>(rank)).second) {
      throw UserError(origin + ": the token \"" + shown(bytes) + "\" stands there twice, at last with the rank " +
                      std::to_string(rank));
    }
  }
  for (unsigned byte = 0; byte < 256; ++byte) {
    const char single = static_cast<char>(byte);
    if (!ids.contains(std::string_view(&single, 1))) {
      throw UserError(origin + " has no rank for the byte " + std::to_string(byte) +
                      " (of 256); the file is not whole: get it again");
    }
  }
  add_merges(out, ids);
  // <|endoftext|> is not in the file: it has the first id that is free, 50256 in GPT-2's and p50k_base.
  const auto free = std::ranges::find_if(out.tokens, [](const std::string& token) { return token.empty(); });
  out.end_of_text = static_cast<std::int32_t>(free - out.tokens.begin());
  if (free == out.tokens.end()) out.tokens.emplace_back();
  out.tokens[static_cast<std::size_t>(*out.end_of_text)] = end_of_text_sign;
  out.is_not_bytes.resize(out.tokens.size());
  out.is_not_bytes[static_cast<std::size_t>(*out.end_of_text)] = true;
  out.added.push_back({std::string(end_of_text_sign), *out.end_of_text, true});
  return out;
}

}  // namespace zt
