#include "config/problems.h"

namespace zt {

std::string format_problems(const Problems& problems) {
  std::string text = problems.size() == 1 ? "one mistake in the config:"
                                          : std::to_string(problems.size()) + " mistakes in the config:";
  for (const Problem& problem : problems) {
    text += "\n  ";
    if (!problem.origin.empty()) text += problem.origin + ": ";
    if (!problem.path.empty()) text += problem.path + ": ";
    text += problem.text;
  }
  return text;
}

void throw_if_any(const Problems& problems) {
  if (!problems.empty()) throw ConfigError(format_problems(problems));
}

}  // namespace zt
