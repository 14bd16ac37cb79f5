// The program from the outside: one curve whatever starts the ranks, and its plan.
#include <map>
#include <set>

#include "core/json.h"
#include "program_support.h"
#include "train/words.h"

using namespace zt::test;

TEST_CASE("local processes train one curve at every stage and number of ranks") {
  for (const bool half : {false, true}) {
    const Workplace place;
    std::string first;
    for (const int number : {1, 2, 3}) {
      for (const int level : {0, 1, 2, 3}) {
        if (half && number == 1 && level != 0) continue;
        CAPTURE(half, number, level);
        check_completes(
            place.run(ranks(number) + stage(level) + (half ? fp16 : Arguments{}) + Arguments{"--overwrite"}));
        const std::string curve = curve_of(place.file("run"));
        if (first.empty()) first = curve;
        CHECK(curve == first);
        check_memory_and_communication(place.file("run"));
      }
    }
    CHECK(count_of(first, R"("kind": "train")") == (half ? 6 : 4));
    CHECK(count_of(first, R"("kind": "eval")") == (half ? 3 : 2));
    CHECK((count_of(first, R"("skipped": true)") > 0) == half);
    CHECK(count_of(first, R"("skipped": false)") > 0);
  }
}

TEST_CASE("nodes of one rank each train the same curve") {
  const Workplace place;
  check_completes(place.run({}));
  const std::string first = curve_of(place.file("run"));
  for (const int level : {0, 2, 3}) {
    CAPTURE(level);
    check_completes(place.run(ranks(3) + stage(level) + Arguments{"--set", "device.ranks_per_node=1", "--overwrite"}));
    CHECK(curve_of(place.file("run")) == first);
    check_memory_and_communication(place.file("run"));
  }
}

TEST_CASE("ranks over MPI train the same curve") {
  if (!can_use_mpi()) return;
  const Workplace place;
  check_completes(place.run({}));
  const std::string first = curve_of(place.file("run"));
  struct Case {
    int ranks, stage;
    Arguments more;
  };
  for (const Case& one : {Case{2, 1, {}}, Case{3, 3, {}}, Case{2, 3, {"--set", "device.communicator=mpi"}},
                          Case{2, 2, {"--set", "device.ranks_per_node=1"}}}) {
    CAPTURE(one.ranks, one.stage, one.more);
    check_completes(place.run(stage(one.stage) + one.more + Arguments{"--overwrite"}, mpirun(one.ranks)));
    CHECK(json_of(place.file("run/summary.json")).at("run").at("world_size") == one.ranks);
    CHECK(curve_of(place.file("run")) == first);
    check_memory_and_communication(place.file("run"));
  }
}

TEST_CASE("the plan is printed for any number of ranks, and is that of the run") {
  const Workplace place;
  for (const int level : {0, 1, 2, 3}) {
    for (const int number : {1, 2, 3, 64}) {
      CAPTURE(level, number);
      const ProgramResult plan =
          place.run(stage(level) + Arguments{"--dry-run", "--world-size", std::to_string(number), "--set",
                                             "train_batch_size=192", "--set", "data.samples=300"});
      check_completes(plan);
      CHECK(plan.err.find("zerotrain:") == std::string::npos);  // notices at most
      CHECK(plan.out.find("layout for " + std::to_string(number) + " rank(s): 7,216 parameters") != std::string::npos);
      for (const char* part : {"parameters ", "gradients ", "optimizer ", "activations ", "communication ", "data ",
                               "workspace ", "total ", "communication of a rank: "}) {
        CHECK(plan.out.find(part) != std::string::npos);
      }
      CHECK(plan.out.find("formula of stage " + std::to_string(level)) != std::string::npos);
    }
    CHECK_FALSE(fs::exists(place.file("run")));

    const ProgramResult plan = place.run(ranks(2) + stage(level) + Arguments{"--dry-run"});
    check_completes(place.run(ranks(2) + stage(level)));
    const Json summary = json_of(place.file("run/summary.json"));
    fs::remove_all(place.file("run"));
    for (const auto& [category, bytes] : summary.at("memory").at("ranks").at(0).items()) {
      if (category == "rank" || category == "peak_resident" || category == "peers_shared") continue;
      const std::string expected = category + " +" + zt::bytes_in_words(bytes.get<std::int64_t>());
      CAPTURE(expected, plan.out);
      CHECK(std::regex_search(plan.out, std::regex(expected)));
    }
    std::smatch match;
    REQUIRE(std::regex_search(plan.out, match, std::regex("communication of a rank: ([0-9,]+) elements a step")));
    std::string elements = match[1];
    elements.erase(std::remove(elements.begin(), elements.end(), ','), elements.end());
    CHECK(std::stoll(elements) * 4 == summary.at("communication").at("elements").get<std::int64_t>());
  }
}

TEST_CASE("prove ends with 1 where rows differ, as sums in 16 bits do between numbers of ranks") {
  const Workplace place;
  const Arguments sums = {"--set", "bf16.enabled=true", "--set", "data_types.grad_accum_dtype=bf16", "--ranks",
                          "1,2",   "--stages",          "0,3"};
  const ProgramResult shown = place.run_with(Arguments{"prove", "--config", "config.json"} + sums);
  check_completes(shown);
  CHECK(shown.out.find("one curve: every row has the same bits") != std::string::npos);
  CHECK(shown.err.find("compared with data_types.grad_accum_dtype \"fp32\"") != std::string::npos);

  const ProgramResult as_is = place.run_with(Arguments{"prove", "--config", "config.json", "--as-is"} + sums);
  INFO(as_is.out);
  CHECK(as_is.code == 1);
  CHECK(count_of(as_is.out, "DIFFERS from the first row") == 2);  // both stages on two ranks
  CHECK(as_is.out.find("rows differ") != std::string::npos);
  CHECK_FALSE(fs::exists(place.file("run")));
  // One number of ranks: all stages agree.
  const Arguments one = {"prove",       "--config",
                         "config.json", "--as-is",
                         "--set",       "bf16.enabled=true",
                         "--set",       "data_types.grad_accum_dtype=bf16",
                         "--ranks",     "2"};
  check_completes(place.run_with(one));
}

TEST_CASE("prove compares in local order what must agree: stages 0 and 1 by number of ranks, the others in one curve") {
  const Workplace place;
  const Arguments local = {
      "prove", "--config", "config.json", "--steps", "2", "--set", "training.gradient_accumulation_order=local"};
  const ProgramResult shown = place.run_with(local + Arguments{"--ranks", "1,2,3"});
  INFO(shown.out);
  check_completes(shown);
  CHECK(shown.err.find("stages 0 and 1 must agree at each number of ranks by itself") != std::string::npos);
  CHECK(shown.out.find("3 curves, one for each order of addition: every row has the bits of its own") !=
        std::string::npos);
  const ProgramResult json = place.run_with(local + Arguments{"--ranks", "1,2,3", "--json"});
  check_completes(json);
  std::map<std::string, std::set<std::string>> rows_of_checksum;
  for (const Json& row : Json::parse(json.out)) {
    const int rank_count = row.at("ranks").get<int>();
    const int level = row.at("stage").get<int>();
    CHECK(row.at("same") == true);
    CHECK(row.at("accumulation_order") == (level <= 1 && row.at("ranks") > 1 ? "local" : "global"));
    const std::string order = level <= 1 && rank_count > 1 ? "local " + std::to_string(rank_count) : "global";
    rows_of_checksum[row.at("weights_checksum")].insert(order);
  }
  CHECK(rows_of_checksum.size() == 3);
  for (const auto& [checksum, orders] : rows_of_checksum) CHECK(orders.size() == 1);
  // All of one rank, or of one micro-step: one curve.
  const ProgramResult one = place.run_with(local + Arguments{"--ranks", "1,6"});
  INFO(one.out);
  check_completes(one);
  CHECK(one.out.find("one curve: every row has the same bits") != std::string::npos);
}

TEST_CASE("local order over processes, nodes and MPI: one curve at stages 0 and 1, sent once a step") {
  const Workplace place;
  const Arguments local = {"--set", "training.gradient_accumulation_order=local"};
  const auto curve = [&](const Arguments& more, const Arguments& launcher = {}) {
    const ProgramResult result = place.run(local + more + Arguments{"--overwrite"}, launcher);
    check_completes(result);
    CHECK(result.err.find("added up locally") != std::string::npos);
    check_memory_and_communication(place.file("run"));
    const Json summary = json_of(place.file("run/summary.json"));
    CHECK(summary.at("run").at("accumulation_order") == "local");
    CHECK(summary.at("communication").at("paper") == 1.0);
    return curve_of(place.file("run"));
  };
  const std::string first = curve(ranks(2) + stage(0));
  CHECK(curve(ranks(2) + stage(1)) == first);
  for (const int level : {0, 1}) {
    CHECK(curve(ranks(2) + stage(level) + Arguments{"--set", "device.ranks_per_node=1"}) == first);
    if (can_use_mpi()) CHECK(curve(stage(level), mpirun(2)) == first);
  }
  check_completes(place.run(ranks(2) + stage(1) + Arguments{"--overwrite"}));
  CHECK(curve_of(place.file("run")) != first);
  CHECK(json_of(place.file("run/summary.json")).at("run").at("accumulation_order") == "global");
}
