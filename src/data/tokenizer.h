// Text to numbers and back.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/token_array.h"

namespace zt {

class Tokenizer {
 public:
  Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;
  virtual ~Tokenizer() = default;

  virtual std::string_view name() const = 0;  // as in data.tokenizer
  virtual std::int64_t vocabulary_size() const = 0;

  // Throws UserError where the text holds something that has no id.
  virtual std::vector<std::int32_t> encode(std::string_view text) const = 0;
  // Ids outside the vocabulary become U+FFFD, the replacement character: a model may have more rows than that.
  virtual std::string decode(std::span<const std::int32_t> ids) const = 0;

  // A whole corpus, narrow from the start. `origin` names it in errors.
  virtual TokenArray encode_corpus(std::string_view text, const std::string& origin) const = 0;

  // All that make_tokenizer needs besides the name to build this tokenizer again: checkpoints keep it.
  virtual std::string definition() const = 0;
};

// Every byte is its own id: 256 of them.
std::unique_ptr<Tokenizer> make_byte_tokenizer();

// One id for each distinct Unicode code point of `text` (UTF-8), in the order of the code points. Throws UserError
// with the offset of the byte where the text is not UTF-8. `origin` names the text in errors.
std::unique_ptr<Tokenizer> make_character_tokenizer(std::string_view text, const std::string& origin);

// From what definition() gave.
std::unique_ptr<Tokenizer> make_tokenizer(std::string_view name, std::string_view definition);

}  // namespace zt
