#include "checkpoint/file_access.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "core/errors.h"
#include "data/message_text.h"

namespace zt {
namespace {

constexpr std::size_t buffer_bytes = 1 << 20;
constexpr std::int64_t largest_call = 1 << 30;  // bytes that one call of the system is asked to move

// std::strerror is not for several threads; ranks may be threads.
std::string words_for(int error) { return std::generic_category().message(error); }

}  // namespace

InputDescriptor::InputDescriptor(const std::string& path) : path_(path) {
  const auto fail = [&](const std::string& reason) {
    if (file_ >= 0) ::close(file_);
    throw RunError("cannot read " + shown_path(path) + ": " + reason);
  };
  if (path.find('\0') != std::string::npos) fail("a path holds no character 0");
  // Non-blocking, or opening a named pipe would wait for its writer.
  file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file_ < 0) fail(words_for(errno));
  struct stat status {};
  if (::fstat(file_, &status) != 0) fail(words_for(errno));
  if (!S_ISREG(status.st_mode)) fail("it is not a regular file");
  bytes_ = static_cast<std::int64_t>(status.st_size);
}

InputDescriptor::~InputDescriptor() {
  if (file_ >= 0) ::close(file_);
}

InputDescriptor::InputDescriptor(InputDescriptor&& other) noexcept
    : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)), bytes_(other.bytes_) {}

InputDescriptor& InputDescriptor::operator=(InputDescriptor&& other) noexcept {
  if (this != &other) {
    if (file_ >= 0) ::close(file_);
    path_ = std::move(other.path_);
    file_ = std::exchange(other.file_, -1);
    bytes_ = other.bytes_;
  }
  return *this;
}

void InputDescriptor::read(std::int64_t offset, std::int64_t count, void* to) const {
  auto* out = static_cast<char*>(to);
  while (count > 0) {
    const ssize_t got =
        ::pread(file_, out, static_cast<std::size_t>(std::min(count, largest_call)), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw RunError("cannot read " + shown_path(path_) + ": " + words_for(errno));
    if (got == 0) {
      throw RunError("cannot read " + shown_path(path_) + ": it ends at byte " + std::to_string(offset) + " and had " +
                     std::to_string(bytes_) + " bytes when it was opened; do not change files while they are read");
    }
    out += got;
    offset += got;
    count -= got;
  }
}

OutputDescriptor::OutputDescriptor(const std::string& path) : path_(path) {
  file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file_ < 0) throw RunError("cannot create " + shown_path(path) + ": " + words_for(errno));
  buffer_.reserve(buffer_bytes);
}

OutputDescriptor::~OutputDescriptor() {
  if (file_ >= 0) ::close(file_);
}

void OutputDescriptor::fail(int error) const {
  throw RunError("cannot write " + shown_path(path_) + ": " + words_for(error));
}

void OutputDescriptor::write_through(const char* bytes, std::size_t count) {
  while (count > 0) {
    const ssize_t written = ::write(file_, bytes, std::min(count, static_cast<std::size_t>(largest_call)));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(errno);
    if (written == 0) fail(ENOSPC);  // a disk that takes nothing and gives no reason
    bytes += written;
    count -= static_cast<std::size_t>(written);
  }
}

void OutputDescriptor::flush() {
  write_through(buffer_.data(), buffer_.size());
  buffer_.clear();
}

void OutputDescriptor::write(const void* bytes, std::int64_t count) {
  const auto* from = static_cast<const char*>(bytes);
  bytes_ += count;
  while (count > 0) {
    if (buffer_.empty() && count >= static_cast<std::int64_t>(buffer_bytes)) {  // nothing would be gained by a copy
      const std::int64_t direct = count - count % static_cast<std::int64_t>(buffer_bytes);
      write_through(from, static_cast<std::size_t>(direct));
      from += direct;
      count -= direct;
      continue;
    }
    const std::int64_t part = std::min(count, static_cast<std::int64_t>(buffer_bytes - buffer_.size()));
    buffer_.insert(buffer_.end(), from, from + part);
    from += part;
    count -= part;
    if (buffer_.size() == buffer_bytes) flush();
  }
}

void OutputDescriptor::close() {
  flush();
  while (::fsync(file_) != 0) {
    if (errno != EINTR) fail(errno);
  }
  if (::close(std::exchange(file_, -1)) != 0 && errno != EINTR) fail(errno);
}

}  // namespace zt
