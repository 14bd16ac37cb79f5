// Configs of optimizers, schedules and what guards a step: defaults, and what has no effect.
#include <cmath>

#include "catch_compat.h"
#include "config_support.h"

using namespace zt;
using namespace zt::testing;

TEST_CASE("WarmupLR goes up to the optimizer's rate unless told otherwise") {
  const char* adam = R"({"optimizer": {"type": "Adam", "params": {"lr": 0.25}}})";
  CHECK(settings_of({tiny_gpt(), adam, R"({"scheduler": {"type": "WarmupLR"}})"}).scheduler.warmup_max_lr == 0.25);
  const ResolvedConfig config =
      resolve_texts({tiny_gpt(), adam, R"({"scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 0.5}}})"});
  CHECK(config.settings.scheduler.warmup_max_lr == 0.5);
  CHECK(contains(config.notices, "optimizer.params.lr: has no effect"));
}

TEST_CASE("each optimizer has the parameters of its own, with PyTorch's defaults") {
  OptimizerSettings s = settings_of({tiny_gpt(), R"({"optimizer": {"type": "adagrad"}})"}).optimizer;
  CHECK(s.type == "Adagrad");
  CHECK(s.learning_rate == 1e-2);
  CHECK(s.epsilon == 1e-10);
  CHECK(s.initial_accumulator_value == 0.0);
  CHECK_FALSE(s.decoupled_decay);
  s = settings_of({tiny_gpt(), R"({"optimizer": {"type": "Adagrad", "params": {"lr": "auto", "eps": "auto",
                   "lr_decay": 0.5, "initial_accumulator_value": 2, "weight_decay": 0.1}}})"})
          .optimizer;
  CHECK(s.learning_rate == 5e-5);
  CHECK(s.epsilon == 1e-10);
  CHECK(s.lr_decay == 0.5);
  CHECK(s.initial_accumulator_value == 2.0);
  s = settings_of(
          {tiny_gpt(), R"({"optimizer": {"type": "lion", "params": {"betas": [0.95, 0.98], "weight_decay": 1}}})"})
          .optimizer;
  CHECK(s.type == "Lion");
  CHECK(s.learning_rate == 1e-3);
  CHECK(s.beta1 == 0.95);
  CHECK(s.beta2 == 0.98);
  CHECK(s.weight_decay == 1.0);
  s = settings_of({tiny_gpt(), R"({"optimizer": {"type": "LAMB", "params": {"amsgrad": false, "max_coeff": 0.3}}})"})
          .optimizer;
  CHECK(s.type == "Lamb");
  CHECK(s.learning_rate == 1e-3);
  CHECK(s.epsilon == 1e-8);
  CHECK(s.max_coeff == 0.3);
  CHECK(s.min_coeff == 0.01);
  CHECK(s.bias_correction);
  CHECK_FALSE(s.epsilon_inside_root);
  s = settings_of({tiny_gpt(), R"({"optimizer": {"type": "muon"}})"}).optimizer;
  CHECK(s.type == "Muon");
  CHECK(s.learning_rate == 0.02);
  CHECK(s.matrix_rate == 1.0);
  CHECK(s.other_rate == Approx(3e-4 / 0.02));
  CHECK(s.momentum == 0.95);
  CHECK(s.nesterov);
  CHECK(s.decoupled_decay);
  CHECK(s.beta2 == 0.95);
  CHECK(s.epsilon == 1e-10);
  s = settings_of(
          {tiny_gpt(), R"({"optimizer": {"type": "Muon", "params": {"lr": 0.01, "muon_lr": 0.05, "ns_method": "gram",
          "nesterov": false, "per_head_muon": false, "adam_w_mode": false, "betas": "auto"}}})"})
          .optimizer;
  CHECK(s.matrix_rate == Approx(5.0));
  CHECK(s.other_rate == 1.0);
  CHECK_FALSE(s.nesterov);
  CHECK_FALSE(s.decoupled_decay);
  CHECK(s.beta2 == 0.95);
  // A schedule with rates of its own means all, as in DeepSpeed.
  s = settings_of({tiny_gpt(), R"({"optimizer": {"type": "Muon"},
          "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 0.004}}})"})
          .optimizer;
  CHECK(s.other_rate == 1.0);
  s = settings_of(
          {tiny_gpt(), R"({"optimizer": {"type": "Adam", "params": {"amsgrad": true, "bias_correction": false}}})"})
          .optimizer;
  CHECK(s.amsgrad);
  CHECK_FALSE(s.bias_correction);
  CHECK(s.decay_biases);
  CHECK(s.decay_norms);
  s = settings_of(
          {tiny_gpt(), R"({"optimizer": {"params": {"weight_decay": 1, "weight_decay_exclude": ["layer_norm"]}}})"})
          .optimizer;
  CHECK(s.decay_biases);
  CHECK_FALSE(s.decay_norms);
  s = settings_of({tiny_gpt(), R"({"optimizer": {"params": {"weight_decay_exclude": ["bias", "layer_norm"]}}})"})
          .optimizer;
  CHECK_FALSE(s.decay_biases);
  CHECK_FALSE(s.decay_norms);
}

TEST_CASE("OneCycle has DeepSpeed's defaults, and the second half is like the first unless told otherwise") {
  SchedulerSettings s =
      settings_of(
          {tiny_gpt(), R"({"scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 0.1, "cycle_max_lr": 1}}})"})
          .scheduler;
  CHECK(s.type == "OneCycle");
  CHECK(s.cycle_first_step_size == 2000);
  CHECK(s.cycle_second_step_size == 2000);
  CHECK(s.cycle_first_stair_count == 0);
  CHECK(s.cycle_second_stair_count == 0);
  CHECK(s.decay_step_size == 0);
  CHECK(s.cycle_momentum);
  CHECK(s.cycle_min_mom == 0.8);
  CHECK(s.cycle_max_mom == 0.9);
  s = settings_of({tiny_gpt(), R"({"optimizer": {"params": {"lr": 0.25}}, "training": {"max_steps": 30},
        "scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 0.1, "cycle_max_lr": "auto",
        "cycle_first_step_size": "auto", "cycle_second_step_size": null, "cycle_first_stair_count": 5}}})"})
          .scheduler;
  CHECK(s.cycle_max_lr == 0.25);
  CHECK(s.cycle_first_step_size == 15);
  CHECK(s.cycle_second_step_size == 15);
  CHECK(s.cycle_second_stair_count == 5);
  s = settings_of({tiny_gpt(), R"({"scheduler": {"type": "LRRangeTest"}})"}).scheduler;
  CHECK(s.lr_range_test_min_lr == 1e-3);
  CHECK(s.lr_range_test_step_size == 2000);
  CHECK(s.lr_range_test_step_rate == 1.0);
  CHECK_FALSE(s.lr_range_test_staircase);
}

TEST_CASE("what a schedule or an optimizer makes void is told in one notice") {
  struct Row {
    const char* text;
    const char* words;
  };
  const std::string cycle = R"("scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 0, "cycle_max_lr": 1)";
  const auto notices = [&](const std::string& more, const std::string& optimizer) {
    return resolve_texts({tiny_gpt(), "{" + cycle + more + "}}, \"optimizer\": " + optimizer + "}"}).notices;
  };
  const std::string adam = R"({"type": "AdamW"})";
  const std::string sgd = R"({"type": "SGD", "params": {"momentum": 0.5}})";
  CHECK(contains(notices("", R"({"type": "AdamW", "params": {"lr": 0.5}})"), "optimizer.params.lr: has no effect"));
  CHECK(contains(notices("", R"({"type": "AdamW", "params": {"betas": [0.5, 0.9]}})"), "betas: have no effect"));
  CHECK_FALSE(contains(notices(R"(, "cycle_momentum": false)", R"({"type": "AdamW", "params": {"betas": [0.5, 0.9]}})"),
                       "betas"));
  CHECK(contains(notices("", sgd), "optimizer.params.momentum: OneCycle moves it"));
  CHECK(contains(notices("", R"({"type": "SGD"})"), "cycle_momentum: switched off: SGD without momentum"));
  CHECK(contains(notices("", R"({"type": "Adagrad"})"), "cycle_momentum: switched off: Adagrad"));
  CHECK(contains(notices(R"(, "cycle_momentum": false, "cycle_min_mom": 0.5)", adam),
                 "cycle_min_mom: has no effect: cycle_momentum is false"));
  CHECK(contains(notices(R"(, "decay_lr_rate": 0.5)", adam), "decay_lr_rate: has no effect: decay_step_size is 0"));
  CHECK(contains(notices("", adam), "the cycle takes 4000 steps, more than training.max_steps 4"));
  for (const char* type : {"SGD", "Adagrad"}) {
    const std::string optimizer = R"("optimizer": {"type": ")" + std::string(type) + R"("})";
    const std::string rising = R"(, "decay_step_size": 1, "decay_mom_rate": 9)";
    CHECK_FALSE(settings_of({tiny_gpt(), "{" + cycle + rising + "}}, " + optimizer + "}"}).scheduler.cycle_momentum);
  }
  for (const Row& row : std::vector<Row>{
           {R"({"optimizer": {"params": {"lr": 1}}, "scheduler": {"type": "LRRangeTest"}})", "lr: has no effect"},
           {R"({"optimizer": {"params": {"weight_decay_exclude": ["bias"]}}})",
            "exclude: has no effect: weight_decay is 0"},
           {R"({"optimizer": {"type": "SGD", "params": {"dampening": 0.5}}})", "dampening: has no effect"},
       }) {
    INFO(row.text);
    CHECK(contains(resolve_texts({tiny_gpt(), row.text}).notices, row.words));
  }
  CHECK(contains(resolve_texts({tiny_mlp(), R"({"optimizer": {"params": {"weight_decay": 0.1,
                               "weight_decay_exclude": ["layer_norm"]}}})"})
                     .notices,
                 "an mlp has no \"layer_norm\""));
}

TEST_CASE("what becomes of an overflow, a spike and a validation loss that rests is read, and off by default") {
  Settings s = settings_of({tiny_gpt(), R"({"fp16": {"enabled": true}})"});
  CHECK(s.loss_scale.on_overflow == OnOverflow::skip);
  CHECK(s.loss_scale.rule == LossScaleRule::deepspeed);
  CHECK(s.bf16_check_grad_overflow);
  CHECK(s.training.spike_guard.action == SpikeAction::off);
  CHECK(s.training.early_stopping.patience == 0);
  s = settings_of({tiny_gpt(), R"({"fp16": {"on_overflow": "retry", "enabled": true, "loss_scale_window": 7,
        "consecutive_hysteresis": true, "min_loss_scale": 3}, "bf16": {"check_grad_overflow": false},
      "training": {"eval_interval": 1, "early_stopping": {"patience": 3, "min_delta": 0.25},
                   "spike_guard": {"action": "stop", "deviations": 4.5, "window": 2}}})"});
  CHECK(s.loss_scale.on_overflow == OnOverflow::retry);
  CHECK(s.loss_scale.loss_scale_window == 7);
  CHECK(s.loss_scale.consecutive_hysteresis);
  CHECK(s.loss_scale.min_loss_scale == 3.0);
  CHECK_FALSE(s.bf16_check_grad_overflow);
  CHECK(s.training.early_stopping.patience == 3);
  CHECK(s.training.early_stopping.min_delta == 0.25);
  CHECK(s.training.spike_guard.action == SpikeAction::stop);
  CHECK(s.training.spike_guard.deviations == 4.5);
  CHECK(s.training.spike_guard.window == 2);
  // A section that is null is off.
  CHECK(settings_of({tiny_gpt(), R"({"training": {"early_stopping": null, "spike_guard": null}})"})
            .training.spike_guard.action == SpikeAction::off);
}
