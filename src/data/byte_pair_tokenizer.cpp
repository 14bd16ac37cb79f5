// The tokenizer of a byte-pair vocabulary.
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/errors.h"
#include "data/byte_pair_encoder.h"
#include "data/message_text.h"
#include "data/tokenizer.h"

namespace zt {
namespace {

class BytePairTokenizer final : public Tokenizer {
 public:
  explicit BytePairTokenizer(const BytePairVocabulary& vocabulary)
      : encoder_(vocabulary),
        end_of_text_(vocabulary.end_of_text),
        definition_(vocabulary.tiktoken.empty() ? tokenizer_json(vocabulary) : vocabulary.tiktoken) {}

  std::string_view name() const override { return byte_pair_name; }
  std::int64_t vocabulary_size() const override { return encoder_.vocabulary_size(); }
  std::optional<std::int32_t> end_of_text() const override { return end_of_text_; }

  std::vector<std::int32_t> encode(std::string_view text) const override {
    std::vector<std::int32_t> ids;
    encoder_.encode(text, "the text to encode", ids);
    return ids;
  }

  std::string decode(std::span<const std::int32_t> ids) const override { return encoder_.decode(ids); }

  TokenArray encode_corpus(std::string_view text, const std::string& origin) const override {
    if (vocabulary_size() <= 0x100) return encode_as<std::uint8_t>(text, origin);
    if (vocabulary_size() <= 0x10000) return encode_as<std::uint16_t>(text, origin);
    return encode_as<std::uint32_t>(text, origin);
  }

  std::size_t cut_before(std::string_view text, std::size_t at) const override { return encoder_.cut_before(text, at); }

  std::string definition() const override { return definition_; }

 private:
  template <typename Id>
  TokenArray encode_as(std::string_view text, const std::string& origin) const {
    std::vector<Id> ids;
    ids.reserve(text.size() / 3);
    encoder_.encode(text, origin, ids);
    ids.shrink_to_fit();
    return TokenArray(std::move(ids));
  }

  BytePairEncoder encoder_;
  std::optional<std::int32_t> end_of_text_;
  std::string definition_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_byte_pair_tokenizer(const BytePairVocabulary& vocabulary) {
  return std::make_unique<BytePairTokenizer>(vocabulary);
}

std::unique_ptr<Tokenizer> open_tokenizer(const std::string& path, const std::string& key) {
  if (path == "bytes") return make_byte_tokenizer();
  std::error_code error;
  if (!std::filesystem::exists(path, error) && !error) {
    // A vocabulary of characters is made of the text of a run: on a command line there is none.
    if (key.starts_with("--")) {
      throw UserError(key + ": " + shown(path) +
                      (path == "characters"
                           ? ": the characters of a text become a vocabulary in a run alone "
                             "(data.tokenizer); here it is \"bytes\", or the path of a tokenizer's file"
                           : ": no such file; it is \"bytes\", or the path of a tokenizer's file"));
    }
    throw UserError(
        key + ": " + shown(path) +
        ": no such file; it is \"bytes\", for a text also \"characters\", or the path of a tokenizer's file (in a "
        "config file it counts from that file's folder)");
  }
  return make_byte_pair_tokenizer(read_byte_pair_vocabulary(path, key));
}

std::string huggingface_tokenizer(std::string_view name, std::string_view definition) {
  if (name != byte_pair_name) return {};
  return tokenizer_json(parse_byte_pair_vocabulary(definition, "the checkpoint's tokenizer"));
}

}  // namespace zt
