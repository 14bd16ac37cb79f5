// report from the outside: the page and the text of real runs.
#include "page_check.h"
#include "program_support.h"

using namespace zt::test;

TEST_CASE("four stages have one curve, and the report of the runs says so") {
  const Workplace place;
  const auto to = [](const std::string& run) { return Arguments{"--config", "config.json", "--output", run}; };
  for (const int number : {0, 1, 2, 3})
    check_completes(place.run_with(to("stage" + std::to_string(number)) + ranks(2) + stage(number)));
  check_completes(place.run_with(to("fp16") + fp16));
  const Arguments runs = {"stage0", "stage1", "stage2", "stage3", "fp16"};

  const ProgramResult page = place.run_with(Arguments{"report", "--output", "all.html"} + runs);
  INFO(page.err);
  REQUIRE(page.code == 0);
  CHECK(page.out == "all.html\n");
  const std::string html = contents_of(place.file("all.html"));
  CHECK(zt::testing::problems_of(html) == std::vector<std::string>{});
  CHECK(html.size() < 1000000);
  const std::string checksum = json_of(place.file("stage3") / "summary.json").at("weights_checksum");
  for (const std::string& said :
       {std::string("the losses of stage0, stage1, stage2 and stage3 are equal in every recorded digit over 4 steps"),
        "equal to the last bit (checksum " + checksum + ")", std::string("fp16 parts from stage0 at step 1"),
        std::string("what was planned, to the byte"), std::string("zero_optimization.stage"),
        std::string("skipped step: ")}) {
    INFO(said);
    CHECK(html.find(said) != std::string::npos);
  }

  const ProgramResult text = place.run_with(Arguments{"report", "--text"} + runs);
  CHECK(text.code == 0);
  CHECK(text.err.empty());
  for (const std::string& line : lines_of(text.out)) CHECK(line.size() <= 80);
  CHECK(text.out.find("One curve: ") != std::string::npos);
}

TEST_CASE("the page of one run lies in its directory; a run that is going on or was resumed has one, too") {
  const Workplace place;
  check_completes(place.run({"--set", "training.checkpoint_interval=2"}));
  const ProgramResult page = place.run_with({"report", "run"});
  REQUIRE(page.code == 0);
  CHECK(page.out == "run/report.html\n");
  CHECK(zt::testing::problems_of(contents_of(place.file("run") / "report.html")) == std::vector<std::string>{});

  check_completes(place.run({"--resume", "--set", "training.max_steps=6"}));
  REQUIRE(place.run_with({"report", "run/metrics.jsonl"}).code == 0);
  CHECK(contents_of(place.file("run") / "report.html").find("6, resumed after 4") != std::string::npos);

  fs::remove(place.file("run") / "summary.json");
  const ProgramResult without = place.run_with({"report", "run", "--text"});
  CHECK(without.code == 0);
  CHECK(without.out.find("has no summary.json") != std::string::npos);
}

TEST_CASE("report refuses what is no run, and what it would write over") {
  const Workplace place;
  fs::create_directories(place.file("bare"));
  fs::create_directories(place.file("empty"));
  place.write("empty/metrics.jsonl", "");
  place.write("run.txt", "hello\n");
  check_fails(place.run_with({"report", "nowhere"}), 2, "there is no run nowhere");
  check_fails(place.run_with({"report", "bare"}), 2, "has no metrics.jsonl");
  check_fails(place.run_with({"report", "empty"}), 2, "holds no step yet");
  check_fails(place.run_with({"report", "run.txt"}), 2, "is a file and no run");
  check_fails(place.run_with({"report"}), 2, "runs");
  check_completes(place.run({}));
  check_fails(place.run_with({"report", "run", "./run"}), 2, "is the same run as run");
  check_fails(place.run_with({"report", "run", "--output", "bare"}), 2, "is a directory");
  check_fails(place.run_with({"report", "run", "--output", "no/page.html"}), 2, "there is no directory no");
  check_fails(place.run_with({"report", "run", "--output", "run/summary.json"}), 2, "the name of a file of a run");
}
