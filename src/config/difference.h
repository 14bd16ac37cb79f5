// What differs between two resolved configs.
#pragma once

#include <string>
#include <vector>

#include "config/json_reader.h"

namespace zt {

struct ConfigDifference {
  std::string path;          // "optimizer.params.lr"
  Json before, after;        // discarded: the key is missing there
  std::string text() const;  // "optimizer.params.lr: 0.001, before 0.0003"
};

// In the order of the keys, key by key below sections; at most `most`.
std::vector<ConfigDifference> config_differences(const Json& before, const Json& after, std::size_t most = 1000);

}  // namespace zt
