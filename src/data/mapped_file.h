// A file as it lies on disk, for as long as the object lives.
#pragma once

#include <string>
#include <string_view>

namespace zt {

class MappedFile {
 public:
  // Maps the file. `key` is the config key that names it, `what` what it should be ("a text file"), for errors:
  // missing, a directory, no permission, empty.
  MappedFile(const std::string& path, const std::string& key, const std::string& what);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::string_view bytes() const { return {static_cast<const char*>(memory_), size_}; }

 private:
  void* memory_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace zt
