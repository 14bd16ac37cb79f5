// What a fuzzer made up, as a file that a reader can open by its path.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace zt::fuzz {

class InputFile {
 public:
  InputFile(const std::uint8_t* data, std::size_t size) : file_(::memfd_create("input", MFD_CLOEXEC)) {
    if (file_ < 0) std::abort();
    while (size > 0) {
      const ssize_t written = ::write(file_, data, size);
      if (written <= 0) std::abort();
      data += written;
      size -= static_cast<std::size_t>(written);
    }
  }
  ~InputFile() { ::close(file_); }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
};

}  // namespace zt::fuzz
