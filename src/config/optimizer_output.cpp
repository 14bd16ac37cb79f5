// The resolved optimizer and schedule to the structs that the program reads.
#include "config/resolver.h"

namespace zt {

OptimizerSettings Resolver::optimizer_settings() const {
  const std::string params = "optimizer.params.";
  OptimizerSettings optimizer;
  optimizer.type = get<std::string>("optimizer.type");
  optimizer.learning_rate = get<double>(params + "lr");
  optimizer.weight_decay = get<double>(params + "weight_decay");
  for (const std::string& kind : get<std::vector<std::string>>(params + "weight_decay_exclude")) {
    (kind == "bias" ? optimizer.decay_biases : optimizer.decay_norms) = false;
  }
  if (optimizer.type == "SGD") {
    optimizer.decoupled_decay = false;
    optimizer.momentum = get<double>(params + "momentum");
    optimizer.dampening = get<double>(params + "dampening");
    optimizer.nesterov = get<bool>(params + "nesterov");
    return optimizer;
  }
  if (optimizer.type != "Lion") optimizer.epsilon = get<double>(params + "eps");
  if (optimizer.type == "Adagrad") {
    optimizer.decoupled_decay = false;
    optimizer.lr_decay = get<double>(params + "lr_decay");
    optimizer.initial_accumulator_value = get<double>(params + "initial_accumulator_value");
    return optimizer;
  }
  const auto betas = get<std::vector<double>>(params + "betas");
  optimizer.beta1 = betas[0];
  optimizer.beta2 = betas[1];
  if (optimizer.type == "Lion") return optimizer;
  if (optimizer.type == "Muon") {
    optimizer.momentum = get<double>(params + "momentum");
    optimizer.nesterov = get<bool>(params + "nesterov");
    optimizer.decoupled_decay = get<bool>(params + "adam_w_mode");
    if (optimizer.learning_rate > 0.0) {
      optimizer.matrix_rate = get<double>(params + "muon_lr") / optimizer.learning_rate;
      optimizer.other_rate = get<double>(params + "adam_lr") / optimizer.learning_rate;
    }
    return optimizer;
  }
  optimizer.bias_correction = get<bool>(params + "bias_correction");
  if (optimizer.type == "Lamb") {
    optimizer.max_coeff = get<double>(params + "max_coeff");
    optimizer.min_coeff = get<double>(params + "min_coeff");
    optimizer.epsilon_inside_root = get<bool>(params + "eps_inside_sqrt");
    return optimizer;
  }
  optimizer.decoupled_decay = get<bool>(params + "adam_w_mode");
  optimizer.amsgrad = get<bool>(params + "amsgrad");
  return optimizer;
}

SchedulerSettings Resolver::scheduler_settings() const {
  const std::string params = "scheduler.params.";
  const auto integer = [&](const char* key) { return get<std::int64_t>(params + key); };
  const auto real = [&](const char* key) { return get<double>(params + key); };
  SchedulerSettings schedule;
  schedule.type = get<std::string>("scheduler.type");
  if (schedule.type == "LRRangeTest") {
    schedule.lr_range_test_min_lr = real("lr_range_test_min_lr");
    schedule.lr_range_test_step_size = integer("lr_range_test_step_size");
    schedule.lr_range_test_step_rate = real("lr_range_test_step_rate");
    schedule.lr_range_test_staircase = get<bool>(params + "lr_range_test_staircase");
    return schedule;
  }
  if (schedule.type == "OneCycle") {
    schedule.cycle_min_lr = real("cycle_min_lr");
    schedule.cycle_max_lr = real("cycle_max_lr");
    schedule.decay_lr_rate = real("decay_lr_rate");
    schedule.cycle_first_step_size = integer("cycle_first_step_size");
    schedule.cycle_second_step_size = integer("cycle_second_step_size");
    schedule.cycle_first_stair_count = integer("cycle_first_stair_count");
    schedule.cycle_second_stair_count = integer("cycle_second_stair_count");
    schedule.decay_step_size = integer("decay_step_size");
    schedule.cycle_momentum = get<bool>(params + "cycle_momentum");
    schedule.cycle_min_mom = real("cycle_min_mom");
    schedule.cycle_max_mom = real("cycle_max_mom");
    schedule.decay_mom_rate = real("decay_mom_rate");
    return schedule;
  }
  schedule.warmup_num_steps = integer("warmup_num_steps");
  schedule.warmup_type = get<std::string>(params + "warmup_type");
  if (schedule.type != "WarmupLR") schedule.total_num_steps = integer("total_num_steps");
  if (schedule.type == "WarmupCosineLR") {
    schedule.warmup_min_ratio = real("warmup_min_ratio");
    schedule.cos_min_ratio = real("cos_min_ratio");
  } else {
    schedule.warmup_min_lr = real("warmup_min_lr");
    schedule.warmup_max_lr = real("warmup_max_lr");
  }
  return schedule;
}

}  // namespace zt
