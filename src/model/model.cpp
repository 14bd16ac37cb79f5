#include "model/model.h"

#include "core/errors.h"
#include "model/gpt.h"
#include "model/mlp.h"

namespace zt {

std::unique_ptr<Model> make_model(const Settings& settings, const Precision& precision, Device& device,
                                  std::int64_t rows, ModelUse use) {
  if (settings.model.type == "gpt") {
    return std::make_unique<Gpt>(settings.model.gpt, settings.model.freeze, settings.checkpoint_every, precision,
                                 device, rows, use);
  }
  if (settings.model.type == "mlp") {
    return std::make_unique<Mlp>(settings.model.mlp, settings.model.freeze, precision, device, rows, use);
  }
  throw UserError("model.type \"" + settings.model.type + "\": use \"gpt\" or \"mlp\"");
}

std::int64_t parameter_count(const std::vector<UnitSpec>& units) {
  std::int64_t count = 0;
  for (const UnitSpec& unit : units) {
    for (const TensorSpec& tensor : unit.tensors) count += tensor.count();
  }
  return count;
}

}  // namespace zt
