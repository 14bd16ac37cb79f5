// GPT-2 as the transformers library keeps it: config.json and safetensors files, one or several with an index.
//
// Linear weights are the other way round there, [inputs, outputs]; names begin with "transformer." (files of the model
// without its head leave that out); a tied head is not stored.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/weight_source.h"
#include "core/dtype.h"

namespace zt {

// `path`: the directory, or its model.safetensors, or its model.safetensors.index.json. UserError for all that can be
// wrong with files, names and shapes; values are looked at when they are read.
std::unique_ptr<WeightSource> open_huggingface(const std::string& path);

// What to do with a directory whose weights are in PyTorch's own files, pytorch_model.bin.
std::string how_to_convert(const std::string& directory);

// A file that goes with a model: the tokenizer's.
struct NamedText {
  std::string name{}, text{};
};

struct HuggingfaceExport {
  std::int64_t largest_file = 5'000'000'000;  // bytes of tensors in a safetensors file, if a tensor is not larger
  DType dtype = DType::f32;
  std::vector<NamedText> tokenizer_files;
  std::optional<std::int64_t> end_of_text;  // the tokenizer's id
};

// Writes a directory that the library opens. `directory` must not exist, or be empty: it appears whole or not at all.
// Names of the files written come back. UserError where the library's GPT-2 cannot express the model (before anything
// is written) or a value is not finite.
std::vector<std::string> export_huggingface(const WeightSource& source, const ModelSettings& model,
                                            const std::string& directory, const HuggingfaceExport& options);

// What a tensor of ours is called there (without "transformer."), and whether it is stored transposed.
struct HuggingfaceName {
  std::string name;
  bool has_prefix = true;
  bool transposed = false;
};
HuggingfaceName huggingface_name(const std::string& ours);

}  // namespace zt
