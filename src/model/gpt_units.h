// The parameters of a GPT: units, tensors, names, initial values.
#pragma once

#include <vector>

#include "config/settings.h"
#include "model/parameter_access.h"

namespace zt {

// Where a tensor stands in its unit's list; -1: the model has no such tensor.
struct GptUnits {
  std::vector<UnitSpec> units;  // embedding, blocks, (untied) head

  int token_table = -1, position_table = -1;  // in unit 0: [V, C], [T, C]
  // The same in every block; C width, I inner width.
  int qkv_weight = -1, attention_weight = -1, fc_weight = -1, projection_weight = -1;  // [3C,C] [C,C] [I,C] [C,I]
  int norm_1_weight = -1, norm_1_bias = -1, qkv_bias = -1, attention_bias = -1;
  int norm_2_weight = -1, norm_2_bias = -1, fc_bias = -1, projection_bias = -1;
  // In the head's unit: unit 0 when tied.
  int head_unit = 0;
  int head_weight = -1, final_norm_weight = -1, final_norm_bias = -1;

  static int block(std::size_t index) { return static_cast<int>(index) + 1; }  // the unit of a block
};

GptUnits gpt_units(const GptSettings& settings);

}  // namespace zt
