// Which files a pattern names, and several of them as one run of tokens.
#include <fnmatch.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>
#include <system_error>

#include "core/errors.h"
#include "data/message_text.h"
#include "data/token_files.h"

namespace zt {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}
bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

// Paths that match the components [at, ...) below `folder`. A component that exists by its very name is no pattern.
void match(const fs::path& folder, const std::vector<std::string>& parts, std::size_t at,
           std::vector<std::string>& found) {
  const bool is_last = at + 1 == parts.size();
  const fs::path literal = folder / parts[at];
  std::error_code error;
  if (fs::exists(literal, error)) {
    if (is_last) {
      if (is_file(literal)) found.push_back(literal.string());
    } else {
      match(literal, parts, at + 1, found);
    }
    return;
  }
  if (parts[at].find_first_of("*?[") == std::string::npos) return;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const fs::path& path = entry->path();
    if (::fnmatch(parts[at].c_str(), path.filename().c_str(), FNM_PERIOD) != 0) continue;
    if (is_last) {
      if (is_file(path)) found.push_back(path.string());
    } else if (is_folder(path)) {
      match(path, parts, at + 1, found);
    }
  }
}

}  // namespace

std::vector<std::string> token_files_named(const std::string& pattern, const std::string& key) {
  const fs::path path(pattern);
  std::vector<std::string> found;
  if (is_file(path)) {
    found.push_back(pattern);
  } else if (!is_folder(path) && is_file(pattern + ".bin") && is_file(pattern + ".idx")) {
    found.push_back(pattern + ".bin");
  } else if (pattern.find('\0') == std::string::npos) {
    std::vector<std::string> parts;
    for (const fs::path& part : path.relative_path()) parts.push_back(part.string());
    if (!parts.empty()) match(path.root_path(), parts, 0, found);
  }
  if (found.empty()) {
    if (is_folder(path)) {
      throw UserError(origin_of(key, pattern) + " is a folder; name the token files in it, as with \"*.bin\"");
    }
    const bool is_pattern =
        (is_folder(path.parent_path()) ? path.filename().string() : pattern).find_first_of("*?[") != std::string::npos;
    throw UserError(origin_of(key, pattern) +
                    (is_pattern ? " matches no file; check the pattern" : ": no such file; check the path") +
                    " (in a config file it counts from that file's folder)");
  }
  // An .idx stands for its .bin.
  std::set<std::string> files;
  for (const std::string& file : found) {
    const std::string bin = fs::path(file).replace_extension(".bin").string();
    files.insert(file.ends_with(".idx") && is_file(bin) ? bin : file);
  }
  return {files.begin(), files.end()};
}

TokenRun::TokenRun(const std::string& pattern, const std::string& key, const std::string& format) : key_(key) {
  first_.push_back(0);
  for (const std::string& path : token_files_named(pattern, key)) {
    files_.push_back(std::make_unique<TokenFile>(path, key, format));
    first_.push_back(first_.back() + files_.back()->size());
  }
}

void TokenRun::copy(std::int64_t first, std::span<std::int32_t> out) const {
  auto file = static_cast<std::size_t>(std::ranges::upper_bound(first_, first) - first_.begin()) - 1;
  while (!out.empty()) {
    const std::int64_t here = std::min(first_[file + 1] - first, static_cast<std::int64_t>(out.size()));
    files_[file]->copy(first - first_[file], out.first(static_cast<std::size_t>(here)));
    out = out.subspan(static_cast<std::size_t>(here));
    first += here;
    ++file;
  }
}

std::int64_t TokenRun::largest() const {
  std::int64_t largest = 0;
  for (const auto& file : files_) largest = std::max<std::int64_t>(largest, file->largest(0, file->size()));
  return largest;
}

std::string TokenRun::complaint(std::int64_t first, std::int64_t count, std::int64_t vocabulary) const {
  for (std::size_t i = 0; i < files_.size(); ++i) {
    const TokenFile& file = *files_[i];
    const std::int64_t end = std::min(first + count, first_[i + 1]) - first_[i];
    for (std::int64_t at = std::max<std::int64_t>(0, first - first_[i]); at < end; ++at) {
      const std::uint32_t id = file.largest(at, 1);
      if (id < static_cast<std::uint64_t>(vocabulary)) continue;
      return origin_of(key_, file.path()) + ": token " + std::to_string(at) + " (from 0; byte " +
             std::to_string(file.offset_of(at)) + ") is " +
             (id > 0x7fffffff ? "negative, or beyond 2147483647" : std::to_string(id)) + ", and the vocabulary has " +
             std::to_string(vocabulary) +
             " ids, from 0 on; set model.vocab_size to that of the tokenizer that wrote the file, or data.format if "
             "the "
             "file is of another format than " +
             name_of(file.format());
    }
  }
  return {};
}

bool TokenRun::check_ids(std::int64_t vocabulary, std::int64_t most_bytes) const {
  std::int64_t bytes = 0;
  for (const auto& file : files_) {
    if (file->largest_possible() >= vocabulary) bytes += file->offset_of(file->size());
  }
  const bool whole = bytes <= most_bytes;
  constexpr std::int64_t block = 32768;  // tokens
  for (std::size_t i = 0; i < files_.size(); ++i) {
    const TokenFile& file = *files_[i];
    if (file.largest_possible() < vocabulary) continue;
    // Every so many-th block, the last one too.
    const std::int64_t stride = whole ? block : block * (bytes / most_bytes + 1);
    for (std::int64_t at = 0; at < file.size(); at += stride) {
      const std::int64_t first = at + stride >= file.size() ? std::max(at, file.size() - block) : at;
      const std::int64_t count = std::min(block, file.size() - first);
      if (file.largest(first, count) >= static_cast<std::uint64_t>(vocabulary))
        throw UserError(complaint(first_[i] + first, count, vocabulary));
    }
  }
  return whole;
}

}  // namespace zt
