// Which file a tokenizer's path means, and vocab.json with merges.txt. tokenizer.json and tiktoken's files have a
// reader each.
#include <algorithm>
#include <filesystem>
#include <system_error>

#include "core/errors.h"
#include "core/json.h"
#include "data/byte_pair_readers.h"
#include "data/file_kind.h"
#include "data/input_file.h"
#include "data/message_text.h"

namespace zt {
namespace {

namespace fs = std::filesystem;

constexpr const char* kinds = "a tokenizer.json, a vocab.json with its merges.txt, or a tiktoken file";

std::string text_of(const std::string& path, const std::string& key) {
  InputFile file(path, key, kinds);
  require_text(file.bytes(), origin_of(key, path), std::string("name ") + kinds);
  return file.take();
}

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// The pair of files in one folder, by the name of one of them; empty if it is neither.
struct Names {
  const char *vocabulary, *merges;
};
constexpr Names pairs_of_files[] = {{"vocab.json", "merges.txt"}, {"encoder.json", "vocab.bpe"}};

BytePairVocabulary read_two(const fs::path& vocabulary, const fs::path& merges, const std::string& key) {
  for (const fs::path* path : {&vocabulary, &merges}) {
    if (is_there(*path)) continue;
    throw UserError(origin_of(key, path->string()) + ": no such file; " +
                    file_name((path == &vocabulary ? merges : vocabulary).string()) +
                    " is one half of a vocabulary, and this is the other: put it beside it, or name a tokenizer.json");
  }
  return parse_vocabulary_and_merges(text_of(vocabulary.string(), key), origin_of(key, vocabulary.string()),
                                     text_of(merges.string(), key), origin_of(key, merges.string()));
}

// "gpt2-vocab.json" and "gpt2-merges.txt" belong together, too.
bool ends_in(const std::string& name, const std::string& ending) {
  return name == ending || name.ends_with("-" + ending) || name.ends_with("_" + ending) || name.ends_with("." + ending);
}

BytePairVocabulary read_folder(const fs::path& folder, const std::string& key) {
  if (is_there(folder / "tokenizer.json")) return read_byte_pair_vocabulary((folder / "tokenizer.json").string(), key);
  for (const Names& names : pairs_of_files) {
    if (is_there(folder / names.vocabulary)) return read_two(folder / names.vocabulary, folder / names.merges, key);
  }
  throw UserError(
      origin_of(key, folder.string()) +
      " is a folder without tokenizer.json and without vocab.json and merges.txt; name one with them, or the "
      "file itself");
}

}  // namespace

BytePairVocabulary read_byte_pair_vocabulary(const std::string& path, const std::string& key) {
  std::error_code error;
  if (fs::is_directory(path, error)) return read_folder(path, key);
  const std::string name = fs::path(path).filename().string();
  for (const Names& names : pairs_of_files) {
    for (const bool is_merges : {false, true}) {
      const std::string given = is_merges ? names.merges : names.vocabulary;
      const std::string missing = is_merges ? names.vocabulary : names.merges;
      if (!ends_in(name, given)) continue;
      const fs::path other = fs::path(path).replace_filename(name.substr(0, name.size() - given.size()) + missing);
      return is_merges ? read_two(other, path, key) : read_two(path, other, key);
    }
  }
  return parse_byte_pair_vocabulary(text_of(path, key), origin_of(key, path));
}

BytePairVocabulary parse_byte_pair_vocabulary(std::string_view text, const std::string& origin) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) throw UserError(origin + " holds nothing but blanks; name " + kinds);
  return text[first] == '{' ? parse_tokenizer_json(text, origin) : parse_tiktoken(text, origin);
}

}  // namespace zt
