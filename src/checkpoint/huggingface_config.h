// config.json of a GPT-2 of the transformers library, from and to settings of a model.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "config/settings.h"
#include "core/dtype.h"

namespace zt {

// UserError where it is another architecture, asks for something that this program's GPT does not compute, or holds
// values that no model can have. `path` stands in messages. Keys that are absent have the library's defaults.
ModelSettings model_of_huggingface_config(const nlohmann::json& config, const std::string& path);

// UserError where the library's GPT-2 cannot express the model, with the reason. `end_of_text`: the id of the token
// that ends a text, if there is one; `dtype`: of the weights in the files.
nlohmann::ordered_json huggingface_config(const ModelSettings& model, DType dtype,
                                          std::optional<std::int64_t> end_of_text);

}  // namespace zt
