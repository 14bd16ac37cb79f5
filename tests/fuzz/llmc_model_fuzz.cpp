// sources: checkpoint/llmc_model checkpoint/weight_source checkpoint/file_access checkpoint/new_directory
// sources: checkpoint/stored_type core/dtype core/files core/unfinished core/shape_text data/message_text
// sources: model/gpt_units
#include <vector>

#include "checkpoint/llmc_model.h"
#include "core/errors.h"
#include "input_file.h"

// Any file is refused with a UserError, or all of its tensors can be read.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const zt::fuzz::InputFile input(data, size);
  try {
    const auto source = zt::open_llmc_model(input.path());
    std::vector<float> values;
    for (std::size_t i = 0; i < source->tensors().size(); ++i) {
      const std::int64_t count = source->tensors()[i].count();
      if (count > static_cast<std::int64_t>(size)) std::abort();
      values.resize(static_cast<std::size_t>(count));
      source->read(i, 0, count, values.data());
    }
  } catch (const zt::UserError&) {
  }
  return 0;
}
