// What becomes of a step, on whole runs: retried, skipped, stopped; the same at every stage and number of ranks.
#include <algorithm>
#include <cmath>
#include <mutex>

#include "catch_compat.h"
#include "comm/threads.h"
#include "device/cpu/cpu_device.h"
#include "tiny_models.h"
#include "train/compute.h"
#include "train/curve.h"
#include "train/diagnosis.h"
#include "train/session.h"

using namespace zt;
using namespace zt::test;

namespace {

std::int64_t retries_of(const Curve& curve) {
  std::int64_t retries = 0;
  for (const CurveStep& step : curve.steps) retries += step.retries;
  return retries;
}

std::int64_t skipped_for(const Curve& curve, SkipReason reason) {
  return std::count_if(curve.steps.begin(), curve.steps.end(),
                       [&](const CurveStep& step) { return step.skipped && step.reason == reason; });
}

void require_plan_is_kept(const Curve& curve) {
  CHECK(curve.held == curve.plan.memory);
  CHECK(curve.elements_sent == curve.elements_planned);
}

// The curve of one rank at stage 0, after all stages and numbers of ranks have given the same.
Curve require_one_curve(const Settings& settings, const std::vector<int>& ranks) {
  const Dataset data = data_for(settings);
  const Curve reference = trace_curve(at(settings, 1, 0), data, 1);
  require_plan_is_kept(reference);
  for (const int count : ranks) {
    for (int stage = 0; stage <= 3; ++stage) {
      INFO("stage " << stage << ", " << count << " ranks");
      const Curve curve = trace_curve(at(settings, count, stage), data, count);
      CHECK(curve.same_bits(reference));
      require_plan_is_kept(curve);
    }
  }
  return reference;
}

Settings fp16_gpt() {
  Settings settings = with_batch(tiny_gpt(), 2, 12, 1);
  settings.precision.preset = "fp16";
  settings.precision.grad_accum_dtype = "fp32";
  settings.model.gpt.embd_pdrop = settings.model.gpt.resid_pdrop = settings.model.gpt.attn_pdrop = 0.1;
  settings.loss_scale.on_overflow = OnOverflow::retry;
  return settings;
}

// SGD without momentum, so that a weight moves by lr times the gradient.
Settings fp16_mlp() {
  Settings settings = with_batch(tiny_mlp(), 4, 1, 1);
  settings.precision.preset = "fp16";
  settings.optimizer.momentum = 0.0;
  settings.gradient_clipping = 0.0;
  return settings;
}

}  // namespace

TEST_CASE("Retried steps lose no sample: from 2^32 every stage and number of ranks applies every step") {
  Settings settings = fp16_gpt();
  settings.loss_scale.loss_scale_window = 2;
  settings.training.max_steps = 8;
  const Curve curve = require_one_curve(settings, {1, 2, 3, 4});
  REQUIRE(curve.steps.size() == 8);
  for (const CurveStep& step : curve.steps) CHECK_FALSE(step.skipped);
  // The first step comes down a factor of two at a time, whatever the hysteresis is; a growth may overflow later.
  const CurveStep& first = curve.steps.front();
  CHECK(first.retries >= 8);
  CHECK(first.scale == std::exp2(32 - static_cast<double>(first.retries)));
  CHECK(retries_of(curve) > first.retries);
}

TEST_CASE("A retried run has the bits of one that started at the scale that fits") {
  Settings settings = fp16_gpt();
  settings.training.max_steps = 4;
  const Dataset data = data_for(settings);
  const Curve retried = trace_curve(at(settings, 2, 3), data, 2);
  REQUIRE(retries_of(retried) == retried.steps.front().retries);
  REQUIRE(retries_of(retried) > 0);
  settings.loss_scale.initial_scale_power = 32 - retries_of(retried);
  const Curve fitting = trace_curve(at(settings, 2, 3), data, 2);
  CHECK(retries_of(fitting) == 0);
  CHECK(fitting.checksum == retried.checksum);
  CHECK(fitting.validation_loss == retried.validation_loss);
  for (std::size_t step = 0; step < 4; ++step) {
    CHECK(fitting.steps[step].loss == retried.steps[step].loss);
    CHECK(fitting.steps[step].grad_norm == retried.steps[step].grad_norm);
  }
  // Skipping takes other samples for its first update.
  settings.loss_scale.initial_scale_power = 32;
  settings.loss_scale.on_overflow = OnOverflow::skip;
  CHECK(trace_curve(at(settings, 2, 3), data, 2).checksum != retried.checksum);
}

TEST_CASE("A retry with nothing left to lower ends the run, planned traffic and all") {
  Settings settings = fp16_gpt();
  settings.loss_scale.min_loss_scale = 0x1p30;
  const Curve curve = require_one_curve(settings, {2, 3});
  REQUIRE(curve.steps.size() == 1);
  CHECK(curve.steps.front().skipped);
  CHECK(curve.steps.front().retries == 2);
  CHECK(curve.steps.front().scale == 0x1p30);
}

TEST_CASE("Streams that run late and nodes of one rank change nothing in a retried step") {
  const Settings settings = at(fp16_gpt(), 2, 3);
  const Dataset data = data_for(settings);
  const Curve reference = trace_curve(settings, data, 2);
  REQUIRE(retries_of(reference) > 0);
  CHECK(trace_curve(settings, data, 2, {.lazy = true}).same_bits(reference));
  CHECK(trace_curve(settings, data, 2, {.compute_late = true}).same_bits(reference));
  const Curve nodes = trace_curve(settings, data, 2, {.ranks_per_node = 1});
  CHECK(nodes.same_bits(reference));
  require_plan_is_kept(nodes);
}

TEST_CASE("Gradients are divided by the scale that they were made with, in the step that doubles it, too") {
  for (const LossScaleRule rule : {LossScaleRule::deepspeed, LossScaleRule::apex}) {
    for (int stage = 0; stage <= 3; ++stage) {
      INFO("stage " << stage);
      Settings settings = at(fp16_mlp(), 1, stage);
      settings.loss_scale.rule = rule;
      settings.loss_scale.initial_scale_power = 8;
      settings.loss_scale.loss_scale_window = 1;
      const Dataset data = data_for(settings);
      const int growing = rule == LossScaleRule::apex ? 1 : 2;  // the first step that doubles the scale
      settings.training.max_steps = growing + 1;
      CHECK(trace_curve(settings, data, 1).steps.back().scale == 512.0);
      // Up to and with that step a static scale of 256 does the same: not half of it.
      settings.training.max_steps = growing;
      const Curve dynamic = trace_curve(settings, data, 1);
      settings.loss_scale.loss_scale = 256.0;
      CHECK(trace_curve(settings, data, 1).same_bits(dynamic));
      settings.optimizer.learning_rate /= 2;
      CHECK(trace_curve(settings, data, 1).checksum != dynamic.checksum);
    }
  }
}

TEST_CASE("A spike is skipped by the same steps at every stage and number of ranks, and moves nothing") {
  Settings settings = with_batch(tiny_mlp(), 2, 6, 1);
  settings.optimizer.momentum = 0.0;
  settings.gradient_clipping = 0.0;
  settings.optimizer.weight_decay = 0.0;
  settings.scheduler.type = "WarmupLR";
  settings.scheduler.warmup_type = "linear";
  settings.scheduler.warmup_min_lr = 0.01;
  settings.scheduler.warmup_max_lr = 20.0;  // much too high
  settings.scheduler.warmup_num_steps = 30;
  settings.training.max_steps = 30;
  settings.training.spike_guard = {.action = SpikeAction::skip, .deviations = 4.0, .window = 5};
  const Curve curve = require_one_curve(settings, {2, 3});
  const std::int64_t spikes =
      skipped_for(curve, SkipReason::loss_spike) + skipped_for(curve, SkipReason::grad_norm_spike);
  CHECK(spikes > 0);
  const auto first =
      std::find_if(curve.steps.begin(), curve.steps.end(), [](const auto& step) { return step.skipped; });
  REQUIRE(first != curve.steps.end());
  CHECK(std::isfinite(first->grad_norm));
  // The weights are those of a run that ended before the step, and its schedule stands where it stood.
  Settings shorter = settings;
  shorter.training.max_steps = first - curve.steps.begin();
  const Dataset data = data_for(settings);
  const Curve before = trace_curve(at(shorter, 1, 2), data, 1);
  ++shorter.training.max_steps;
  CHECK(trace_curve(at(shorter, 1, 2), data, 1).checksum == before.checksum);
  // Without the guard the update is made.
  shorter.training.spike_guard.action = SpikeAction::off;
  CHECK(trace_curve(at(shorter, 1, 2), data, 1).checksum != before.checksum);
  // The guard that stops ends there.
  settings.training.spike_guard.action = SpikeAction::stop;
  const Curve stopped = require_one_curve(settings, {3});
  CHECK(stopped.steps.size() == static_cast<std::size_t>(shorter.training.max_steps));
  CHECK(stopped.checksum == before.checksum);
}

namespace {

// A linear network whose hidden values are so large that the gradient of the second matrix leaves the range of bf16
// and fp32, while the loss does not.
StepOutcome overflowing_step(const Settings& settings, int ranks, std::string* culprit, bool* weights_kept) {
  const Dataset data = data_for(settings);
  StepOutcome result;
  std::mutex mutex;
  run_ranks_as_threads(ranks, 0, [&](Communicator& communicator) {
    const Plan plan = make_plan(settings, communicator.rank(), ranks, 0, scratch_of_device(settings.device));
    cpu::CpuDevice device(1);
    for (const Operation& operation : plan.operations) device.prepare(operation);
    device.reserve_workspace();
    Session session(settings, device, communicator, data.training.get(), nullptr);
    session.initialize();
    // The weights may be changed when all ranks have gathered the initial ones.
    std::int64_t nothing = 0;
    communicator.all_reduce_sum({&nothing, 1});
    visit_weights(session.engine(), session.states(), [](const TensorPlace& tensor, std::int64_t, TensorView values) {
      const float factor = tensor.name.starts_with("layers.0") ? 1e22F : 1e-4F;
      for (std::int64_t i = 0; i < values.count; ++i) values.as<float>()[i] *= factor;
    });
    publish_weights(session.engine(), session.states());
    const std::uint64_t before = session.weights_checksum();
    const StepOutcome outcome = session.train_step();
    const bool kept = session.weights_checksum() == before;
    const std::string found = diagnose_not_finite(session, device, outcome.scale);
    const std::lock_guard lock(mutex);
    if (communicator.rank() != 0) return;
    result = outcome;
    *weights_kept = kept;
    *culprit = found;
  });
  return result;
}

}  // namespace

TEST_CASE("In bf16 gradients that are not finite skip the step or stop the run; in fp32 they stop it") {
  Settings settings = tiny_mlp();
  settings.model.mlp.layers = {6, 5, 2};
  settings.model.mlp.activation = "identity";
  settings.model.mlp.bias = false;
  for (const DType dtype : {DType::bf16, DType::f32}) {
    for (const bool checks : {true, false}) {
      for (const int ranks : {1, 3}) {
        for (const auto& [stage, order] : {std::pair{0, AccumulationOrder::global},
                                           {1, AccumulationOrder::global},
                                           {2, AccumulationOrder::global},
                                           {3, AccumulationOrder::global},
                                           {0, AccumulationOrder::local},
                                           {1, AccumulationOrder::local}}) {
          INFO("stage " << stage << ", " << name_of(order) << " order, " << ranks << " ranks, " << name_of(dtype)
                        << ", check " << checks);
          Settings here = with_batch(settings, 2, 2, ranks);
          here.training.accumulation_order = order;
          here.precision.preset = name_of(dtype);
          here.bf16_check_grad_overflow = checks;
          here.zero.stage = stage;
          std::string culprit;
          bool weights_kept = false;
          const StepOutcome outcome = overflowing_step(here, ranks, &culprit, &weights_kept);
          CHECK(outcome.agreed.losses_not_finite == 0);
          CHECK(outcome.agreed.gradients_not_finite > 0);
          CHECK(outcome.decision.reason == SkipReason::gradient_overflow);
          const bool skips = dtype == DType::bf16 && checks;
          CHECK(outcome.decision.verdict == (skips ? Verdict::skip : Verdict::fail));
          CHECK(outcome.decision.failure == (skips ? Failure::none : Failure::unscaled));
          CHECK(std::isnan(outcome.grad_norm));
          CHECK(std::isfinite(outcome.loss));
          CHECK(weights_kept);
          CHECK(culprit.find("gradient of layers.1.weight") != std::string::npos);
        }
      }
    }
  }
}
