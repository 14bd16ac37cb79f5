#include "core/precision.h"

namespace zt {

Precision precision_preset(DType training_dtype, std::int64_t accumulation, const std::string& accumulator) {
  Precision precision;
  precision.parameter = precision.vectors = precision.gradient = precision.wire = precision.compute = training_dtype;
  precision.accumulator = accumulation > 1 ? DType::f32 : training_dtype;
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    if (accumulator == name_of(type)) precision.accumulator = type;
  }
  return precision;
}

}  // namespace zt
