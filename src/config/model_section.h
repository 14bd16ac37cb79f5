// The section "model" of a config from settings.
#pragma once

#include "config/json_reader.h"
#include "config/settings.h"

namespace zt {

// Its keys that say what the model computes and how it is made; without freeze and pretrained, which are of a run.
Json model_section(const ModelSettings& model);
// Back from it; other keys are passed over. UserError with the key that is missing or holds what no model can have.
ModelSettings model_of_section(const Json& section);

}  // namespace zt
