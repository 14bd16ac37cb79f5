// Text to numbers and back.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/byte_pair_vocabulary.h"
#include "data/token_array.h"

namespace zt {

class Tokenizer {
 public:
  Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;
  virtual ~Tokenizer() = default;

  virtual std::string_view name() const = 0;  // as in data.tokenizer; byte_pair_name of a tokenizer file
  virtual std::int64_t vocabulary_size() const = 0;
  // The id of <|endoftext|>, which stands between documents; none: the vocabulary has none.
  virtual std::optional<std::int32_t> end_of_text() const { return std::nullopt; }

  // Throws UserError where the text holds something that has no id.
  virtual std::vector<std::int32_t> encode(std::string_view text) const = 0;
  // Ids outside the vocabulary become U+FFFD, the replacement character: a model may have more rows than that.
  virtual std::string decode(std::span<const std::int32_t> ids) const = 0;

  // A whole corpus, narrow from the start. `origin` names it in errors.
  virtual TokenArray encode_corpus(std::string_view text, const std::string& origin) const = 0;

  // The largest place <= `at` (< text.size()) where a text may be cut so that the ids of its two parts, one behind the
  // other, are those of the whole; 0: none was found.
  virtual std::size_t cut_before(std::string_view /*text*/, std::size_t /*at*/) const { return 0; }

  // All that make_tokenizer needs besides the name to build this tokenizer again: checkpoints keep it.
  virtual std::string definition() const = 0;
};

// Every byte is its own id: 256 of them.
std::unique_ptr<Tokenizer> make_byte_tokenizer();

// One id for each distinct Unicode code point of `text` (UTF-8), in the order of the code points. Throws UserError
// with the offset of the byte where the text is not UTF-8. `origin` names the text in errors.
std::unique_ptr<Tokenizer> make_character_tokenizer(std::string_view text, const std::string& origin);

// Byte pairs, as GPT-2's (tiktoken and tokenizers give the same ids): exact in both directions, for any bytes. The text
// of an added token, as <|endoftext|>, is that token.
inline constexpr std::string_view byte_pair_name = "byte_pair";
std::unique_ptr<Tokenizer> make_byte_pair_tokenizer(const BytePairVocabulary& vocabulary);

// What data.tokenizer names, without `characters`, which need a text: "bytes", or the path of a tokenizer file
// (read_byte_pair_vocabulary). `key` names it in errors. Throws UserError.
std::unique_ptr<Tokenizer> open_tokenizer(const std::string& path, const std::string& key);

// The tokenizer as a tokenizer.json for transformers and tokenizers, from name() and definition(); empty: it has no
// such form (bytes, characters).
std::string huggingface_tokenizer(std::string_view name, std::string_view definition);

// From what definition() gave.
std::unique_ptr<Tokenizer> make_tokenizer(std::string_view name, std::string_view definition);

}  // namespace zt
