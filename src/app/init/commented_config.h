// A config as a text in which every key is explained by the table of keys.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/json_reader.h"

namespace zt {

class CommentedConfig {
 public:
  // Keys appear in the order in which they, or their sections, were set first.
  void set(const std::string& path, Json value);
  const Json* find(const std::string& path) const;
  // Stands behind the explanation of the key: why it has this value.
  void remark(const std::string& path, const std::string& text) { remarks_[path] = text; }
  std::string remark_on(const std::string& path) const;  // empty: none

  Json json() const;  // the same without comments
  // `head`: lines of the comment that stands first. Every key must be in the table of keys, for the types that
  // model.type, data.type and the like have here: std::logic_error.
  std::string text(const std::vector<std::string>& head) const;

 private:
  std::vector<std::pair<std::string, Json>> values_;  // by path
  std::map<std::string, std::string> remarks_;        // by path
};

}  // namespace zt
