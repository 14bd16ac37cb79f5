// --trace from the outside: the file beside the run's own numbers, and the report of it.
#include <map>

#include "page_check.h"
#include "program_support.h"

using namespace zt::test;

namespace {

Json trace_of(const Workplace& place, const std::string& run) { return json_of(place.file(run) / "trace.json"); }

// Spans of a row lie within each other or apart, as viewers need them. Times are rounded to nanoseconds.
int crossings(const Json& trace) {
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> rows;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const double begin = event.at("ts");
    rows[{event.at("pid"), event.at("tid")}].emplace_back(begin, begin + event.at("dur").get<double>());
  }
  int count = 0;
  for (auto& [row, spans] : rows) {
    std::sort(spans.begin(), spans.end(), [](const auto& one, const auto& other) {
      return one.first != other.first ? one.first < other.first : one.second > other.second;
    });
    std::vector<double> open;
    for (const auto& [begin, end] : spans) {
      while (!open.empty() && open.back() <= begin + 0.001) open.pop_back();
      if (!open.empty() && end > open.back() + 0.002) ++count;
      open.push_back(end);
    }
  }
  return count;
}

}  // namespace

TEST_CASE("a trace of all steps has sent what the summary counts, and changes no bit") {
  const Workplace place;
  const int number = GENERATE(0, 1, 2, 3);
  CAPTURE(number);
  const Arguments run =
      Arguments{"--config", "config.json", "--set", "training.eval_interval=0"} + ranks(3) + stage(number);
  check_completes(place.run_with(run + Arguments{"--output", "plain"}));
  check_completes(place.run_with(run + Arguments{"--output", "traced", "--trace", "1-4"}));
  const Json plain = json_of(place.file("plain") / "summary.json");
  const Json summary = json_of(place.file("traced") / "summary.json");
  CHECK(summary.at("weights_checksum") == plain.at("weights_checksum"));
  CHECK(summary.at("communication").at("elements_per_parameter_and_step") ==
        plain.at("communication").at("elements_per_parameter_and_step"));

  const Json trace = trace_of(place, "traced");
  CHECK(crossings(trace) == 0);
  CHECK(trace.at("zerotrain").at("stage") == number);
  CHECK(trace.at("log").size() == 3);
  std::map<std::string, std::int64_t> bytes, calls;
  std::map<std::string, int> steps;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X" || event.at("pid") != 0) continue;
    if (event.at("cat") == "collective") {
      bytes[event.at("name")] += event.at("args").value("bytes sent", std::int64_t{0});
      ++calls[event.at("name")];
    }
    if (event.at("name").get<std::string>().starts_with("step ")) ++steps[event.at("name")];
  }
  CHECK(steps.size() == 4);
  for (const char* kind : {"reduce_scatter", "all_gather"}) {
    CAPTURE(kind);
    CHECK(bytes[kind] == summary.at("communication").at(kind).at("bytes"));
    CHECK(calls[kind] == summary.at("communication").at(kind).at("calls"));
  }
  CHECK(bytes["all_gather"] > 0);
}

TEST_CASE("without steps named the second and the third are traced, of a short run what there is") {
  const Workplace place;
  const ProgramResult result = place.run({"--trace"});
  check_completes(result);
  CHECK(result.err.find("trace of steps 2 to 3: ") != std::string::npos);
  CHECK(trace_of(place, "run").at("zerotrain").at("steps") == Json::parse("[2, 3]"));

  const ProgramResult one = place.run({"--overwrite", "--trace", "--set", "training.max_steps=1"});
  check_completes(one);
  CHECK(trace_of(place, "run").at("zerotrain").at("steps") == Json::parse("[1, 1]"));

  const ProgramResult beyond = place.run({"--overwrite", "--trace", "9"});
  check_completes(beyond);
  CHECK(beyond.err.find("attempted none of the steps") != std::string::npos);
  CHECK_FALSE(fs::exists(place.file("run") / "trace.json"));

  const ProgramResult rest = place.run({"--overwrite", "--trace", "4-9"});
  check_completes(rest);
  CHECK(trace_of(place, "run").at("zerotrain").at("steps") == Json::parse("[4, 4]"));
}

TEST_CASE("steps to trace that are none are found before the first step") {
  const Workplace place;
  const ProgramResult wrong = place.run({"--trace", "3-1"});
  CHECK(wrong.code == 2);
  CHECK(wrong.err.find("--trace 3-1: name the steps") != std::string::npos);
  CHECK_FALSE(fs::exists(place.file("run")));
  CHECK(place.run_with({"prove", "--config", "config.json", "--trace"}).code == 2);
}

TEST_CASE("the report of traced runs shows who holds what") {
  const Workplace place;
  for (const int number : {1, 3})
    check_completes(
        place.run_with(Arguments{"--config", "config.json", "--trace", "--output", "stage" + std::to_string(number)} +
                       ranks(2) + stage(number)));
  const ProgramResult page = place.run_with({"report", "stage1", "stage3", "--output", "both.html"});
  INFO(page.err);
  REQUIRE(page.code == 0);
  const std::string html = contents_of(place.file("both.html"));
  CHECK(zt::testing::problems_of(html, 2) == std::vector<std::string>{});  // what happened, and how it is shown
  for (const char* said :
       {"Who holds what", "At rest each rank holds all parameters, all gradients and 1/2 of the optimizer",
        "At rest each rank holds 1/2 of the parameters, 1/2 of the gradients and 1/2 of"}) {
    CAPTURE(said);
    CHECK(html.find(said) != std::string::npos);
  }
  std::ofstream(place.file("stage3") / "trace.json") << "{}";
  const ProgramResult text = place.run_with({"report", "stage3", "--text"});
  CHECK(text.code == 0);
  CHECK(text.out.find("Who holds what") == std::string::npos);
  CHECK(text.out.find("is no trace of zerotrain") != std::string::npos);
}

TEST_CASE("a run that goes on sets the trace of before aside, and says so") {
  const Workplace place;
  const Arguments saves = {"--set", "training.checkpoint_interval=2"};
  const fs::path trace = place.file("run") / "trace.json", aside = place.file("run") / "trace.json.set-aside";
  check_completes(place.run(saves + Arguments{"--set", "training.max_steps=2", "--trace", "1-2"}));
  const std::string before = contents_of(trace);
  CHECK(before.size() > 100);
  // A run that is finished takes no step: its trace is its own.
  check_completes(place.run(saves + Arguments{"--set", "training.max_steps=2", "--resume"}));
  CHECK(contents_of(trace) == before);

  const ProgramResult resumed = place.run(saves + Arguments{"--resume"});
  check_completes(resumed);
  CHECK(resumed.err.find("trace.json, of steps before, is set aside as trace.json.set-aside") != std::string::npos);
  CHECK_FALSE(fs::exists(trace));
  CHECK(contents_of(aside) == before);
  const ProgramResult text = place.run_with({"report", "run", "--text"});
  CHECK(text.code == 0);
  CHECK(text.out.find("Who holds what") == std::string::npos);

  const ProgramResult again = place.run(saves + Arguments{"--set", "training.max_steps=6", "--resume", "--trace"});
  check_completes(again);
  CHECK(again.err.find("set aside") == std::string::npos);
  CHECK(contents_of(aside) == before);
  CHECK(contents_of(trace) != before);
  check_completes(place.run({"--overwrite"}));
  CHECK_FALSE(fs::exists(trace));
  CHECK_FALSE(fs::exists(aside));
}

TEST_CASE("flops_profiler tells of one step by pass and unit, on the screen or in a file, and changes no bit") {
  const Workplace place;
  const Arguments run = Arguments{"--config", "config.json"} + ranks(2) + stage(3);
  check_completes(place.run_with(run + Arguments{"--output", "plain"}));
  const Arguments on = {"--set", "flops_profiler.enabled=true", "--set", "flops_profiler.profile_step=2"};
  const ProgramResult told = place.run_with(run + on + Arguments{"--output", "told"});
  check_completes(told);
  CHECK(told.err.find("flops profile of step 2 on rank 0: ") != std::string::npos);
  for (const char* word : {"forward", "backward", "finish", "matmul", "all_gather"}) {
    CAPTURE(word);
    CHECK(told.err.find(std::string("\n  ") + word) != std::string::npos);
  }
  const ProgramResult filed = place.run_with(
      run + on + Arguments{"--output", "filed", "--trace", "--set", "flops_profiler.output_file=profile.txt"});
  check_completes(filed);
  const ProgramResult nowhere = place.run_with(
      run + on + Arguments{"--output", "never", "--set", "flops_profiler.output_file=nowhere/profile.txt"});
  CHECK(nowhere.code == 2);
  CHECK(nowhere.err.find("flops_profiler.output_file: there is no directory") != std::string::npos);
  CHECK(contents_of(place.file("profile.txt")).starts_with("flops profile of step 2"));
  // Both watch the same device, and each is told what is done for what.
  const Json trace = trace_of(place, "filed");
  std::map<std::string, int> traced;
  for (const Json& moment : trace.at("log").at(0)) ++traced[moment.at(1).get<std::string>()];
  for (const char* activity : {"step", "forward", "backward", "gather", "reduce"}) {
    CAPTURE(activity);
    CHECK(traced[activity] > 0);
  }
  for (const char* other : {"told", "filed"})
    CHECK(json_of(place.file(other) / "summary.json").at("weights_checksum") ==
          json_of(place.file("plain") / "summary.json").at("weights_checksum"));
}
