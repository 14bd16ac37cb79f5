#include "app/resolve_options.h"

#include "checkpoint/open_weights.h"
#include "config/model_section.h"
#include "core/errors.h"
#include "core/json.h"
#include "device/cpu/instruction_set.h"
#include "device/gpu/driver.h"

namespace zt {

ResolveOptions resolve_options_here() {
  ResolveOptions options;
  options.expects_gpu = gpu_driver_is_installed();
  options.bf16_is_fast = cpu::detected_instruction_level() >= cpu::InstructionLevel::avx512_bf16;
  options.pretrained_model = [](const std::string& path) {
    try {
      const std::unique_ptr<WeightSource> weights = open_weights(path);
      return PretrainedModel{model_section(weights->model()), weights->description()};
    } catch (const RunError& error) {
      throw RunError(std::string("model.pretrained: ") + error.what());
    }
  };
  return options;
}

}  // namespace zt
