// The program from the outside: estimate, and what "auto" chooses by memory.
#include <algorithm>
#include <chrono>
#include <set>

#include "program_support.h"

using namespace zt::test;

namespace {

const Json& row_of(const Json& rows, int stage_number, int number) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Json& row) {
    return row.at("stage") == stage_number && row.at("world_size") == number;
  });
  REQUIRE(found != rows.end());
  return *found;
}

Json estimate(const Workplace& place, const Arguments& more) {
  const ProgramResult result = place.run_with(Arguments{"estimate", "--json"} + more);
  check_completes(result);
  const Json rows = Json::parse(result.out, nullptr, false);
  REQUIRE(rows.is_array());
  return rows;
}

void check_columns(const std::string& text) {
  for (const std::string& line : lines_of(text)) {
    INFO(line);
    CHECK(line.size() <= 80);
  }
}

// The categories, the padding and the elements of a run against those that were estimated.
void check_as_estimated(const Json& row, const Json& summary) {
  const Json& planned = summary.at("memory").at("planned");
  CHECK(row.at("memory") == planned);
  for (const Json& rank : summary.at("memory").at("ranks")) {
    for (const auto& [category, bytes] : planned.items()) {
      CAPTURE(category);
      CHECK(rank.at(category) == row.at("memory").at(category));
    }
  }
  CHECK(row.at("formula_bytes_per_parameter") == summary.at("memory").at("formula_bytes_per_parameter"));
  REQUIRE(summary.at("steps").at("skipped") == 0);
  const auto steps = summary.at("steps").at("attempted").get<std::int64_t>();
  const Json& sent = summary.at("communication");
  const Json& estimated = row.at("communication");
  CHECK(estimated.at("planned_elements").get<std::int64_t>() * steps == sent.at("elements"));
  CHECK(estimated.at("planned") == sent.at("planned"));
  CHECK(estimated.at("elements_per_parameter_and_step") == sent.at("elements_per_parameter_and_step"));
  CHECK(estimated.at("paper") == sent.at("paper"));
  for (const char* kind : {"all_gather", "reduce_scatter", "all_to_all"}) {
    for (const char* what : {"calls", "bytes"}) {
      CAPTURE(kind, what);
      CHECK(estimated.at(kind).at(what).get<std::int64_t>() * steps == sent.at(kind).at(what));
    }
  }
  CHECK(row.at("parameters") == summary.at("model").at("parameters"));
}

const Arguments no_skips = {"--set", "fp16.enabled=true", "--set", "fp16.initial_scale_power=2"};
const Arguments rounded_sums = {"--set", "bf16.enabled=true", "--set", "data_types.grad_accum_dtype=bf16"};
const Arguments muon = {"--set", "optimizer.type=Muon"};
const Arguments of_the_config = {"--config", "config.json"};

}  // namespace

TEST_CASE("an estimate is what a run of the config holds and sends, at every stage and number of ranks") {
  const Arguments sixty = {"--set", "train_batch_size=60", "--set", "training.max_steps=2"};
  const Workplace gpt;
  const Workplace mlp(tiny_mlp);
  const Arguments bf16 = {"--set", "bf16.enabled=true", "--set", "activation_checkpointing.every=2"};
  const std::vector<std::pair<const Workplace*, Arguments>> cases = {
      {&gpt, {}},   {&gpt, no_skips},        {&gpt, bf16}, {&gpt, rounded_sums}, {&mlp, {}}, {&mlp, no_skips},
      {&gpt, muon}, {&gpt, muon + no_skips}, {&mlp, muon}};
  for (std::size_t index = 0; index < cases.size(); ++index) {
    const Workplace& place = *cases[index].first;
    const Arguments more = sixty + cases[index].second;
    const Json rows = estimate(place, of_the_config + Arguments{"--world-size", "1,2,3,4,5"} + more);
    CHECK(rows.size() == 20);
    for (int number = 1; number <= 5; ++number) {
      for (int stage_number = 0; stage_number <= 3; ++stage_number) {
        // Every pair of stage and number of ranks in one case or another.
        if ((static_cast<std::size_t>(stage_number + number) + index) % 2 != 0) continue;
        CAPTURE(index, number, stage_number);
        check_completes(place.run(ranks(number) + stage(stage_number) + more + Arguments{"--overwrite", "--quiet"}));
        const Json& row = row_of(rows, stage_number, number);
        check_as_estimated(row, json_of(place.file("run/summary.json")));
        CHECK(row.at("batch").at("train") == 60);
        CHECK(row.at("batch").at("as_configured") == true);
      }
    }
  }
}

TEST_CASE("1024 ranks are planned in seconds, and their batch is told") {
  const Workplace place;
  const auto start = std::chrono::steady_clock::now();
  const Json rows = estimate(place, of_the_config + Arguments{"--world-size", "1024"});
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
  REQUIRE(rows.size() == 4);
  // 6 samples cannot be dealt to 1024 ranks: the micro-batch stays.
  CHECK(rows.at(0).at("batch") == Json({{"train", 1024}, {"micro", 1}, {"accumulation", 1}, {"as_configured", false}}));
  const auto total = [&](int stage_number) { return rows.at(static_cast<std::size_t>(stage_number)).at("total"); };
  CHECK(total(1) < total(0));
  const ProgramResult table = place.run_with(Arguments{"estimate"} + of_the_config + Arguments{"--memory", "2MB"});
  check_completes(table);
  check_columns(table.out);
  CHECK(count_of(table.out, " (not the config's)") == 5);  // 6 samples go to 1 rank, but not to 4, 16, ...
  CHECK(table.out.find("1 rank: batch 6 = micro-batch 1 x 6\n") != std::string::npos);
  CHECK(table.out.find("parameters of the largest model of these proportions that 2.00 MB a rank hold") !=
        std::string::npos);
}

TEST_CASE("a batch that cannot be dealt gives way by as little as is needed") {
  const Workplace place;
  const auto batch_of = [&](const Arguments& more) {
    return estimate(place, of_the_config + Arguments{"--stages", "1"} + more).at(0).at("batch");
  };
  const auto batch = [](int train, int micro, int accumulation, bool own) {
    return Json({{"train", train}, {"micro", micro}, {"accumulation", accumulation}, {"as_configured", own}});
  };
  CHECK(batch_of({"--world-size", "3"}) == batch(6, 1, 2, true));
  CHECK(batch_of({"--world-size", "2", "--set", "gradient_accumulation_steps=6"}) == batch(6, 1, 3, false));
  CHECK(batch_of({"--world-size", "5", "--set", "gradient_accumulation_steps=6"}) == batch(5, 1, 1, false));
  CHECK(batch_of({"--world-size", "5", "--set", "train_batch_size=12"}) == batch(10, 1, 2, false));
  CHECK(batch_of({"--world-size", "4", "--set", "train_micro_batch_size_per_gpu=auto"}) == batch(4, 1, 1, false));
  CHECK(batch_of({"--world-size", "4", "--set", "train_micro_batch_size_per_gpu=auto", "--set",
                  "train_batch_size=30"}) == batch(28, 7, 1, false));
}

TEST_CASE("the paper's accounting needs no config") {
  const Workplace place;
  const Json rows = estimate(place, {"--parameters", "7.5e9", "--world-size", "64", "--memory", "32GB"});
  REQUIRE(rows.size() == 4);
  CHECK(rows.at(0).at("total") == 120000000000);
  CHECK(rows.at(1).at("total") == 31406250000);
  CHECK(rows.at(2).at("total") == 16640625000);
  CHECK(rows.at(3).at("total") == 1875000000);
  CHECK(rows.at(3).at("memory") == Json({{"parameters", 234375000},
                                         {"gradients", 234375000},
                                         {"optimizer", 1406250000},
                                         {"activations", 0},
                                         {"communication", 0},
                                         {"data", 0},
                                         {"workspace", 0},
                                         {"padding", 0}}));
  CHECK(rows.at(3).at("largest").at("parameters").get<double>() == 128e9);
  CHECK(rows.at(3).at("communication").at("paper").get<double>() == 3.0 * 63 / 64);
  const ProgramResult table = place.run_with({"estimate", "--parameters", "7.5B"});
  check_completes(table);
  check_columns(table.out);
  CHECK(lines_of(table.out).size() == 2 + 6 * 4);
  for (const char* total : {"120 GB", "31.4 GB", "16.6 GB", "1.88 GB"}) {
    CAPTURE(total);
    CHECK(table.out.find(total) != std::string::npos);
  }
}

TEST_CASE("times are predicted with rates that are given or measured") {
  const Workplace place;
  const Json rows =
      estimate(place, of_the_config + Arguments{"--world-size", "1,2", "--flops", "1G", "--bandwidth", "1GB/s",
                                                "--updates", "1e9", "--set", "device.type=cuda"});
  for (const Json& row : rows) {
    const Json& time = row.at("prediction");
    const auto seconds = [&](const char* what) { return time.at(what).get<double>(); };
    const double parts = seconds("forward") + seconds("backward") + seconds("update") + seconds("exposed");
    CHECK(seconds("step_seconds") == Approx(parts));
    CHECK((seconds("exposed") > 0.0) == (row.at("world_size") == 2));
    CHECK(time.at("tokens_per_second").get<double>() == Approx(6 * 8 / seconds("step_seconds")));
  }
  check_completes(place.run(ranks(2) + stage(2)));
  const Json summary = json_of(place.file("run/summary.json"));
  const Json own = estimate(place, {"--from", "run", "--world-size", "2,4", "--stages", "2"});
  REQUIRE(own.size() == 2);
  check_as_estimated(own.at(0), summary);
  // All of its step but the wait for data.
  const double step = 6 * 8 / summary.at("throughput").at("tokens_per_second").get<double>();
  const double predicted = own.at(0).at("prediction").at("step_seconds").get<double>();
  CHECK(predicted <= step * 1.000001);
  CHECK(predicted > 0.2 * step);
  const ProgramResult table = place.run_with({"estimate", "--from", "run/summary.json", "--world-size", "1,2"});
  check_completes(table);
  check_columns(table.out);
  CHECK(table.out.find("seconds of a step, predicted") != std::string::npos);
}

TEST_CASE("estimate says what is wrong with its arguments") {
  const Workplace place;
  const auto fails = [&](const Arguments& more, const std::string& part) {
    CAPTURE(part);
    check_fails(place.run_with(Arguments{"estimate"} + more), 2, part);
  };
  fails({}, "nothing to estimate: give --config FILE, --parameters N");
  fails({"--parameters", "many"}, "--parameters must be a number, as 7.5e9 or 7.5B");
  fails({"--parameters", "1e9", "--config", "config.json"}, "leave out --config");
  fails({"--parameters", "1e9", "--flops", "1e12"}, "give --config in place of --parameters");
  fails({"--parameters", "1e9", "--world-size", "0"}, "--world-size");
  fails({"--parameters", "1e9", "--stages", "4"}, "--stages");
  fails(of_the_config + Arguments{"--memory", "8 apples"}, "--memory must be a number of bytes");
  fails(of_the_config + Arguments{"--bandwidth", "1GB/s"}, "give --flops, or --from a run");
  fails(of_the_config + Arguments{"--flops", "1e9"}, "needs --bandwidth");
  fails(of_the_config + Arguments{"--set", "model.n_layers=2"}, "model.n_layer");
  fails({"--from", "nowhere"}, "--from nowhere: there is no such summary");
  place.write("summary.json", "{\"run\": {}}");
  fails({"--from", "summary.json"}, "config.resolved.json is not beside it");
  place.write("config.resolved.json", "{}");
  fails({"--from", "summary.json"}, "run.world_size is missing");
  place.write("summary.json", "nothing");
  fails({"--from", "summary.json"}, "that is no JSON object");
  check_completes(place.run({"--set", "training.max_steps=3"}));
  fails({"--from", "run"}, "says nothing of how fast data are sent: give --bandwidth");
}

namespace {

const Arguments automatic = {"--set", "zero_optimization.stage=auto",
                             "--set", "train_micro_batch_size_per_gpu=auto",
                             "--set", "train_batch_size=8"};

Arguments limited_to(std::int64_t bytes) { return {"--set", "device.memory_limit=" + std::to_string(bytes)}; }

}  // namespace

TEST_CASE("with stage \"auto\" a run takes the cheapest that the memory holds, as estimated, and says why") {
  const Workplace place;
  const Arguments two = {"--world-size", "2"};
  std::int64_t limit = 1'000'000'000;
  std::set<int> stages;
  int tried = 0;
  while (true) {
    CAPTURE(limit);
    const Json rows = estimate(place, of_the_config + two + automatic + limited_to(limit));
    REQUIRE(rows.size() == 4);
    Json chosen;
    int chosen_stage = -1;
    for (const Json& row : rows) {
      for (const Json& candidate : row.at("candidates")) {
        CHECK(candidate.at("fits") == (candidate.at("bytes").get<std::int64_t>() <= limit));
        if (candidate.at("chosen") == false) continue;
        CHECK(chosen.is_null());
        chosen = candidate;
        chosen_stage = row.at("stage").get<int>();
      }
    }
    const Arguments run = ranks(2) + automatic + limited_to(limit) + Arguments{"--overwrite"};
    if (chosen.is_null()) {
      check_fails(place.run(run), 2, "zero_optimization: \"auto\" finds nothing that fits the ");
      break;
    }
    const ProgramResult result = place.run(run);
    check_completes(result);
    CHECK(count_of(result.err, "notice: zero_optimization: \"auto\" is stage " + std::to_string(chosen_stage)) == 1);
    const Json summary = json_of(place.file("run/summary.json"));
    CHECK(summary.at("run").at("stage") == chosen_stage);
    CHECK(summary.at("run").at("micro_batch") == chosen.at("micro_batch"));
    CHECK(summary.at("run").at("accumulation") == chosen.at("accumulation"));
    const Json resolved = json_of(place.file("run/config.resolved.json"));
    CHECK(resolved.at("zero_optimization").at("stage") == chosen_stage);
    CHECK(resolved.at("activation_checkpointing").at("every") == chosen.at("every"));
    std::int64_t held = 0;
    for (const auto& [category, bytes] : summary.at("memory").at("planned").items()) {
      if (category != "padding") held += bytes.get<std::int64_t>();
    }
    CHECK(held == chosen.at("bytes"));
    CHECK(held <= limit);
    stages.insert(chosen_stage);
    ++tried;
    limit = held - 1;
  }
  CHECK(tried >= 4);
  CHECK(stages.count(1) == 1);
  // What a plan and the printed config say is what a run does.
  const ProgramResult printed =
      place.run(automatic + Arguments{"--print-config", "--ranks", "2"} + limited_to(1'000'000'000));
  check_completes(printed);
  CHECK(printed.out.find("\"stage\": 1") != std::string::npos);
  CHECK(printed.out.find("\"stage\": \"auto\"") == std::string::npos);
  const ProgramResult table = place.run_with(Arguments{"estimate"} + of_the_config + two + automatic);
  check_completes(table);
  check_columns(table.out);
  CHECK(count_of(table.out, "  chosen\n") == 1);
}

TEST_CASE("without a limit, \"auto\" keeps to what is free, and a batch that is given stays") {
  const Workplace place;
  const ProgramResult result =
      place.run({"--set", "zero_optimization.stage=auto", "--set", "training.checkpoint_interval=4"});
  check_completes(result);
  const Json summary = json_of(place.file("run/summary.json"));
  CHECK(summary.at("run").at("stage") == 0);  // one rank: nothing to share
  CHECK(summary.at("run").at("micro_batch") == 1);
  CHECK(summary.at("run").at("accumulation") == 6);
  check_completes(place.run({"--set", "zero_optimization.stage=auto", "--resume", "--set", "training.max_steps=6"}));
  check_fails(place.run({"--overwrite", "--set", "device.memory_limit=1000"}), 2, "device.memory_limit is 1.00 kB");
  const Workplace mlp(tiny_mlp);
  check_completes(mlp.run(
      ranks(2) + Arguments{"--set", "zero_optimization.stage=auto", "--set", "activation_checkpointing.every=auto"}));
  CHECK(json_of(mlp.file("run/summary.json")).at("run").at("stage") == 1);
}

TEST_CASE("over MPI all ranks choose the same") {
  if (!can_use_mpi()) return;
  const Workplace place;
  const ProgramResult result = place.run(automatic, mpirun(2));
  check_completes(result);
  CHECK(json_of(place.file("run/summary.json")).at("run").at("stage") == 1);
  CHECK(count_of(result.err, "notice: zero_optimization: \"auto\" is stage 1") == 1);
}
