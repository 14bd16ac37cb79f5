#include "app/planning.h"

#include <algorithm>

#include "core/process.h"
#include "device/cpu/instruction_set.h"

namespace zt {

ResolvedConfig resolve_here(const ConfigSource& source, int world_size) {
  return resolve_config(source.configs, source.sets, world_size, source.options);
}

void settle_here(ResolvedConfig& config, std::int64_t vocab_size, int ranks, const ComputeChoice& choice) {
  cpu::InstructionLevel level = cpu::detected_instruction_level();
  if (const auto asked = cpu::instruction_level_from(config.settings.device.instruction_set))
    level = std::min(level, *asked);
  int threads = config.settings.device.threads;
  if (threads == 0) threads = std::max(1, allowed_core_count() / ranks);
  LateValues values;
  if (vocab_size > 0) values.vocab_size = vocab_size;
  values.threads = threads;
  values.device_type = choice.type;
  values.communicator = choice.settled_communicator(ranks);
  values.ranks_per_node = config.settings.device.ranks_per_node;
  values.instruction_set = std::string(cpu::name_of(level));
  settle(config, values);
}

Plan plan_here(const Settings& settings, int ranks, const ComputeChoice& choice) {
  if (const auto level = cpu::instruction_level_from(settings.device.instruction_set))
    cpu::limit_instruction_set(*level);
  int ranks_on_node = settings.device.ranks_per_node;
  if (choice.type == "cuda") ranks_on_node = choice.communicator == "nccl" ? 1 : ranks;
  return make_plan(settings, 0, ranks, ranks_on_node, scratch_of_device(settings.device));
}

}  // namespace zt
