#include "checkpoint/open_weights.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "checkpoint/file_access.h"
#include "checkpoint/huggingface.h"
#include "checkpoint/llmc_model.h"
#include "checkpoint/manifest.h"
#include "checkpoint/native_weights.h"
#include "core/errors.h"
#include "data/message_text.h"

namespace zt {

std::unique_ptr<WeightSource> open_weights(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) throw UserError("there is no " + shown_path(path) + ": check the path");
  const bool is_directory = fs::is_directory(status);
  const auto has = [&](const char* name) { return is_directory && fs::exists(fs::path(path) / name, error); };
  if (has(manifest_name) || has("checkpoints") || has("latest")) return open_native_weights(path);
  // As export writes it.
  if (has("model.bin") && !has("config.json")) return open_weights((fs::path(path) / "model.bin").string());
  if (is_directory || path.ends_with(".safetensors") || path.ends_with(".safetensors.index.json")) {
    return open_huggingface(path);
  }
  std::string start;
  try {
    const InputDescriptor file(path);
    start.resize(static_cast<std::size_t>(std::min<std::int64_t>(file.bytes(), 4)));
    file.read(0, static_cast<std::int64_t>(start.size()), start.data());
  } catch (const RunError& failure) {
    throw UserError(failure.what());
  }
  std::int32_t magic = 0;
  if (start.size() == sizeof magic) std::memcpy(&magic, start.data(), sizeof magic);
  if (magic == llmc_model_magic) return open_llmc_model(path);
  // What torch.save writes: a zip archive, or older a pickle.
  if (start.starts_with("PK\x03\x04") || start.starts_with("\x80\x02")) {
    throw UserError(shown_path(path) +
                    " is a file of PyTorch's own format, which runs code when it is opened and is not "
                    "read here: " +
                    how_to_convert(fs::path(path).parent_path().string()));
  }
  throw UserError(shown_path(path) +
                  " is no file of weights that is known here: there are checkpoints, directories of the "
                  "transformers library (config.json with model.safetensors), and llm.c's model.bin");
}

std::unique_ptr<WeightSource> open_pretrained(const ModelSettings& model) {
  if (model.pretrained.empty()) return nullptr;
  try {
    return open_weights(model.pretrained);
  } catch (const UserError& error) {
    throw UserError(std::string("model.pretrained: ") + error.what());
  } catch (const RunError& error) {
    throw RunError(std::string("model.pretrained: ") + error.what());
  }
}

}  // namespace zt
