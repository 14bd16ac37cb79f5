// What is held in which number format: the presets (one table) and what their overrides make of them. Formulas of
// memory and traffic read the result.
//
// | format              | of                                                                                   |
// | parameter, vectors  | parameters at rest: matrices (and linear biases, if both formats agree); norms         |
// | activation          | the residual stream, norms' outputs and their gradients                               |
// | compute             | operands of products, and what lies between two of them                               |
// | gradient            | a micro-batch's gradient as it is made, and sent between ranks                        |
// | accumulator         | the sum over the micro-batches of a step                                              |
// | master, moment      | what the optimizer updates, and its running averages                                  |
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/dtype.h"

namespace zt {

struct Precision {
  DType parameter = DType::f32;
  DType vectors = DType::f32;
  DType activation = DType::f32;
  DType compute = DType::f32;
  DType gradient = DType::f32;
  DType vector_gradient = DType::f32;
  DType accumulator = DType::f32;
  DType vector_accumulator = DType::f32;
  DType master = DType::f32;
  DType moment = DType::f32;

  // Products read another format than parameters and the stream have: the model casts.
  bool casts_operands() const { return compute != activation; }
  bool operator==(const Precision&) const = default;
};

struct PrecisionPreset {
  std::string_view name;         // of Settings::precision, of summary.json
  std::string_view asked_by;     // what a config says to get it
  Precision precision;           // for A = 1, without overrides
  bool sums_in_16_bits = false;  // for A > 1 too, unless data_types.grad_accum_dtype says otherwise
  std::string_view scaling;      // of the loss, in words

  // fp16 takes part: small gradients vanish unless the loss is scaled.
  bool scales_loss() const { return precision.compute == DType::f16; }
};

std::span<const PrecisionPreset> precision_presets();
const PrecisionPreset& precision_preset(std::string_view name);  // UserError for a name that is not in the table

// Which preset, and what the config changes of it. Formats: "fp32", "bf16", "fp16", or empty: the preset's.
struct PrecisionSettings {
  std::string preset = "fp32";
  std::string grad_accum_dtype;     // data_types.grad_accum_dtype
  std::string communication_dtype;  // communication_data_type: gradients are made and sent in it
};

// `accumulation`: micro-batches of a step on one rank (A). Unset, sums are in the gradients' format for A = 1 (fp32 if
// gradients travel in another one than the preset's) and in fp32 for A > 1; with 16-bit masters always in 16 bits.
Precision make_precision(const PrecisionSettings& settings, std::int64_t accumulation);

// One line: "bf16: parameters bf16, gradients bf16 (summed in fp32), masters and moments fp32".
std::string precision_in_words(const PrecisionSettings& settings, std::int64_t accumulation);

}  // namespace zt
