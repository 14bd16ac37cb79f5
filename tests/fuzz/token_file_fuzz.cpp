// sources: data/token_files data/mapped_file data/file_kind data/message_text core/files core/unfinished
#include <algorithm>
#include <array>
#include <cstdlib>

#include "core/errors.h"
#include "data/token_files.h"
#include "input_file.h"

// Any file, taken for each format, is refused with a UserError, or all of its tokens can be read.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const zt::fuzz::InputFile input(data, size);
  for (const char* format : {"", "llm.c", "nanogpt", "megatron"}) {
    try {
      const zt::TokenFile file(input.path(), "data.train", format);
      if (file.size() < 1 || file.size() > static_cast<std::int64_t>(size)) std::abort();
      std::array<std::int32_t, 64> ids{};
      for (std::int64_t first = 0; first < file.size(); first += 64) {
        const auto count = static_cast<std::size_t>(std::min<std::int64_t>(64, file.size() - first));
        file.copy(first, std::span(ids).first(count));
      }
      file.largest(0, file.size());
    } catch (const zt::UserError&) {
    }
  }
  return 0;
}
