// A directory that appears whole or not at all.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/unfinished.h"

namespace zt {

// Files are written into path(), a directory beside the wanted one; finish() syncs it and gives it its name. Without
// finish() everything is removed, also where a signal ends the process (app/signals.h).
class NewDirectory {
 public:
  // UserError where `wanted` exists and is not an empty directory, or none can be made there.
  explicit NewDirectory(const std::string& wanted);
  ~NewDirectory();
  NewDirectory(const NewDirectory&) = delete;
  NewDirectory& operator=(const NewDirectory&) = delete;

  std::string path(const std::string& file = {}) const {
    return file.empty() ? partial_.string() : (partial_ / file).string();
  }
  void finish();  // RunError

 private:
  std::filesystem::path wanted_, partial_;
  std::optional<Unfinished> unfinished_;
  bool is_finished_ = false;
};

}  // namespace zt
