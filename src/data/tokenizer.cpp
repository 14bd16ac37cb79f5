#include "data/tokenizer.h"

#include <algorithm>
#include <cstdio>

#include "core/errors.h"
#include "data/message_text.h"
#include "data/utf8.h"

namespace zt {
namespace {

constexpr char32_t replacement_character = 0xfffd;

class ByteTokenizer final : public Tokenizer {
 public:
  std::string_view name() const override { return "bytes"; }
  std::int64_t vocabulary_size() const override { return 256; }

  std::vector<std::int32_t> encode(std::string_view text) const override {
    std::vector<std::int32_t> ids(text.size());
    std::ranges::transform(text, ids.begin(), [](char c) { return static_cast<unsigned char>(c); });
    return ids;
  }

  std::string decode(std::span<const std::int32_t> ids) const override {
    std::string text;
    text.reserve(ids.size());
    for (const std::int32_t id : ids) {
      if (id >= 0 && id < 256) {
        text.push_back(static_cast<char>(static_cast<unsigned char>(id)));
      } else {
        append_utf8(text, replacement_character);
      }
    }
    return text;
  }

  TokenArray encode_corpus(std::string_view text, const std::string& /*origin*/) const override {
    TokenArray tokens(static_cast<std::int64_t>(text.size()), vocabulary_size());
    tokens.visit([&](auto& ids) {
      using Id = typename std::remove_reference_t<decltype(ids)>::value_type;
      std::ranges::transform(text, ids.begin(), [](char c) { return static_cast<Id>(static_cast<unsigned char>(c)); });
    });
    return tokens;
  }

  std::size_t cut_before(std::string_view /*text*/, std::size_t at) const override { return at; }
  std::string definition() const override { return {}; }
};

[[noreturn]] void throw_not_utf8(std::string_view text, std::size_t offset, const std::string& origin) {
  char byte[8];
  std::snprintf(byte, sizeof byte, "0x%02x", static_cast<unsigned>(static_cast<unsigned char>(text[offset])));
  throw UserError(origin + ": not UTF-8 at byte " + std::to_string(offset) + " (" + byte +
                  "); convert the text to UTF-8, or set data.tokenizer to \"bytes\", which takes any file");
}

// Calls f(code_point, byte offset) for each character.
template <typename F>
void for_each_character(std::string_view text, const std::string& origin, F&& f) {
  for (std::size_t offset = 0; offset < text.size();) {
    const std::size_t start = offset;
    const char32_t code_point = next_code_point(text, offset);
    if (code_point == no_code_point) throw_not_utf8(text, start, origin);
    f(code_point, start);
  }
}

class CharacterTokenizer final : public Tokenizer {
 public:
  explicit CharacterTokenizer(std::vector<char32_t> sorted) : characters_(std::move(sorted)) {
    ids_.assign(characters_.empty() ? 0 : characters_.back() + 1, -1);
    for (std::size_t id = 0; id < characters_.size(); ++id) ids_[characters_[id]] = static_cast<std::int32_t>(id);
  }

  std::string_view name() const override { return "characters"; }
  std::int64_t vocabulary_size() const override { return static_cast<std::int64_t>(characters_.size()); }

  std::vector<std::int32_t> encode(std::string_view text) const override {
    std::vector<std::int32_t> ids;
    ids.reserve(text.size());
    for_each_character(text, "the text to encode", [&](char32_t code_point, std::size_t offset) {
      ids.push_back(id_of(code_point, offset, "the text to encode"));
    });
    return ids;
  }

  std::string decode(std::span<const std::int32_t> ids) const override {
    std::string text;
    text.reserve(ids.size());
    for (const std::int32_t id : ids) {
      const bool known = id >= 0 && id < vocabulary_size();
      append_utf8(text, known ? characters_[static_cast<std::size_t>(id)] : replacement_character);
    }
    return text;
  }

  TokenArray encode_corpus(std::string_view text, const std::string& origin) const override {
    std::int64_t count = 0;
    for_each_character(text, origin, [&](char32_t, std::size_t) { ++count; });
    TokenArray tokens(count, vocabulary_size());
    tokens.visit([&](auto& ids) {
      using Id = typename std::remove_reference_t<decltype(ids)>::value_type;
      auto out = ids.begin();
      for_each_character(text, origin, [&](char32_t code_point, std::size_t offset) {
        *out++ = static_cast<Id>(id_of(code_point, offset, origin));
      });
    });
    return tokens;
  }

  std::string definition() const override {
    std::string alphabet;
    for (const char32_t character : characters_) append_utf8(alphabet, character);
    return alphabet;
  }

 private:
  std::int32_t id_of(char32_t code_point, std::size_t offset, const std::string& origin) const {
    if (code_point < ids_.size() && ids_[code_point] >= 0) return ids_[code_point];
    char name[16];
    std::snprintf(name, sizeof name, "U+%04X", static_cast<unsigned>(code_point));
    std::string character;
    append_utf8(character, code_point);
    throw UserError(origin + ": the character " + name + " \"" + shown(character) + "\" at byte " +
                    std::to_string(offset) + " is not among the " + counted(vocabulary_size(), "character") +
                    " of the training text; leave it out or write it in another way");
  }

  std::vector<char32_t> characters_;  // by id
  std::vector<std::int32_t> ids_;     // by code point; -1: none
};

}  // namespace

std::unique_ptr<Tokenizer> make_byte_tokenizer() { return std::make_unique<ByteTokenizer>(); }

std::unique_ptr<Tokenizer> make_character_tokenizer(std::string_view text, const std::string& origin) {
  std::vector<bool> present(code_point_count, false);
  for_each_character(text, origin, [&](char32_t code_point, std::size_t) { present[code_point] = true; });
  std::vector<char32_t> sorted;
  for (char32_t code_point = 0; code_point < code_point_count; ++code_point) {
    if (present[code_point]) sorted.push_back(code_point);
  }
  return std::make_unique<CharacterTokenizer>(std::move(sorted));
}

std::unique_ptr<Tokenizer> make_tokenizer(std::string_view name, std::string_view definition) {
  if (name == "bytes") return make_byte_tokenizer();
  if (name == "characters") return make_character_tokenizer(definition, "the tokenizer's characters");
  if (name == byte_pair_name)
    return make_byte_pair_tokenizer(parse_byte_pair_vocabulary(definition, "the checkpoint's tokenizer"));
  throw UserError("data.tokenizer: \"" + shown(name) + "\" is not known; use \"bytes\" or \"characters\"");
}

}  // namespace zt
