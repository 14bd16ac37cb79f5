// What the data of a config to be written are, found out from the files. Internal to app/init/.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "config/json_reader.h"

namespace zt {

struct StarterData {
  std::vector<std::pair<std::string, Json>> keys;      // of the section data, paths as they are to be written
  std::vector<std::pair<std::string, Json>> absolute;  // the paths among them, absolute
  std::int64_t inputs = 0, outputs = 0;                // of an mlp
  bool has_classes = false;
  bool is_there = true, has_validation = true;
  std::vector<std::string> chosen;                           // lines for the user
  std::vector<std::pair<std::string, std::string>> remarks;  // on keys: why they have these values
};

// `kind`: text, tokens, idx, csv, synthetic. `path` empty: a place to put them. Paths in the config count from the
// folder of `output`, unless `path` is absolute. UserError: files that are not of the kind.
StarterData look_at_data(const std::string& kind, const std::string& model, const std::string& path,
                         const std::string& target, const std::string& output);

std::string kind_of_data(const std::string& path);  // by the name; "" for none that tells

}  // namespace zt
