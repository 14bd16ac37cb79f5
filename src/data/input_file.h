// A file of data, whole. gzip is known by its first bytes, whatever the file's name, and unpacked.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "data/mapped_file.h"

namespace zt {

class InputFile {
 public:
  // As MappedFile; besides, UserError where gzip is cut short or damaged.
  InputFile(const std::string& path, const std::string& key, const std::string& what);

  // Not empty. Lives as long as the object.
  std::string_view bytes() const { return mapped_ ? mapped_->bytes() : std::string_view(unpacked_); }
  // The bytes in memory of their own; bytes() is empty afterwards.
  std::string take();

 private:
  std::unique_ptr<MappedFile> mapped_;  // null once unpacked
  std::string unpacked_;
};

}  // namespace zt
