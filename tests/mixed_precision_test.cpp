// The steps of mixed precision, each beside PyTorch's: configs/mixed_precision.json as it ships, table, seed and all,
// against tests/golden/mixed_precision.golden (scripts/golden/make_golden.py).
#include <cmath>
#include <map>

#include "catch_compat.h"
#include "comm/threads.h"
#include "config/resolve.h"
#include "data/source.h"
#include "device/cpu/cpu_device.h"
#include "golden_file.h"
#include "train/compute.h"
#include "train/session.h"

using namespace zt;

namespace {

struct Steps {
  std::vector<double> losses, norms;
  std::map<std::string, std::vector<std::vector<double>>> weights;  // by tensor: after each step, every n-th element
};

Steps train(const golden::GoldenFile& file, const std::string& run) {
  ResolveOptions options;
  options.current_directory = ZEROTRAIN_SOURCE_DIR;
  const double rate = file.header().at("runs").at(run).at("lr");
  Settings settings =
      resolve_config({"configs/mixed_precision.json"}, {"optimizer.params.lr=" + std::to_string(rate)}, 1, options)
          .settings;
  settings.device.threads = 1;
  const Dataset dataset = open_dataset(settings);
  Steps steps;
  run_ranks_as_threads(1, 0, [&](Communicator& communicator) {
    const Plan plan = make_plan(settings, 0, 1, 0, scratch_of_device(settings.device));
    cpu::CpuDevice device(1);
    for (const Operation& operation : plan.operations) device.prepare(operation);
    device.reserve_workspace();
    Session session(settings, device, communicator, dataset.training.get(), nullptr);
    session.initialize();
    const int count = file.header().at("steps");
    for (int step = 0; step < count; ++step) {
      const StepOutcome outcome = session.train_step();
      REQUIRE(outcome.decision.verdict == Verdict::apply);
      REQUIRE(outcome.scale == file.header().at("loss_scale").get<double>());
      steps.losses.push_back(outcome.agreed.loss_sum / static_cast<double>(session.losses_per_step()));
      steps.norms.push_back(outcome.grad_norm);
      visit_weights(session.engine(), session.states(),
                    [&](const TensorPlace& tensor, std::int64_t, TensorView values) {
                      std::vector<double>& after = steps.weights[tensor.name].emplace_back();
                      const std::int64_t stride = std::max<std::int64_t>(1, values.count / 16);
                      for (std::int64_t i = 0; i < values.count; i += stride) {
                        after.push_back(static_cast<double>(values.as<float>()[i]));
                      }
                    });
    }
  });
  return steps;
}

double rms_distance(const std::vector<double>& a, const float* b) {
  double squares = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) squares += std::pow(a[i] - static_cast<double>(b[i]), 2.0);
  return std::sqrt(squares / static_cast<double>(a.size()));
}

}  // namespace

TEST_CASE("Losses, norms and weights of mixed precision are PyTorch's, step by step, to the rounding of fp16") {
  const golden::GoldenFile file("mixed_precision");
  // The largest prediction is near 9.5: one unit in the last place of fp16 between 8 and 16.
  constexpr double unit = 0x1p-7;
  constexpr double rounding = 0x1p-11;  // relative, of a value rounded to fp16
  for (const std::string run : {"stated", "half"}) {
    const Steps ours = train(file, run);
    const std::vector<double> losses = file.doubles("loss/" + run);
    const std::vector<double> norms = file.doubles("norm/" + run);
    const std::vector<double> losses32 = file.doubles("loss32/" + run);
    REQUIRE(ours.losses.size() == losses.size());
    const double norm_per_unit = norms[0] / std::sqrt(losses[0]);
    bool fp32_is_told_apart = false;
    for (std::size_t step = 0; step < losses.size(); ++step) {
      INFO(run << ", step " << step + 1 << ": loss " << ours.losses[step] << " and " << losses[step] << ", norm "
               << ours.norms[step] << " and " << norms[step]);
      // Predictions that are one unit off move the mean of squares by so much.
      const double allowed = 2.0 * std::sqrt(losses[step]) * unit + unit * unit + rounding * losses[step];
      CHECK(std::abs(ours.losses[step] - losses[step]) <= allowed);
      CHECK(std::abs(ours.norms[step] - norms[step]) <= norm_per_unit * unit + rounding * norms[step]);
      fp32_is_told_apart = fp32_is_told_apart || std::abs(losses32[step] - losses[step]) > allowed;
    }
    if (run == "stated") CHECK(fp32_is_told_apart);  // the bounds are not so wide that fp32 would pass
    for (const auto& [tensor, after] : ours.weights) {
      const std::vector<float> theirs = file.floats("weights/" + run + "/" + tensor);
      const std::vector<float> single = file.floats("weights32/" + run + "/" + tensor);
      REQUIRE(theirs.size() == after.size() * after[0].size());
      // The yardstick: how far fp16 has led PyTorch itself from fp32 by then.
      double farthest = 0.0;
      for (std::size_t step = 0; step < after.size(); ++step) {
        INFO(run << ", " << tensor << " after step " << step + 1);
        const std::size_t first = step * after[step].size();
        const std::vector<double> reference(theirs.begin() + static_cast<std::ptrdiff_t>(first),
                                            theirs.begin() + static_cast<std::ptrdiff_t>(first + after[step].size()));
        farthest = std::max(farthest, rms_distance(reference, single.data() + first));
        CHECK(farthest > 0.0);
        CHECK(rms_distance(after[step], theirs.data() + first) <= farthest);
      }
    }
  }
}

TEST_CASE(
    "The four targets are learned: the loss falls from 24 to nothing at the config's rate, to below 5 at twice that") {
  const golden::GoldenFile file("mixed_precision");
  const Steps stated = train(file, "stated");
  CHECK(stated.losses.front() > 20.0);
  CHECK(stated.losses.back() < 5.0);
  CHECK(train(file, "half").losses.back() < 1e-5);
}
