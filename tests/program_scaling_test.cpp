// The program from the outside: overflows, values that are not finite, guards.
#include "program_support.h"

using namespace zt::test;

TEST_CASE("a skipped step has no gradient norm, and the summary counts it") {
  const Workplace place;
  const ProgramResult result = place.run(fp16);
  check_completes(result);
  const Json summary = json_of(place.file("run/summary.json"));
  CHECK(differences(summary_shape("tokens_per_second", true), summary) == none);
  CHECK(summary.at("run").at("precision") == "fp16");
  std::int64_t skipped = 0;
  std::int64_t step = 0;
  double next_scale = std::exp2(20);
  for (const Json& record : metrics_of(place.file("run"))) {
    if (record.at("kind") != "train") continue;
    CHECK(record.at("step") == ++step);
    CHECK(record.at("samples") == 6 * step);
    CHECK(record.at("tokens") == 48 * step);
    CHECK(record.at("loss_scale").get<double>() == next_scale);
    const bool is_skipped = record.at("skipped").get<bool>();
    CHECK(record.at("grad_norm").is_null() == is_skipped);
    CHECK_FALSE(record.contains("not_finite"));
    CHECK(record.contains("skip_reason") == is_skipped);
    if (is_skipped) CHECK(record.at("skip_reason") == "gradient_overflow");
    if (is_skipped) ++skipped;
    if (is_skipped) next_scale /= 2.0;
  }
  CHECK(skipped > 0);
  CHECK(summary.at("steps") == Json({{"attempted", 6}, {"applied", 6 - skipped}, {"skipped", skipped}}));
  CHECK(summary.at("skipped_for").at("gradient_overflow") == skipped);
  CHECK(summary.at("final").at("loss_scale").get<double>() == next_scale);
  CHECK(count_of(result.err, "skipped: gradients overflowed at loss scale") == skipped);
}

TEST_CASE("a run in which no step was applied is completed, with a warning") {
  const Workplace place;
  const ProgramResult result = place.run({"--set", "fp16.enabled=true", "--quiet"});
  check_completes(result);
  CHECK(result.err.starts_with("warning: no step was applied: all 4 "));
  CHECK(count_of(result.err, "\n") == 1);
  const Json summary = json_of(place.file("run/summary.json"));
  CHECK(summary.at("status") == "completed");
  CHECK(summary.at("steps") == Json({{"attempted", 4}, {"applied", 0}, {"skipped", 4}}));
}

TEST_CASE("a loss that is not finite ends the run with code 1, and step and tensor are named") {
  for (const int number : {1, 2}) {
    CAPTURE(number);
    const Workplace place;
    const ProgramResult result =
        place.run(ranks(number) + Arguments{"--set", R"(optimizer={"type": "SGD", "params": {"lr": 1e30}})"});
    check_fails(result, 1, "zerotrain: step 2: the loss is not finite; ");
    CHECK(std::regex_search(result.err, std::regex("at element [0-9]+ of (h\\.[01]|wte|wpe|ln_f)\\.[a-z_.]+ ")));
    const Json summary = json_of(place.file("run/summary.json"));
    CHECK(summary.at("status") == "failed");
    CHECK(result.err.find("zerotrain: " + summary.at("error").get<std::string>() + "\n") != std::string::npos);
    CHECK(summary.at("final").at("loss").is_null());
    CHECK(summary.at("steps").at("attempted") == 2);
    const std::vector<Json> records = metrics_of(place.file("run"));
    REQUIRE(records.size() == 2);
    CHECK(records.back().at("step") == 2);
    CHECK(records.back().at("loss").is_null());
    CHECK(records.back().at("not_finite") == "nan");
  }
}

TEST_CASE("a run whose last numbers are not finite is not completed") {
  const Arguments wild = {"--set", R"(optimizer={"type": "SGD", "params": {"lr": 1e30}})"};
  for (const int number : {1, 2}) {
    const Workplace place;
    const Arguments one_step = wild + Arguments{"--set", "training.max_steps=1", "--set", "training.eval_interval=1"};
    check_fails(place.run(ranks(number) + one_step), 1, "the validation loss after step 1 is not finite");
    CHECK(json_of(place.file("run/summary.json")).at("status") == "failed");
  }
  const Workplace place;
  const Arguments bf16 = {"--set", "bf16.enabled=true",       "--set", "training.max_steps=2",
                          "--set", "training.eval_interval=0"};
  check_fails(place.run(wild + bf16), 1, "the run ended with step 2, whose loss is not finite");
  // Early stopping is no way out.
  const Arguments early = {"--set",      "bf16.enabled=true",
                           "--set",      "training.eval_interval=1",
                           "--set",      R"(training.early_stopping={"patience": 1})",
                           "--overwrite"};
  check_fails(place.run(wild + early), 1, "is not finite");
}

TEST_CASE("an overflow at the smallest loss scale ends the run with code 1") {
  const Workplace place;
  const ProgramResult result = place.run(ranks(2) + fp16 + Arguments{"--set", "fp16.min_loss_scale=524288"});
  check_fails(result, 1, "zerotrain: step 2: the loss scale is at its minimum, 524288 (fp16.min_loss_scale)");
  const Json summary = json_of(place.file("run/summary.json"));
  CHECK(summary.at("status") == "failed");
  CHECK(summary.at("error").get<std::string>().find("at its minimum") != std::string::npos);
  CHECK(summary.at("steps") == Json({{"attempted", 2}, {"applied", 0}, {"skipped", 2}}));
}

TEST_CASE("a retried step keeps its number and its data, has one line of metrics, and is no skipped step") {
  const Workplace place;
  std::string first;
  for (const auto& [number, level] : {std::pair{1, 0}, {2, 2}, {3, 3}}) {
    CAPTURE(number, level);
    const ProgramResult result =
        place.run(ranks(number) + stage(level) + fp16 + Arguments{"--set", "fp16.on_overflow=retry", "--overwrite"});
    check_completes(result);
    const std::string curve = curve_of(place.file("run"));
    if (first.empty()) first = curve;
    CHECK(curve == first);
    check_memory_and_communication(place.file("run"));  // the passes that were run again are planned, too

    std::int64_t step = 0;
    std::int64_t retries = 0;
    double scale = std::exp2(20);
    for (const Json& record : metrics_of(place.file("run"))) {
      if (record.at("kind") != "train") continue;
      CHECK(record.at("step") == ++step);
      CHECK(record.at("samples") == 6 * step);
      CHECK(record.at("skipped") == false);
      const std::int64_t here = record.value("retries", std::int64_t{0});
      for (std::int64_t retry = 0; retry < here; ++retry) scale /= 2.0;
      CHECK(record.at("loss_scale").get<double>() == scale);
      retries += here;
    }
    CHECK(step == 6);
    CHECK(retries > 0);
    const Json summary = json_of(place.file("run/summary.json"));
    CHECK(differences(summary_shape("tokens_per_second", true), summary) == none);
    CHECK(summary.at("retries") == retries);
    CHECK(summary.at("steps") == Json({{"attempted", 6}, {"applied", 6}, {"skipped", 0}}));
    CHECK(count_of(result.err, "gradients overflowed at loss scale ") == retries);
    CHECK(count_of(result.err, "step 1: gradients overflowed at loss scale 1048576, run again at 524288\n") == 1);
    CHECK(result.err.find(", " + std::to_string(retries) + " run(s) again after an overflow") != std::string::npos);
  }
}

TEST_CASE("a retry that has nothing left to lower ends the run with code 1") {
  const Workplace place;
  const ProgramResult result =
      place.run(fp16 + Arguments{"--set", "fp16.on_overflow=retry", "--set", "fp16.min_loss_scale=262144"});
  check_fails(result, 1, "zerotrain: step 1: the loss scale is at its minimum, 262144 (fp16.min_loss_scale)");
  const Json summary = json_of(place.file("run/summary.json"));
  CHECK(summary.at("retries") == 2);
  CHECK(summary.at("steps") == Json({{"attempted", 1}, {"applied", 0}, {"skipped", 1}}));
}

TEST_CASE("three losses in a row that are not finite end an fp16 or bf16 run, whatever the loss scale") {
  const Arguments diverging = {"--set", R"(optimizer={"type": "SGD", "params": {"lr": 1e30}})", "--set",
                               "training.eval_interval=0"};
  for (const Arguments& precision : {Arguments{"--set", "fp16.enabled=true", "--set", "fp16.initial_scale_power=8"},
                                     Arguments{"--set", "fp16.enabled=true", "--set", "fp16.initial_scale_power=8",
                                               "--set", "fp16.on_overflow=retry"},
                                     Arguments{"--set", "bf16.enabled=true"}}) {
    CAPTURE(precision);
    const Workplace place;
    const ProgramResult result = place.run(ranks(2) + precision + diverging);
    check_fails(result, 1, "zerotrain: step 4: the loss is not finite for 3 steps in a row; ");
    CHECK(std::regex_search(result.err, std::regex("at element [0-9]+ of (h\\.[01]|wte|wpe|ln_f)\\.[a-z_.]+ ")));
    CHECK(count_of(result.err, " skipped: the loss is not finite") == 2);
    CHECK(result.err.find("; 2 in a row, 3 end the run") != std::string::npos);
    const Json summary = json_of(place.file("run/summary.json"));
    CHECK(summary.at("status") == "failed");
    CHECK(summary.at("stop_reason") == "error");
    CHECK(summary.at("steps") == Json({{"attempted", 4}, {"applied", 1}, {"skipped", 3}}));
    CHECK(summary.at("skipped_for").at("loss_not_finite") == 3);
    CHECK(summary.at("retries") == 0);
    const bool half = precision.at(1) == "fp16.enabled=true";
    CHECK(summary.at("final").at("loss_scale") == (half ? 256.0 : 1.0));
    for (const Json& record : metrics_of(place.file("run"))) {
      const bool skipped = record.at("step") > 1;
      CHECK(record.at("skipped") == skipped);
      CHECK(record.at("loss").is_null() == skipped);
      CHECK(record.value("skip_reason", "") == (skipped ? "loss_not_finite" : ""));
    }
  }
}

TEST_CASE("bf16.check_grad_overflow false ends the run at the first value that is not finite") {
  const Workplace place;
  const ProgramResult result =
      place.run(ranks(2) + Arguments{"--set", "bf16.enabled=true", "--set", "bf16.check_grad_overflow=false", "--set",
                                     R"(optimizer={"type": "SGD", "params": {"lr": 1e30}})"});
  check_fails(result, 1, "zerotrain: step 2: the loss is not finite; ");
  CHECK(result.err.find("bf16.check_grad_overflow true would skip single such steps") != std::string::npos);
  CHECK(json_of(place.file("run/summary.json")).at("steps").at("attempted") == 2);
}

TEST_CASE("a static loss scale that is too high ends the run after ten skipped steps, and says what to use") {
  const Workplace place;
  const ProgramResult result =
      place.run(ranks(2) + fp16 + Arguments{"--set", "fp16.loss_scale=1e9", "--set", "training.max_steps=50"});
  check_fails(result, 1, "zerotrain: step 10: 10 steps in a row were skipped, the last one because gradients are not");
  CHECK(result.err.find("Lower fp16.loss_scale, or make it dynamic (0).") != std::string::npos);
  CHECK(count_of(result.err, "skipped: gradients overflowed at loss scale 1000000000, which is static; ") == 9);
  CHECK(json_of(place.file("run/summary.json")).at("skipped_for").at("gradient_overflow") == 10);
}
