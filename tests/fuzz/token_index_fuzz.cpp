// sources: data/token_files data/mapped_file data/file_kind data/message_text core/files core/unfinished
#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "core/errors.h"
#include "data/token_files.h"
#include "input_file.h"

// Megatron's pair, NAME.bin of as many bytes as the first two of the input say and NAME.idx from the rest of it, is
// refused with a UserError, or all of its tokens can be read and its documents start within them, one after the other.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const zt::fuzz::InputDirectory directory({"tokens.bin", "tokens.idx"});
  if (size < 2) return 0;
  const std::string tokens(static_cast<std::size_t>(data[0] | data[1] << 8), '\x01');
  directory.write("tokens.bin", tokens);
  directory.write("tokens.idx", {reinterpret_cast<const char*>(data) + 2, size - 2});
  try {
    const zt::TokenFile file(directory.path() + "/tokens.bin", "data.train", "megatron");
    if (file.size() < 1 || file.size() > static_cast<std::int64_t>(tokens.size())) std::abort();
    std::array<std::int32_t, 64> ids{};
    for (std::int64_t first = 0; first < file.size(); first += 64) {
      const auto count = static_cast<std::size_t>(std::min<std::int64_t>(64, file.size() - first));
      file.copy(first, std::span(ids).first(count));
    }
    file.largest(0, file.size());
    std::int64_t before = -1;
    for (const std::int64_t start : file.documents()) {
      if (start <= before || start >= file.size()) std::abort();
      before = start;
    }
  } catch (const zt::UserError&) {
  }
  return 0;
}
