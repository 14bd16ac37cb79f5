// One value of a config in the type of its key, or what is wrong with it and what to write instead. Internal to
// config/.
#pragma once

#include <filesystem>
#include <string>

#include "config/keys.h"

namespace zt {

std::string in_lower_case(std::string word);

class ValueReader {
 public:
  // Both must live as long as the reader. `current_directory` is where a path starts that no origin is known for.
  ValueReader(const ConfigTree& tree, const std::filesystem::path& current_directory)
      : tree_(tree), current_directory_(current_directory) {}

  // `out` becomes the value in the table's type; returns what is wrong, or nothing.
  std::string convert(const Key& key, const std::string& path, const Json& value, Json& out) const;
  // A number as it was written: 1e9, not 1000000000.0.
  std::string shown(const std::string& path, const Json& value) const;
  // "found 1e9; allowed: an integer from 0 to 3"
  std::string found_text(const Key& key, const std::string& path, const Json& value) const;

 private:
  std::string convert_value(const Key& key, const std::string& path, const Json& value, Json& out) const;
  std::string convert_choice(const Key& key, const std::string& path, const Json& value, const std::string& found,
                             Json& out) const;
  std::string convert_path(const Key& key, const std::string& path, const Json& value, const std::string& found,
                           Json& out) const;
  std::string hint(const Key& key, const std::string& path, const Json& value) const;
  Json as_text(const std::string& path, const Json& value) const;

  const ConfigTree& tree_;
  const std::filesystem::path& current_directory_;
};

}  // namespace zt
