#include "data/byte_pair_vocabulary.h"

#include <algorithm>
#include <array>

#include "core/json.h"
#include "data/utf8.h"

namespace zt {
namespace {

constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

constexpr std::array<char32_t, 256> make_signs() {
  std::array<char32_t, 256> signs{};
  char32_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) signs[byte] = stands_for_itself(byte) ? byte : next++;
  return signs;
}
constexpr std::array<char32_t, 256> signs = make_signs();

constexpr std::array<std::int16_t, 0x200> make_bytes() {
  std::array<std::int16_t, 0x200> bytes{};
  for (auto& byte : bytes) byte = -1;
  for (std::size_t byte = 0; byte < 256; ++byte) bytes[signs[byte]] = static_cast<std::int16_t>(byte);
  return bytes;
}
constexpr std::array<std::int16_t, 0x200> bytes_of_signs = make_bytes();

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string spell_bytes(std::string_view bytes) {
  std::string spelling;
  for (const char byte : bytes) append_utf8(spelling, signs[static_cast<unsigned char>(byte)]);
  return spelling;
}

std::optional<std::string> bytes_of_spelling(std::string_view spelling) {
  std::string bytes;
  for (std::size_t at = 0; at < spelling.size();) {
    const char32_t sign = next_code_point(spelling, at);
    if (sign >= bytes_of_signs.size() || bytes_of_signs[sign] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(bytes_of_signs[sign]));
  }
  return bytes;
}

std::string tokenizer_json(const BytePairVocabulary& vocabulary) {
  const auto spelling = [&](std::int32_t id) {
    const auto at = static_cast<std::size_t>(id);
    return vocabulary.is_not_bytes[at] ? vocabulary.tokens[at] : spell_bytes(vocabulary.tokens[at]);
  };
  std::string added;
  for (const BytePairVocabulary::Added& token : vocabulary.added) {
    added += (added.empty() ? "\n" : ",\n") + std::string("    {\"id\": ") + std::to_string(token.id) +
             ", \"content\": " + quoted(token.text) +
             ", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": false, \"special\": " +
             (token.special ? "true" : "false") + "}";
  }
  std::string vocab;
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    if (vocabulary.tokens[id].empty()) continue;
    vocab += (vocab.empty() ? "\n      " : ",\n      ") + quoted(spelling(static_cast<std::int32_t>(id))) + ": " +
             std::to_string(id);
  }
  std::vector<BytePairVocabulary::Merge> merges = vocabulary.merges;
  std::ranges::sort(merges, [](const auto& a, const auto& b) {
    return std::tie(a.rank, a.left, a.right) < std::tie(b.rank, b.left, b.right);
  });
  std::string lines;
  for (const BytePairVocabulary::Merge& merge : merges) {
    const std::string left = spelling(merge.left), right = spelling(merge.right);
    // Of a pair in one text the blank is the border; a token with a blank of its own stands in a text of its own.
    const bool is_split = left.find(' ') != std::string::npos || right.find(' ') != std::string::npos;
    lines += (lines.empty() ? "\n      " : ",\n      ") +
             (is_split ? "[" + quoted(left) + ", " + quoted(right) + "]" : quoted(left + " " + right));
  }
  const std::string byte_level =
      R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true})";
  return "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n  \"added_tokens\": [" + added +
         (added.empty() ? "" : "\n  ") + "],\n  \"normalizer\": null,\n  \"pre_tokenizer\": " + byte_level +
         ",\n  \"post_processor\": null,\n  \"decoder\": " + byte_level +
         ",\n  \"model\": {\n    \"type\": \"BPE\",\n    \"dropout\": null,\n    \"unk_token\": null,\n"
         "    \"continuing_subword_prefix\": null,\n    \"end_of_word_suffix\": null,\n    \"fuse_unk\": false,\n"
         "    \"byte_fallback\": false,\n    \"ignore_merges\": " +
         (vocabulary.whole_pieces ? "true" : "false") + ",\n    \"vocab\": {" + vocab +
         (vocab.empty() ? "" : "\n    ") + "},\n    \"merges\": [" + lines + (lines.empty() ? "" : "\n    ") +
         "]\n  }\n}\n";
}

}  // namespace zt
