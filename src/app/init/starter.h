// A config for a model and data of one's own, chosen from little: kinds, a size, a path.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/init/commented_config.h"

namespace zt {

struct StarterRequest {
  std::string model, data;  // empty: what goes with the other, and with the path
  std::string size = "small";
  std::string path;    // of the data, as it was typed; empty: none was given
  std::string target;  // csv: the column; empty: the last one
  std::string output;  // the file; empty: named after the model
};

struct Starter {
  std::string model, data, output;
  CommentedConfig config;
  std::vector<std::string> chosen;  // lines for the user: what was chosen, and why
  bool data_are_there = true;
};

// Looks at the data, if they are there. UserError: kinds that do not go together, a size that there is not, data of
// another kind.
Starter make_starter(const StarterRequest& request);

const std::vector<std::string>& starter_sizes();  // of both models

}  // namespace zt
