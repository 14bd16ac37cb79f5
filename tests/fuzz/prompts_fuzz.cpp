// sources: data/json_lines data/json_fault data/message_text core/spelling core/json
// dictionary: json
#include <cstdlib>

#include "core/errors.h"
#include "data/json_lines.h"

// Any lines are refused with a UserError that names each fault, or are pairs of texts.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  zt::looks_like_prompts(text);
  try {
    for (const zt::PromptCompletion& pair : zt::read_prompts(text, "prompts.jsonl")) {
      if (pair.completion.empty() || pair.line < 1) std::abort();
    }
  } catch (const zt::UserError&) {
  }
  return 0;
}
