// Writing token files of llm.c, nanoGPT and Megatron: under temporary names that become the right ones when all is
// written.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/token_files.h"

namespace zt {

// The files that are written: that of the tokens, and Megatron's index. Of its pair `path` may be named with or without
// .bin.
std::vector<std::string> files_of_tokens(const std::string& path, TokenFormat format);

class TokenWriter {
 public:
  // `vocabulary`: ids are below; it decides the width. What is there is replaced. Throws UserError where the format
  // does not hold the vocabulary or the file cannot be made; all throw RunError where it cannot be written.
  TokenWriter(const std::string& path, TokenFormat format, std::int64_t vocabulary);
  ~TokenWriter();  // what is not finished leaves nothing behind
  TokenWriter(const TokenWriter&) = delete;
  TokenWriter& operator=(const TokenWriter&) = delete;

  void append(std::span<const std::uint32_t> ids);
  void end_document();  // what was appended since the last one is a document
  void finish();

  std::int64_t tokens() const { return tokens_; }
  std::int64_t documents() const { return documents_; }
  int bytes_per_token() const { return wide_ ? 4 : 2; }
  const std::string& path() const { return path_; }  // of the tokens

 private:
  class File;
  void write_index();

  std::string path_;
  TokenFormat format_;
  bool wide_ = false;
  std::int64_t tokens_ = 0, documents_ = 0, in_document_ = 0;
  std::unique_ptr<File> file_, index_;  // index_: Megatron's
  std::vector<std::int32_t> lengths_;   // Megatron: of documents
  std::vector<char> buffer_;
};

}  // namespace zt
