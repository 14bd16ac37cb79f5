// What a schedule says reaches the optimizer, in applied steps only.
#include <cmath>

#include "catch_compat.h"
#include "comm/threads.h"
#include "device/cpu/cpu_device.h"
#include "device/device_decorator.h"
#include "tiny_models.h"
#include "train/compute.h"
#include "train/plan.h"
#include "train/session.h"

using namespace zt;
using namespace zt::test;

namespace {

// Keeps the optimizer's operations.
class RecordingDevice final : public DeviceDecorator {
 public:
  using DeviceDecorator::DeviceDecorator;
  void run(Stream stream, const Operation& operation) override {
    if (const auto* adam = std::get_if<AdamUpdate>(&operation)) adam_updates.push_back(*adam);
    if (const auto* sgd = std::get_if<SgdUpdate>(&operation)) sgd_updates.push_back(*sgd);
    inner().run(stream, operation);
  }
  std::vector<AdamUpdate> adam_updates;
  std::vector<SgdUpdate> sgd_updates;
};

struct Step {
  StepOutcome outcome;
  std::int64_t applied_before = 0;
  std::vector<AdamUpdate> adam_updates;
  std::vector<SgdUpdate> sgd_updates;
};

std::vector<Step> train(const Settings& settings) {
  const Dataset data = data_for(settings);
  std::vector<Step> steps;
  run_ranks_as_threads(1, 0, [&](Communicator& communicator) {
    const Plan plan = make_plan(settings, 0, 1, 0, scratch_of_device(settings.device));
    cpu::CpuDevice cpu(1);
    RecordingDevice device(cpu);
    for (const Operation& operation : plan.operations) device.prepare(operation);
    device.reserve_workspace();
    Session session(settings, device, communicator, data.training.get(), nullptr);
    session.initialize();
    while (session.steps().attempted < settings.training.max_steps) {
      Step step;
      step.applied_before = session.steps().applied;
      device.adam_updates.clear();
      device.sgd_updates.clear();
      step.outcome = session.train_step();
      step.adam_updates = device.adam_updates;
      step.sgd_updates = device.sgd_updates;
      steps.push_back(step);
    }
  });
  return steps;
}

// fp16 with a scale that is too high at first and grows too high again and again: steps are skipped before and between
// others.
Settings skipping_gpt() {
  Settings settings = with_batch(tiny_gpt(), 2, 1, 1);
  settings.precision.preset = "fp16";
  settings.loss_scale.initial_scale_power = 22;
  settings.loss_scale.loss_scale_window = 2;
  settings.loss_scale.hysteresis = 1;
  settings.training.max_steps = 40;
  settings.scheduler.type = "OneCycle";
  settings.scheduler.cycle_min_lr = 1e-4;
  settings.scheduler.cycle_max_lr = 1e-3;
  settings.scheduler.cycle_first_step_size = 6;
  settings.scheduler.cycle_second_step_size = 9;
  settings.scheduler.decay_step_size = 4;
  settings.scheduler.decay_lr_rate = 0.5;
  settings.scheduler.decay_mom_rate = 0.01;
  return settings;
}

// Calls check(step, values) for the applied steps, after seeing to it that skipped ones stand among them and that each
// had the rate of its place among the applied.
template <typename Check>
void for_applied(const Settings& settings, const std::vector<Step>& steps, const Check& check) {
  int skipped_between = 0, applied = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    INFO("attempted step " << i + 1 << ", " << step.applied_before << " applied before");
    const ScheduledValues values =
        scheduled_values(settings.scheduler, settings.optimizer.learning_rate, step.applied_before);
    CHECK(step.outcome.learning_rate == values.learning_rate);
    CHECK(step.applied_before == applied);
    if (step.outcome.decision.verdict != Verdict::apply) {
      CHECK(step.outcome.decision.verdict == Verdict::skip);
      CHECK(step.adam_updates.empty());
      CHECK(step.sgd_updates.empty());
      skipped_between += applied > 0 ? 1 : 0;
      continue;
    }
    ++applied;
    check(step, values);
  }
  CHECK(skipped_between >= 2);
  CHECK(applied > 16);  // past the cycle
}

}  // namespace

TEST_CASE("Adam has rate, betas and corrections by the betas of its step, and skipped steps move none of them") {
  const Settings settings = skipping_gpt();
  for_applied(settings, train(settings), [&](const Step& step, const ScheduledValues& values) {
    const double beta1 = values.momentum.value_or(-1.0);
    const auto number = static_cast<double>(step.applied_before + 1);
    CHECK(!step.adam_updates.empty());
    for (const AdamUpdate& update : step.adam_updates) {
      CHECK(update.learning_rate == static_cast<float>(values.learning_rate));
      CHECK(update.one_minus_beta1 == static_cast<float>(1.0 - beta1));
      CHECK(update.beta2 == 0.99F);
      CHECK(update.one_minus_beta2 == static_cast<float>(1.0 - 0.99));
      CHECK(update.step_size == static_cast<float>(values.learning_rate / (1.0 - std::pow(beta1, number))));
      CHECK(update.bias_correction2_sqrt == static_cast<float>(std::sqrt(1.0 - std::pow(0.99, number))));
    }
  });
}

TEST_CASE("SGD has the schedule's momentum, and its own where the schedule leaves momentum alone") {
  Settings settings = skipping_gpt();
  settings.optimizer = {.type = "SGD", .learning_rate = 1e-3, .momentum = 0.5};
  for_applied(settings, train(settings), [&](const Step& step, const ScheduledValues& values) {
    CHECK(!step.sgd_updates.empty());
    for (const SgdUpdate& update : step.sgd_updates) {
      CHECK(update.momentum == static_cast<float>(values.momentum.value_or(-1.0)));
      CHECK(update.learning_rate == static_cast<float>(values.learning_rate));
      CHECK(update.first_step == (step.applied_before == 0));
    }
  });
  settings.scheduler.cycle_momentum = false;
  for_applied(settings, train(settings), [&](const Step& step, const ScheduledValues&) {
    for (const SgdUpdate& update : step.sgd_updates) CHECK(update.momentum == 0.5F);
  });
}

TEST_CASE("Weight decay leaves alone the kinds of tensors that are excluded, and no others") {
  for (const bool biases : {true, false}) {
    for (const bool norms : {true, false}) {
      Settings settings = with_batch(tiny_gpt(), 2, 1, 1);
      settings.training.max_steps = 1;
      settings.optimizer.decay_biases = biases;
      settings.optimizer.decay_norms = norms;
      const std::vector<Step> steps = train(settings);
      // One update a tensor, unit by unit, matrices before vectors: three blocks of four matrices, four vectors of
      // norms and four biases, and the embedding with two tables and the final norm.
      std::size_t decaying = 0;
      for (const AdamUpdate& update : steps.at(0).adam_updates) decaying += update.weight_decay != 0.0F ? 1 : 0;
      CHECK(steps.at(0).adam_updates.size() == 3U * 12U + 4U);
      CHECK(decaying == 3U * 4U + 2U + (biases ? 3U * 4U : 0U) + (norms ? 3U * 4U + 2U : 0U));
    }
    Settings settings = with_batch(tiny_mlp(), 2, 1, 1);
    settings.training.max_steps = 1;
    settings.optimizer.decay_biases = biases;
    std::size_t decaying = 0;
    const std::vector<Step> steps = train(settings);
    for (const SgdUpdate& update : steps.at(0).sgd_updates) decaying += update.weight_decay != 0.0F ? 1 : 0;
    CHECK(steps.at(0).sgd_updates.size() == 6);
    CHECK(decaying == (biases ? 6U : 3U));
  }
}
