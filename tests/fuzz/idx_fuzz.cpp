// sources: data/idx_file data/input_file data/mapped_file data/gzip data/file_kind data/message_text
// sources: core/available_memory core/files core/unfinished
// libraries: z
#include <cstdlib>
#include <vector>

#include "core/errors.h"
#include "data/idx_file.h"
#include "input_file.h"

// Any file is refused with a UserError, or every element of it can be read.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const zt::fuzz::InputFile input(data, size);
  try {
    const zt::IdxFile file(input.path(), "data.images");
    std::vector<float> features(static_cast<std::size_t>(file.values_per_item()));
    for (std::int64_t item = 0; item < file.items(); ++item) file.features(item, features);
    for (std::int64_t i = 0; file.holds_integers() && i < file.items() * file.values_per_item(); ++i) file.integer(i);
    if (file.description().empty() || file.first_beyond(1000.0) >= file.items() * file.values_per_item()) std::abort();
  } catch (const zt::UserError&) {
  }
  return 0;
}
