// Small settings and data that tests train.
#pragma once

#include "data/source.h"

namespace zt::test {

inline Settings tiny_gpt() {
  Settings settings;
  settings.model.type = "gpt";
  settings.model.gpt.n_layer = 3;
  settings.model.gpt.n_head = 3;
  settings.model.gpt.n_embd = 24;
  settings.model.gpt.n_positions = 16;
  settings.model.gpt.vocab_size = 67;
  settings.data.type = "synthetic";
  settings.data.task = "tokens";
  settings.data.samples = 400;
  settings.optimizer.learning_rate = 2e-3;
  settings.optimizer.weight_decay = 0.1;
  settings.gradient_clipping = 1.0;
  settings.training.max_steps = 3;
  settings.training.eval_interval = 1;
  settings.training.eval_steps = 2;
  settings.device.threads = 1;
  settings.batch = {.train = 2, .micro = 2, .accumulation = 1};
  return settings;
}

inline Settings tiny_mlp() {
  Settings settings = tiny_gpt();
  settings.model.type = "mlp";
  settings.model.mlp.layers = {20, 33, 9, 3};
  settings.model.mlp.activation = "gelu";
  settings.data.task = "regression";
  settings.optimizer.type = "SGD";
  settings.optimizer.learning_rate = 0.05;
  settings.optimizer.momentum = 0.9;
  return settings;
}

// micro-batches of `micro` rows, A accumulated, on so many ranks.
inline Settings with_batch(Settings settings, std::int64_t micro, std::int64_t accumulation, int ranks) {
  settings.batch = {.train = micro * accumulation * ranks, .micro = micro, .accumulation = accumulation};
  return settings;
}

inline Dataset data_for(const Settings& settings) { return open_dataset(settings); }

}  // namespace zt::test
