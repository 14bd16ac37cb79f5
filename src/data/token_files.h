// Files of token ids that other programs write and read: llm.c, nanoGPT, Megatron. Mapped, not read.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/mapped_file.h"

namespace zt {

enum class TokenFormat : std::uint8_t { llm_c, nanogpt, megatron };
const char* name_of(TokenFormat format);  // as in data.format

// llm.c: 256 integers of 32 bits, of which the first three are magic, version and number of tokens; then the tokens.
inline constexpr std::size_t llm_c_header_bytes = 1024;
inline constexpr std::int32_t llm_c_magic = 20240520;         // GPT-2: 16 bits a token
inline constexpr std::int32_t llm_c_llama3_magic = 20240801;  // 32 bits a token
// Megatron: the .idx that lies beside a .bin starts with this, then 8 bytes of version, 1 of element type, 8 each of
// the numbers of sequences and of document bounds.
inline constexpr char megatron_magic[] = "MMIDIDX\0";  // and one more zero
inline constexpr std::size_t megatron_header_bytes = 34;

class TokenFile {
 public:
  // `format` as in data.format, or empty: by the file's first bytes and what lies beside it. `key` names the path in
  // errors. Throws UserError: not of the format, sizes that do not fit together.
  TokenFile(const std::string& path, const std::string& key, const std::string& format);

  const std::string& path() const { return path_; }
  TokenFormat format() const { return format_; }
  std::int64_t size() const { return size_; }  // tokens, at least 1
  // out[i] = tokens[first + i]. Ids that 31 bits do not hold come as -1.
  void copy(std::int64_t first, std::span<std::int32_t> out) const;
  // The largest id of tokens [first, first + count); -1 as copy() gives it counts as the largest of all.
  std::uint32_t largest(std::int64_t first, std::int64_t count) const;
  std::int64_t largest_possible() const;             // of the element type
  std::int64_t offset_of(std::int64_t token) const;  // in bytes, in the file
  // Where documents start, but for those without a token; Megatron alone tells.
  const std::vector<std::int64_t>& documents() const { return documents_; }

 private:
  enum class Element : std::uint8_t { u8, i16, u16, i32, i64 };
  static std::size_t bytes_of(Element element);
  template <typename F>
  auto visit(F&& f) const;

  TokenFormat detect(const std::string& format) const;
  void open_llm_c();
  void open_nanogpt();
  void open_megatron();
  [[noreturn]] void fail(const std::string& what) const;

  std::string path_, key_;
  std::unique_ptr<MappedFile> file_;
  TokenFormat format_ = TokenFormat::llm_c;
  Element element_ = Element::u16;
  std::size_t header_ = 0;  // bytes before the first token
  std::int64_t size_ = 0;
  std::vector<std::int64_t> documents_;
};

// The path itself, if there is such a file; else the files that it matches as a pattern (* ? [...]), sorted. Of
// Megatron's pairs of files the .bin stands for both, and may be named without its ending. Throws UserError where there
// is none.
std::vector<std::string> token_files_named(const std::string& pattern, const std::string& key);

// Several files as one run of tokens.
class TokenRun {
 public:
  TokenRun(const std::string& pattern, const std::string& key, const std::string& format);

  std::int64_t size() const { return first_.back(); }
  void copy(std::int64_t first, std::span<std::int32_t> out) const;
  const std::vector<std::unique_ptr<TokenFile>>& files() const { return files_; }
  std::int64_t first_of(std::size_t file) const { return first_[file]; }
  // The largest id of all files, read whole.
  std::int64_t largest() const;
  // UserError, which names file, token and byte, where an id is not below `vocabulary`. Of runs beyond `most_bytes`
  // only parts are read, spread over all of each file; gives whether all was.
  bool check_ids(std::int64_t vocabulary, std::int64_t most_bytes) const;
  // The message for the first such id of tokens [first, first + count).
  std::string complaint(std::int64_t first, std::int64_t count, std::int64_t vocabulary) const;

 private:
  std::string key_;
  std::vector<std::unique_ptr<TokenFile>> files_;
  std::vector<std::int64_t> first_;  // of each file in the run; one more at the end
};

}  // namespace zt
