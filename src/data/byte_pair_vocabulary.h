// A byte-pair vocabulary as its files hold it: tokens, the order in which pairs merge, and tokens that stand for
// themselves.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zt {

inline constexpr std::string_view end_of_text_sign = "<|endoftext|>";

struct BytePairVocabulary {
  struct Merge {
    std::int32_t left = 0, right = 0, result = 0;  // ids
    std::uint32_t rank = 0;                        // the lowest of a piece is merged first
  };
  struct Added {  // found in the text before it is cut into pieces
    std::string text;
    std::int32_t id = 0;
    bool special = true;
  };

  std::vector<std::string> tokens;  // bytes, by id; empty: the id is not used
  std::vector<bool> is_not_bytes;   // by id: the file's sign for the token is no spelling of bytes (an added one)
  std::vector<Merge> merges;        // no pair twice
  std::vector<Added> added;
  bool whole_pieces = false;  // a piece that is a token is that token, whatever its merges would give
  std::optional<std::int32_t> end_of_text;
  std::string tiktoken;  // the file's text where it was one of tiktoken's; else empty
};

// One file, or a folder with tokenizer.json, or vocab.json and merges.txt (encoder.json and vocab.bpe). Of vocab.json
// or merges.txt alone the other lies beside it. `key` names the path in errors. Throws UserError.
BytePairVocabulary read_byte_pair_vocabulary(const std::string& path, const std::string& key);
// The same from the text of a tokenizer.json or of a tiktoken file; `origin` names it in errors.
BytePairVocabulary parse_byte_pair_vocabulary(std::string_view text, const std::string& origin);

// As tokenizer.json, which tokenizers, transformers and parse_byte_pair_vocabulary read. Merges of a tiktoken file
// become one line for each pair of tokens that makes another.
std::string tokenizer_json(const BytePairVocabulary& vocabulary);

// The signs for bytes in vocab.json and tokenizer.json: printable characters of Latin-1 stand for themselves, the
// others for U+0100 and on.
std::string spell_bytes(std::string_view bytes);
std::optional<std::string> bytes_of_spelling(std::string_view spelling);  // none: a character stands for no byte

}  // namespace zt
