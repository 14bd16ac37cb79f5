// The model files of llm.c (model.bin): a header of 256 integers, then the weights of a GPT-2, each kind stacked over
// the layers, fp32 (version 3) or bf16 (version 5). The vocabulary is padded with rows that no token has.
#pragma once

#include <memory>
#include <string>

#include "checkpoint/weight_source.h"
#include "core/dtype.h"

namespace zt {

constexpr std::int32_t llmc_model_magic = 20240326;

// UserError where it is not such a file, or not whole.
std::unique_ptr<WeightSource> open_llmc_model(const std::string& path);

// Writes `directory`/model.bin in fp32 or bf16; `directory` must not exist, or be empty. UserError where llm.c's GPT-2
// cannot express the model (before anything is written) or a value is not finite. Returns the file's name.
std::string export_llmc_model(const WeightSource& source, const ModelSettings& model, const std::string& directory,
                              DType dtype = DType::f32);

}  // namespace zt
