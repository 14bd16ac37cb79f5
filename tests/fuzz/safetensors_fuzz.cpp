// sources: checkpoint/safetensors checkpoint/safetensors_header checkpoint/checksum checkpoint/file_access
// sources: checkpoint/stored_type core/dtype core/json data/message_text
// dictionary: json
#include <algorithm>
#include <vector>

#include "checkpoint/safetensors.h"
#include "core/errors.h"
#include "input_file.h"

// Any file is refused with a RunError, or all of its tensors can be read.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const zt::fuzz::InputFile input(data, size);
  try {
    const zt::SafetensorsFile file(input.path());
    std::int64_t bytes = 0;
    std::vector<float> values;
    std::vector<char> raw;
    for (const zt::StoredTensor& tensor : file.tensors()) {
      if (file.find(tensor.name) != &tensor) std::abort();
      bytes += tensor.bytes;
      file.checksum(tensor);
      if (zt::becomes_float(tensor.type)) {
        values.resize(static_cast<std::size_t>(tensor.elements));
        file.read_floats(tensor, 0, tensor.elements, values.data());
      } else {
        raw.resize(static_cast<std::size_t>(tensor.bytes));
        file.read(tensor, 0, tensor.elements, raw.data());
      }
    }
    if (bytes > static_cast<std::int64_t>(size)) std::abort();
  } catch (const zt::RunError&) {
  }
  return 0;
}
