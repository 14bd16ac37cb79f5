#include "data/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "core/errors.h"
#include "data/message_text.h"

namespace zt {
namespace {

// std::strerror is not for several threads; ranks may be threads.
std::string words_for(int error) { return std::generic_category().message(error); }

// A path such as C:\new\table.csv in a config without doubled backslashes has other characters than were meant.
std::string escape_hint(const std::string& path) {
  if (path.find_first_of("\b\f\n\r\t") == std::string::npos) return {};
  return "; the path holds a line break, a tab or another control character: in JSON a backslash is written \\\\";
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

MappedFile::MappedFile(const std::string& path, const std::string& key, const std::string& what) {
  const auto fail = [&](const std::string& reason) {
    throw UserError(origin_of(key, path) + reason + escape_hint(path));
  };
  if (path.empty()) throw UserError(key + ": no file is named; give the path of " + what);
  if (path.find('\0') != std::string::npos) fail(" holds a character 0, which no path can; write it without");
  // Non-blocking, or opening a named pipe would wait for its writer.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) {
    const int error = errno;
    if (error == ENOENT || error == ENOTDIR) {
      fail(": no such file; check the path (in a config file it counts from that file's folder)");
    }
    if (error == EACCES) fail(": permission denied; make the file readable for this user (chmod u+r)");
    fail(": cannot be opened: " + words_for(error));
  }
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail(": cannot be examined: " + words_for(errno));
  if (S_ISDIR(status.st_mode)) fail(" is a directory; name " + what + " in it");
  if (!S_ISREG(status.st_mode)) fail(" is not a regular file; write the data to a file first");
  if (status.st_size == 0) fail(" is empty; name " + what + " with something in it");
  size_ = static_cast<std::size_t>(status.st_size);
  memory_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (memory_ == MAP_FAILED) fail(": cannot be read: " + words_for(errno));
  ::madvise(memory_, size_, MADV_SEQUENTIAL);
}

MappedFile::~MappedFile() { ::munmap(memory_, size_); }

}  // namespace zt
