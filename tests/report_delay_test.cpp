// A loss that is read a step late changes no bit: the device decides as the host does.
#include "catch_compat.h"
#include "tiny_models.h"
#include "train/curve.h"

using namespace zt;
using namespace zt::test;

namespace {

Settings delayed(Settings settings) {
  settings.training.report_delay = 1;
  return settings;
}

Settings in_precision(Settings settings, const std::string& preset) {
  settings.precision.preset = preset;
  settings.bf16_check_grad_overflow = false;
  settings.training.max_steps = 5;
  return settings;
}

void require_same_curve(const Settings& settings, int ranks, const CurveOptions& options = {}) {
  const Dataset data = data_for(settings);
  const Curve at_once = trace_curve(settings, data, ranks);
  const Curve late = trace_curve(delayed(settings), data, ranks, options);
  CHECK(late.same_bits(at_once));
  CHECK(late.elements_sent == at_once.elements_sent);
  CHECK(late.elements_sent == late.elements_planned);
  CHECK(late.held == late.plan.memory);
}

}  // namespace

TEST_CASE("A loss read a step late leaves the curve as it is: stages, ranks, accumulation, clipping, optimizers") {
  for (const char* preset : {"fp32", "bf16"}) {
    for (const int ranks : {1, 2, 3}) {
      for (int stage = 0; stage <= 3; ++stage) {
        INFO(preset << ", " << ranks << " ranks, stage " << stage);
        Settings settings = in_precision(with_batch(tiny_gpt(), 1, 2, ranks), preset);
        settings.zero.stage = stage;
        settings.gradient_clipping = stage % 2 == 0 ? 0.5 : 0.0;
        require_same_curve(settings, ranks);
      }
      for (const char* optimizer : {"SGD", "Adagrad", "Adam", "Lion", "Lamb", "Muon"}) {
        INFO(preset << ", " << ranks << " ranks, " << optimizer);
        Settings settings = in_precision(with_batch(tiny_mlp(), 2, 1, ranks), preset);
        settings.optimizer.type = optimizer;
        require_same_curve(settings, ranks);
      }
    }
  }
}

TEST_CASE("A loss read a step late is the same where operations run as late as they may") {
  const Settings settings = in_precision(with_batch(tiny_gpt(), 1, 2, 2), "fp32");
  for (int stage = 0; stage <= 3; ++stage) {
    INFO("stage " << stage);
    require_same_curve(at(settings, 2, stage), 2, {.lazy = true});
    require_same_curve(at(settings, 2, stage), 2, {.compute_late = true});
  }
}

TEST_CASE("A run that breaks ends at the same step with the weights of the step before, read late or at once") {
  Settings settings = in_precision(with_batch(tiny_mlp(), 2, 1, 2), "fp32");
  settings.optimizer.learning_rate = 1e9;
  settings.gradient_clipping = 0.0;
  settings.training.max_steps = 12;
  settings.training.eval_interval = 0;
  const Dataset data = data_for(settings);
  const Curve at_once = trace_curve(settings, data, 2);
  const Curve late = trace_curve(delayed(settings), data, 2);
  REQUIRE(at_once.steps.size() < 12);
  CHECK(at_once.steps.back().skipped);
  CHECK(late.same_bits(at_once));
}
