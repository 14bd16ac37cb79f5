// What a fuzzer made up, as a file that a reader can open by its path.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

namespace zt::fuzz {

class InputFile {
 public:
  InputFile() : file_(::memfd_create("input", MFD_CLOEXEC)) {
    if (file_ < 0) std::abort();
  }
  InputFile(const std::uint8_t* data, std::size_t size) : InputFile() {
    write({reinterpret_cast<const char*>(data), size});
  }
  ~InputFile() { ::close(file_); }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  // In place of what it held.
  void write(std::string_view content) const {
    if (::ftruncate(file_, 0) != 0) std::abort();
    for (off_t at = 0; !content.empty();) {
      const ssize_t written = ::pwrite(file_, content.data(), content.size(), at);
      if (written <= 0) std::abort();
      content.remove_prefix(static_cast<std::size_t>(written));
      at += written;
    }
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
};

// A directory on disk whose files lie in memory, for readers that open what is beside a file.
class InputDirectory {
 public:
  InputDirectory(std::initializer_list<const char*> names) {
    path_ = (std::filesystem::temp_directory_path() / "zerotrain-fuzz-XXXXXX").string();
    if (::mkdtemp(path_.data()) == nullptr) std::abort();
    for (const char* name : names) std::filesystem::create_symlink(files_[name].path(), path_ + "/" + name);
  }
  ~InputDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  InputDirectory(const InputDirectory&) = delete;
  InputDirectory& operator=(const InputDirectory&) = delete;
  void write(const char* name, std::string_view content) const { files_.at(name).write(content); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::map<std::string, InputFile> files_;
};

}  // namespace zt::fuzz
