// The program from the outside: early stopping and the spike guard.
#include <optional>

#include "program_support.h"

using namespace zt::test;

namespace {

// A rate that rises until the loss jumps.
const char* const diverging = R"({
  "train_batch_size": 12, "train_micro_batch_size_per_gpu": 2,
  "optimizer": { "type": "SGD", "params": { "lr": 20.0 } },
  "scheduler": { "type": "WarmupLR", "params": { "warmup_type": "linear", "warmup_min_lr": 0.01, "warmup_max_lr": 20.0,
                                                 "warmup_num_steps": 30 } },
  "model": { "type": "mlp", "layers": [20, 33, 9, 3], "activation": "gelu" },
  "data": { "type": "synthetic", "task": "regression", "samples": 400 },
  "training": { "max_steps": 12, "spike_guard": { "action": "skip", "deviations": 4, "window": 5 } },
  "device": { "threads": 1 }
})";

}  // namespace

TEST_CASE("early stopping ends a run as completed, says why, and keeps the best evaluation") {
  const Workplace place;
  std::string first;
  for (const int number : {1, 2}) {
    CAPTURE(number);
    // No step lowers the loss by 10: after the first evaluation two more bring no improvement.
    const ProgramResult result =
        place.run(ranks(number) + Arguments{"--set", R"(training.early_stopping={"patience": 2, "min_delta": 10})",
                                            "--set", "training.max_steps=50", "--overwrite"});
    check_completes(result);
    CHECK(count_of(result.err,
                   "early stopping after step 6: the validation loss has not improved by more than 10 in "
                   "2 evaluation(s) (training.early_stopping)\n") == 1);
    const Json summary = json_of(place.file("run/summary.json"));
    CHECK(differences(summary_shape("tokens_per_second", true), summary) == none);
    CHECK(summary.at("status") == "completed");
    CHECK(summary.at("stop_reason") == "early_stopping");
    CHECK(summary.at("steps").at("attempted") == 6);
    CHECK(summary.at("weights_checksum").is_string());
    double best = 1e9;
    std::int64_t best_step = 0;
    int evaluations = 0;
    for (const Json& record : metrics_of(place.file("run"))) {
      if (record.at("kind") != "eval") continue;
      ++evaluations;
      if (record.at("loss").get<double>() >= best) continue;
      best = record.at("loss").get<double>();
      best_step = record.at("step").get<std::int64_t>();
    }
    CHECK(evaluations == 3);
    CHECK(summary.at("best") == Json({{"step", best_step}, {"validation_loss", best}}));
    CHECK(result.err.find(" after step " + std::to_string(best_step) + "\n") != std::string::npos);
    const std::string curve = curve_of(place.file("run"));
    if (first.empty()) first = curve;
    CHECK(curve == first);
  }
}

TEST_CASE("a run whose validation loss falls is not stopped early") {
  const Workplace place;
  check_completes(place.run({"--set", "training.early_stopping.patience=2"}));
  CHECK(json_of(place.file("run/summary.json")).at("stop_reason") == "max_steps");
  check_completes(place.run({"--set", "training.max_epochs=1", "--set", "training.max_steps=50", "--overwrite"}));
  CHECK(json_of(place.file("run/summary.json")).at("stop_reason") == "max_epochs");
}

TEST_CASE("the spike guard skips the same steps on all ranks, with value and range") {
  const Workplace place(diverging);
  std::string first;
  for (const auto& [number, level] : {std::pair{1, 0}, {2, 1}, {3, 3}}) {
    CAPTURE(number, level);
    const ProgramResult result = place.run(ranks(number) + stage(level) + Arguments{"--overwrite"});
    check_completes(result);
    check_memory_and_communication(place.file("run"));
    std::int64_t spikes = 0;
    std::optional<double> rate_of_skipped;
    for (const Json& record : metrics_of(place.file("run"))) {
      // The schedule moves with applied steps only.
      if (rate_of_skipped) CHECK(record.at("learning_rate") == *rate_of_skipped);
      rate_of_skipped.reset();
      if (record.at("skipped").get<bool>()) {
        ++spikes;
        rate_of_skipped = record.at("learning_rate").get<double>();
        CHECK(record.at("step") > 5);
        CHECK(record.at("grad_norm").is_number_float());
        const std::string reason = record.at("skip_reason");
        CHECK((reason == "loss_spike" || reason == "grad_norm_spike"));
        const std::string line = "step " + std::to_string(record.at("step").get<std::int64_t>()) + " skipped: the " +
                                 (reason == "loss_spike" ? "loss " : "gradient norm ");
        CHECK(count_of(result.err, line) == 1);
      }
    }
    CHECK(spikes > 0);
    CHECK(std::regex_search(
        result.err, std::regex("is above its running range, [0-9.]+ \\+ 4 x [0-9.]+ = [0-9.]+; 1 in a row, 10 end")));
    const Json summary = json_of(place.file("run/summary.json"));
    CHECK(summary.at("steps").at("skipped") == spikes);
    CHECK(summary.at("skipped_for").at("loss_spike").get<std::int64_t>() +
              summary.at("skipped_for").at("grad_norm_spike").get<std::int64_t>() ==
          spikes);
    const std::string curve = curve_of(place.file("run"));
    if (first.empty()) first = curve;
    CHECK(curve == first);
  }
}

TEST_CASE("the spike guard ends a run that it is to stop, and one that would be skipped for ever") {
  const Workplace place(diverging);
  const ProgramResult stopped = place.run(ranks(2) + Arguments{"--set", "training.spike_guard.action=stop"});
  check_fails(stopped, 1, "is above its running range, ");
  CHECK(stopped.err.find("training.spike_guard.action \"stop\" ends the run before the update") != std::string::npos);
  const Json summary = json_of(place.file("run/summary.json"));
  CHECK(summary.at("steps").at("skipped") == 1);
  CHECK(metrics_of(place.file("run")).back().at("skipped") == true);

  const ProgramResult endless_skips = place.run({"--set", "training.max_steps=1000", "--overwrite"});
  check_fails(endless_skips, 1, ": 10 steps in a row were skipped, the last one because the ");
  CHECK(endless_skips.err.find("widen the range (training.spike_guard.deviations)") != std::string::npos);
  CHECK(count_of(endless_skips.err, "; 9 in a row, 10 end the run") == 1);
}
