// sources: checkpoint/huggingface_source checkpoint/huggingface_config checkpoint/json_file checkpoint/weight_source
// sources: checkpoint/safetensors checkpoint/safetensors_header checkpoint/checksum checkpoint/file_access
// sources: checkpoint/stored_type checkpoint/transposed core/dtype core/json core/json_bounds core/json_ordered
// sources: core/shape_text data/message_text model/gpt_units
// dictionary: json
#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>

#include "checkpoint/huggingface.h"
#include "core/errors.h"
#include "input_file.h"

namespace {

namespace fs = std::filesystem;

// The safetensors files of the golden gpt2_sharded/, for which the fuzzer makes up the rest.
struct Directory : zt::fuzz::InputDirectory {
  Directory() : InputDirectory({"config.json", "model.safetensors.index.json"}) {
    for (const auto& entry :
         fs::directory_iterator(fs::path(ZEROTRAIN_SOURCE_DIR) / "tests/golden/formats/gpt2_sharded")) {
      if (entry.path().extension() == ".safetensors") fs::copy(entry.path(), path());
    }
  }
};

}  // namespace

// config.json, a byte 0, the index: refused with a UserError, or a model whose tensors can be read.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Directory directory;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(text.find('\0'), text.size());
  directory.write("config.json", text.substr(0, end));
  directory.write("model.safetensors.index.json", text.substr(std::min(end + 1, text.size())));
  try {
    const auto source = zt::open_huggingface(directory.path());
    for (std::size_t i = 0; i < source->tensors().size(); ++i) {
      float value = 0.0F;
      source->read(i, source->tensors()[i].count() - 1, 1, &value);
    }
  } catch (const zt::UserError&) {
  }
  return 0;
}
