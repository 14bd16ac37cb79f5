#include "core/precision.h"

#include <algorithm>
#include <array>

#include "core/errors.h"

namespace zt {
namespace {

constexpr DType f32 = DType::f32;
constexpr DType bf16 = DType::bf16;
constexpr DType f16 = DType::f16;

// Parameters, activations and gradients in one format.
constexpr Precision uniform(DType type, DType master, DType moment) {
  return {.parameter = type,
          .vectors = type,
          .activation = type,
          .compute = type,
          .gradient = type,
          .vector_gradient = type,
          .accumulator = type,
          .vector_accumulator = type,
          .master = master,
          .moment = moment};
}

// Everything in fp32 but the operands of products.
constexpr Precision per_operation(DType type) {
  Precision precision = uniform(f32, f32, f32);
  precision.compute = type;
  return precision;
}

constexpr Precision with_norms_in_fp32(Precision precision) {
  precision.vectors = precision.vector_gradient = precision.vector_accumulator = f32;
  return precision;
}

constexpr std::string_view none = "none";
constexpr std::string_view dynamic = "dynamic, from 2^32";
constexpr std::string_view apex = "dynamic, from 2^16, at most 2^24";

constexpr std::array<PrecisionPreset, 13> presets = {{
    {"fp32", "no section for precision", uniform(f32, f32, f32), false, none},
    {"fp16", "fp16.enabled", uniform(f16, f32, f32), false, dynamic},
    {"bf16", "bf16.enabled", uniform(bf16, f32, f32), false, none},
    {"fp16_masters", "fp16.enabled, fp16.fp16_master_weights_and_grads", uniform(f16, f16, f32), true, dynamic},
    {"bf16_masters", "bf16.enabled, bf16.bf16_master_weights_and_grads", uniform(bf16, bf16, f32), true, none},
    {"bf16_states", "bf16.enabled, bf16.bf16_master_weights_and_grads, bf16.bf16_optimizer_states",
     uniform(bf16, bf16, bf16), true, none},
    {"O0", R"("amp": {"enabled": true, "opt_level": "O0"})", uniform(f32, f32, f32), false, none},
    {"O1", R"("amp": {"enabled": true, "opt_level": "O1"})", per_operation(f16), false, apex},
    {"O2", R"("amp": {"enabled": true, "opt_level": "O2"})", with_norms_in_fp32(uniform(f16, f32, f32)), false, apex},
    {"O3", R"("amp": {"enabled": true, "opt_level": "O3"})", uniform(f16, f16, f16), true, "static, 1"},
    {"O3_norms", R"(O3 with "keep_batchnorm_fp32": true, or O2 with "master_weights": false)",
     with_norms_in_fp32(uniform(f16, f16, f16)), true, "static, 1"},
    {"autocast_fp16", R"("torch_autocast": {"enabled": true, "dtype": "float16"})", per_operation(f16), false,
     "dynamic, from 2^16"},
    {"autocast_bf16", R"("torch_autocast": {"enabled": true})", per_operation(bf16), false, none},
}};

DType format(const std::string& name, DType otherwise) {
  for (const DType type : {f32, bf16, f16}) {
    if (name == name_of(type)) return type;
  }
  return otherwise;
}

}  // namespace

std::span<const PrecisionPreset> precision_presets() { return presets; }

const PrecisionPreset& precision_preset(std::string_view name) {
  const auto* found =
      std::find_if(presets.begin(), presets.end(), [&](const PrecisionPreset& preset) { return preset.name == name; });
  if (found != presets.end()) return *found;
  std::string names;
  for (const PrecisionPreset& preset : presets) names += (names.empty() ? "" : ", ") + std::string(preset.name);
  throw UserError("precision \"" + std::string(name) + "\": use one of " + names);
}

Precision make_precision(const PrecisionSettings& settings, std::int64_t accumulation) {
  const PrecisionPreset& preset = precision_preset(settings.preset);
  Precision precision = preset.precision;
  const DType made = precision.gradient;
  // The format that gradients have anyway changes nothing, norms' own one included.
  if (const DType sent = format(settings.communication_dtype, made); sent != made) {
    precision.gradient = precision.vector_gradient = sent;
  }
  DType sum = preset.sums_in_16_bits || accumulation == 1 ? made : f32;
  if (precision.gradient != made) sum = f32;
  precision.accumulator = format(settings.grad_accum_dtype, sum);
  // Vectors that are kept in fp32 are summed in it.
  precision.vector_accumulator = preset.precision.vectors == f32 ? f32 : precision.accumulator;
  return precision;
}

std::string precision_in_words(const PrecisionSettings& settings, std::int64_t accumulation) {
  const Precision precision = make_precision(settings, accumulation);
  const auto name = [](DType type) { return std::string(name_of(type)); };
  std::string text = settings.preset + ": parameters " + name(precision.parameter);
  if (precision.vectors != precision.parameter) text += " (norms " + name(precision.vectors) + ")";
  if (precision.casts_operands()) text += ", products " + name(precision.compute);
  text += ", gradients " + name(precision.gradient);
  if (precision.accumulator != precision.gradient) text += " (summed in " + name(precision.accumulator) + ")";
  if (precision.master == precision.moment) return text + ", masters and moments " + name(precision.master);
  return text + ", masters " + name(precision.master) + ", moments " + name(precision.moment);
}

}  // namespace zt
