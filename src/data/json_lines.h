// JSON lines of prompts and completions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zt {

struct PromptCompletion {
  std::string prompt, completion;  // UTF-8
  std::int64_t line = 0;           // in the file, from 1
};

// Every line is an object with the texts `prompt` and `completion` (not empty); its other keys are passed over. Empty
// lines do not count. `origin` names the file in errors. Throws UserError: the first few lines that are wrong, with
// line and column (in bytes, from 1), and the number of all.
std::vector<PromptCompletion> read_prompts(std::string_view text, const std::string& origin);

// Whether the first line with something on it is such an object, or one in an array that the file may be.
bool looks_like_prompts(std::string_view text);

}  // namespace zt
