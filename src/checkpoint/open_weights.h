// Weights of any format that is known, by what is found at a path.
#pragma once

#include <memory>
#include <string>

#include "checkpoint/weight_source.h"

namespace zt {

// A checkpoint or a run's directory (its newest), a Hugging Face directory or safetensors file of one, or a model file
// of llm.c. UserError names what else it is and what to do; RunError: a checkpoint of zerotrain's own, damaged.
std::unique_ptr<WeightSource> open_weights(const std::string& path);

// Those that model.pretrained names; null: none. The key stands in the error.
std::unique_ptr<WeightSource> open_pretrained(const ModelSettings& model);

}  // namespace zt
