// A text file as it lies on disk, for as long as the object lives.
#pragma once

#include <string>
#include <string_view>

namespace zt {

class TextFile {
 public:
  // Maps the file. `key` is the config key that names it, for errors: missing, a directory, no permission, empty.
  TextFile(const std::string& path, const std::string& key);
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;
  ~TextFile();

  std::string_view text() const { return {static_cast<const char*>(memory_), size_}; }

 private:
  void* memory_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace zt
