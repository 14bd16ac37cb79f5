// The formats of byte-pair vocabularies. Internal to data/: others call read_byte_pair_vocabulary.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <unordered_map>

#include "data/byte_pair_vocabulary.h"

namespace zt {

// `origin` names the text in errors. All throw UserError.
BytePairVocabulary parse_tiktoken(std::string_view text, const std::string& origin);
BytePairVocabulary parse_tokenizer_json(std::string_view text, const std::string& origin);
BytePairVocabulary parse_vocabulary_and_merges(std::string_view vocabulary, const std::string& vocabulary_origin,
                                               std::string_view merges, const std::string& merges_origin);

// What those share.

// The text as JSON, or a UserError with the byte where it is none.
nlohmann::json parse_json_file(std::string_view text, const std::string& origin);

// Tokens by their spelling, as vocab.json and tokenizer.json have them.
class SpelledVocabulary {
 public:
  // `vocab`: an object of spelling -> id.
  SpelledVocabulary(const nlohmann::json& vocab, const std::string& origin, BytePairVocabulary& out);
  // The next line of merges; `place` names it in errors: "line 3".
  void add_merge(std::string_view left, std::string_view right, const std::string& place);
  // A token that is found in the text before all else.
  void add_token(const std::string& text, std::int64_t id, bool special);
  void finish();  // drops pairs that a later line repeats
  bool has(const std::string& spelling) const { return ids_.contains(spelling); }

 private:
  std::int32_t id_of(std::string_view spelling, const std::string& what, const std::string& place) const;
  void put(const std::string& bytes, bool is_not_bytes, std::int64_t id, const std::string& what);

  std::string origin_;
  BytePairVocabulary& out_;
  std::unordered_map<std::string, std::int32_t> ids_;
};

// UserError unless ids are dense enough that a table of them is no larger than a few times the file: `largest` of
// `count` ids.
void require_dense_ids(std::int64_t largest, std::size_t count, const std::string& origin);

}  // namespace zt
