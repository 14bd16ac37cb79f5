// Vocabularies that spell bytes by printable characters: vocab.json with merges.txt, and what tokenizer.json shares.
#include <algorithm>
#include <limits>

#include "core/errors.h"
#include "core/json.h"
#include "core/json_bounds.h"
#include "data/byte_pair_readers.h"
#include "data/message_text.h"

namespace zt {

using nlohmann::json;

nlohmann::json parse_json_file(std::string_view text, const std::string& origin) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // byte order mark
  const JsonBounds bounds{.deepest = 32, .most_names = std::numeric_limits<std::size_t>::max()};
  if (const std::string beyond = beyond_json_bounds(text, bounds); !beyond.empty())
    throw UserError(origin + " " + beyond + ", as no tokenizer is; name a tokenizer file");
  try {
    return json::parse(text.begin(), text.end());
  } catch (const json::parse_error& error) {
    throw UserError(origin + ": not JSON at byte " + std::to_string(error.byte == 0 ? 0 : error.byte - 1) + " of its " +
                    std::to_string(text.size()) + "; the file may be cut short: get it again");
  } catch (const json::exception&) {
    throw UserError(origin + ": not JSON; get the file again");
  }
}

void require_dense_ids(std::int64_t largest, std::size_t count, const std::string& origin) {
  const std::int64_t most = 2 * static_cast<std::int64_t>(count) + 4096;
  if (largest < most) return;
  throw UserError(origin + ": the largest id is " + std::to_string(largest) + ", but there are only " +
                  counted(static_cast<std::int64_t>(count), "token") +
                  ": a model would have a row for each id up to it; number the tokens from 0 without such gaps");
}

SpelledVocabulary::SpelledVocabulary(const json& vocab, const std::string& origin, BytePairVocabulary& out)
    : origin_(origin), out_(out) {
  if (!vocab.is_object() || vocab.empty()) {
    throw UserError(origin + (vocab.is_object() ? ": the vocabulary is empty" : ": the vocabulary is not an object") +
                    "; it maps tokens to ids: {\"!\": 0, ...}");
  }
  std::int64_t largest = 0;
  for (const auto& [spelling, id] : vocab.items()) {
    const bool fits = id.is_number_integer() && (id.is_number_unsigned() || id.get<std::int64_t>() >= 0) &&
                      id.get<std::uint64_t>() <= 0x7fffffff;
    if (!fits) {
      throw UserError(origin + ": the id of \"" + shown(spelling) + "\" is " + shown(id.dump()) +
                      ", where a number from 0 to 2147483647 should be");
    }
    if (spelling.empty()) throw UserError(origin + ": a token is empty; remove it");
    largest = std::max(largest, id.get<std::int64_t>());
  }
  require_dense_ids(largest, vocab.size(), origin);
  out_.tokens.resize(static_cast<std::size_t>(largest) + 1);
  out_.is_not_bytes.resize(out_.tokens.size());
  ids_.reserve(vocab.size());
  for (const auto& [spelling, id] : vocab.items()) {
    const std::optional<std::string> bytes = bytes_of_spelling(spelling);
    put(bytes.value_or(spelling), !bytes, id.get<std::int64_t>(), spelling);
    ids_.emplace(spelling, id.get<std::int32_t>());
  }
}

void SpelledVocabulary::put(const std::string& bytes, bool is_not_bytes, std::int64_t id, const std::string& what) {
  const auto at = static_cast<std::size_t>(id);
  if (!out_.tokens[at].empty()) {
    throw UserError(origin_ + ": \"" + shown(what) + "\" and \"" + shown(out_.tokens[at]) + "\" have the same id, " +
                    std::to_string(id) + "; give each its own");
  }
  out_.tokens[at] = bytes;
  out_.is_not_bytes[at] = is_not_bytes;
}

std::int32_t SpelledVocabulary::id_of(std::string_view spelling, const std::string& what,
                                      const std::string& place) const {
  const auto found = ids_.find(std::string(spelling));
  if (found != ids_.end()) return found->second;
  throw UserError(place + ": " + what + " \"" + shown(spelling) +
                  "\" is not in the vocabulary; both files must be of one tokenizer, and whole");
}

void SpelledVocabulary::add_merge(std::string_view left, std::string_view right, const std::string& place) {
  BytePairVocabulary::Merge merge;
  merge.left = id_of(left, "the token", place);
  merge.right = id_of(right, "the token", place);
  merge.result = id_of(std::string(left) + std::string(right), "the result", place);
  merge.rank = static_cast<std::uint32_t>(out_.merges.size());
  out_.merges.push_back(merge);
}

void SpelledVocabulary::add_token(const std::string& text, std::int64_t id, bool special) {
  if (text.empty()) throw UserError(origin_ + ": an added token is empty; remove it");
  const auto found = ids_.find(text);
  const std::int64_t size = std::max<std::int64_t>(static_cast<std::int64_t>(out_.tokens.size()), id + 1);
  // Tokens are counted once, as they are when the definition of this tokenizer is read again.
  require_dense_ids(size - 1, ids_.size() + (found == ids_.end() ? 1 : 0), origin_);
  out_.tokens.resize(static_cast<std::size_t>(size));
  out_.is_not_bytes.resize(out_.tokens.size());
  const auto at = static_cast<std::size_t>(id);
  if (found == ids_.end()) {
    put(text, !bytes_of_spelling(text) || *bytes_of_spelling(text) != text, id, text);
    ids_.emplace(text, static_cast<std::int32_t>(id));
  } else if (found->second != id) {
    throw UserError(origin_ + ": the added token \"" + shown(text) + "\" has the id " + std::to_string(id) +
                    ", but the vocabulary gives it " + std::to_string(found->second) + "; make them one");
  } else if (out_.tokens[at] != text) {
    // Its letters are among the signs for bytes, but it stands for itself.
    out_.tokens[at] = text;
    out_.is_not_bytes[at] = true;
  }
  out_.added.push_back({text, static_cast<std::int32_t>(id), special});
  if (text == end_of_text_sign) out_.end_of_text = static_cast<std::int32_t>(id);
}

void SpelledVocabulary::finish() {
  // Of a pair that stands there twice the later line counts, as in tokenizers.
  auto& merges = out_.merges;
  std::ranges::stable_sort(merges, [](const auto& a, const auto& b) {
    return std::tie(a.left, a.right, b.rank) < std::tie(b.left, b.right, a.rank);
  });
  const auto same = [](const auto& a, const auto& b) { return a.left == b.left && a.right == b.right; };
  merges.erase(std::unique(merges.begin(), merges.end(), same), merges.end());
  std::ranges::sort(merges, {}, &BytePairVocabulary::Merge::rank);
}

BytePairVocabulary parse_vocabulary_and_merges(std::string_view vocabulary, const std::string& vocabulary_origin,
                                               std::string_view merges, const std::string& merges_origin) {
  BytePairVocabulary out;
  SpelledVocabulary spelled(parse_json_file(vocabulary, vocabulary_origin), vocabulary_origin, out);
  std::int64_t number = 0;
  while (!merges.empty()) {
    ++number;
    const std::size_t end = std::min(merges.find('\n'), merges.size());
    std::string_view line = merges.substr(0, end);
    merges.remove_prefix(std::min(end + 1, merges.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with("#version")) continue;
    const std::string place = merges_origin + ": line " + std::to_string(number);
    const std::size_t space = line.find(' ');
    const bool is_pair = space != std::string_view::npos && space > 0 && space + 1 < line.size() &&
                         line.find(' ', space + 1) == std::string_view::npos;
    if (!is_pair) {
      throw UserError(place + " is \"" + shown(line) + "\", where two tokens with one blank between them should be");
    }
    spelled.add_merge(line.substr(0, space), line.substr(space + 1), place);
  }
  spelled.finish();
  for (std::size_t id = 0; id < out.tokens.size(); ++id) {
    if (out.tokens[id] != end_of_text_sign) continue;
    out.end_of_text = static_cast<std::int32_t>(id);
    out.added.push_back({std::string(end_of_text_sign), *out.end_of_text, true});
    break;
  }
  return out;
}

}  // namespace zt
