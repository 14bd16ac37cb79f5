#include "data/token_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <system_error>
#include <utility>

#include "core/errors.h"
#include "core/unfinished.h"

namespace zt {
namespace {

template <typename T>
void put(std::vector<char>& out, T value) {
  const std::size_t at = out.size();
  out.resize(at + sizeof value);
  std::memcpy(out.data() + at, &value, sizeof value);
}

}  // namespace

std::vector<std::string> files_of_tokens(const std::string& path, TokenFormat format) {
  if (format != TokenFormat::megatron) return {path};
  const std::string stem = path.ends_with(".bin") ? path.substr(0, path.size() - 4) : path;
  return {stem + ".bin", stem + ".idx"};
}

// Beside its name until commit().
class TokenWriter::File {
 public:
  explicit File(const std::string& path)
      : path_(path), temporary_(path + ".tmp"), unfinished_(temporary_, Unfinished::Kind::file) {
    file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    // Before anything is done.
    if (file_ < 0) throw UserError("cannot create " + path + ": " + std::generic_category().message(errno));
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (file_ >= 0) ::close(file_);
    if (!is_done_) ::unlink(temporary_.c_str());
  }

  void write(std::span<const char> bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(file_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail(errno);
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
  }
  void rewind() {
    if (::lseek(file_, 0, SEEK_SET) != 0) fail(errno);
  }
  void sync() {
    if (::fsync(file_) != 0) fail(errno);
  }
  // After sync().
  void commit() {
    const int closed = ::close(std::exchange(file_, -1));
    if (closed != 0) fail(errno);
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail(errno);
    is_done_ = true;
  }

 private:
  [[noreturn]] void fail(int error) const {
    throw RunError("cannot write " + path_ + ": " + std::generic_category().message(error));
  }
  std::string path_, temporary_;
  Unfinished unfinished_;
  int file_ = -1;
  bool is_done_ = false;
};

TokenWriter::TokenWriter(const std::string& path, TokenFormat format, std::int64_t vocabulary)
    : path_(files_of_tokens(path, format).front()), format_(format) {
  constexpr std::int64_t narrow = 0x10000;
  switch (format) {
    case TokenFormat::llm_c: wide_ = vocabulary > narrow; break;
    case TokenFormat::nanogpt:
      if (vocabulary > narrow) {
        throw UserError("--format nanogpt: its tokens have 16 bits, and the vocabulary has " +
                        std::to_string(vocabulary) + " ids; use --format llm.c or megatron");
      }
      break;
    case TokenFormat::megatron:
      wide_ = vocabulary >= 65500;  // as Megatron chooses
      index_ = std::make_unique<File>(files_of_tokens(path, format).back());
      break;
  }
  file_ = std::make_unique<File>(path_);
  if (format_ == TokenFormat::llm_c) file_->write(std::vector<char>(llm_c_header_bytes, '\0'));
}

TokenWriter::~TokenWriter() = default;

void TokenWriter::append(std::span<const std::uint32_t> ids) {
  buffer_.clear();
  for (const std::uint32_t id : ids) {
    if (wide_) {
      put(buffer_, id);
    } else {
      put(buffer_, static_cast<std::uint16_t>(id));
    }
  }
  file_->write(buffer_);
  tokens_ += static_cast<std::int64_t>(ids.size());
  in_document_ += static_cast<std::int64_t>(ids.size());
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (format_ == TokenFormat::llm_c && tokens_ > most) {
    throw RunError(path_ + ": an llm.c file holds at most " + std::to_string(most) +
                   " tokens, and the input has more; write several from parts of it, or use --format nanogpt");
  }
  if (format_ == TokenFormat::megatron && in_document_ > most) {
    throw RunError(path_ + ": a document of Megatron's holds at most " + std::to_string(most) +
                   " tokens, and one of the input has more; divide it");
  }
}

void TokenWriter::end_document() {
  if (format_ == TokenFormat::megatron) lengths_.push_back(static_cast<std::int32_t>(in_document_));
  in_document_ = 0;
  ++documents_;
}

void TokenWriter::finish() {
  if (format_ == TokenFormat::llm_c) {
    std::vector<char> header;
    put<std::int32_t>(header, wide_ ? llm_c_llama3_magic : llm_c_magic);
    put<std::int32_t>(header, wide_ ? 7 : 1);
    put<std::int32_t>(header, static_cast<std::int32_t>(tokens_));
    file_->rewind();
    file_->write(header);
  }
  file_->sync();
  if (format_ == TokenFormat::megatron) write_index();
  file_->commit();
  if (!index_) return;
  const Unfinished half(path_, Unfinished::Kind::file);
  index_->commit();
}

void TokenWriter::write_index() {
  std::vector<char> index(megatron_magic, megatron_magic + 9);
  put<std::uint64_t>(index, 1);
  put<std::uint8_t>(index, wide_ ? 4 : 8);
  put<std::uint64_t>(index, lengths_.size());
  put<std::uint64_t>(index, lengths_.size() + 1);
  for (const std::int32_t length : lengths_) put(index, length);
  std::int64_t pointer = 0;
  for (const std::int32_t length : lengths_) {
    put(index, pointer);
    pointer += std::int64_t{length} * bytes_per_token();
  }
  for (std::int64_t i = 0; i <= static_cast<std::int64_t>(lengths_.size()); ++i) put(index, i);
  index_->write(index);
  index_->sync();
}

}  // namespace zt
