// Mistakes of a config, collected so that all of them are told at once.
#pragma once

#include <string>
#include <vector>

#include "core/errors.h"

namespace zt {

// what() is the whole text for the user, several lines when there are several mistakes.
class ConfigError : public UserError {
 public:
  using UserError::UserError;
};

struct Problem {
  std::string path;    // "optimizer.params.lr"; empty: not about one key
  std::string origin;  // "gpt.json:12", "--set"; empty: given nowhere
  std::string text;
};

using Problems = std::vector<Problem>;

std::string format_problems(const Problems& problems);

// Throws ConfigError unless the list is empty.
void throw_if_any(const Problems& problems);

}  // namespace zt
