#include "core/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/errors.h"
#include "core/unfinished.h"

namespace zt {

namespace {

[[noreturn]] void fail(const std::string& what, const std::string& path, int error) {
  throw RunError("cannot " + what + " " + path + ": " + std::strerror(error));
}

// 0 or the error number; `text` is what is left to write.
int write_all(int file, std::string_view& text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

}  // namespace

void write_file_atomically(const std::string& path, std::string_view text) {
  const std::string temporary = path + ".tmp";
  const Unfinished unfinished(temporary, Unfinished::Kind::file);
  const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) fail("create", temporary, errno);
  int error = write_all(file, text);
  if (error == 0 && ::fsync(file) != 0) error = errno;
  if (::close(file) != 0 && error == 0) error = errno;
  if (error == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return;
  ::unlink(temporary.c_str());
  fail("write", path, error);
}

void sync_directory(const std::string& path) {
  const int directory = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) fail("open", path, errno);
  int error = ::fsync(directory) != 0 ? errno : 0;
  if (error == EINVAL || error == ENOTSUP) error = 0;  // a file system that has no such thing
  ::close(directory);
  if (error != 0) fail("sync", path, error);
}

LineFile::LineFile(const std::string& path) : path_(path) {
  file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file_ < 0) fail("open", path, errno);
}

LineFile::~LineFile() {
  if (file_ >= 0) ::close(file_);
}

void LineFile::append(const std::string& line) { append_lines(line + "\n"); }

void LineFile::append_lines(std::string_view lines) { append(lines, false); }
void LineFile::append_whole(std::string_view bytes) { append(bytes, true); }

void LineFile::append(std::string_view bytes, bool whole) {
  struct stat before {};
  if (::fstat(file_, &before) != 0) fail("read the size of", path_, errno);
  std::string_view rest = bytes;
  const int error = write_all(file_, rest);
  if (error == 0) return;
  const std::string_view written = bytes.substr(0, bytes.size() - rest.size());
  const auto kept = static_cast<off_t>(whole ? 0 : written.rfind('\n') + 1);  // 0 where there is none
  // If that fails too, the first error is the one to tell.
  if (::ftruncate(file_, before.st_size + kept) != 0) fail("write", path_, error);
  fail("write", path_, error);
}

}  // namespace zt
