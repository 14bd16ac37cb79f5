// comms_logger from the outside: its table beside the run's own numbers.
#include "logged_collectives.h"

using namespace zt::test;

namespace {

const Arguments on = {"--set", "comms_logger.enabled=true"};

}  // namespace

TEST_CASE("comms_logger tells of the calls and bytes that the summary counts, and changes no bit") {
  const Workplace place;
  for (int number = 0; number <= 3; ++number) {
    for (const int world : {1, 2, 3}) {
      CAPTURE(number, world);
      const Arguments run = Arguments{"--config", "config.json", "--overwrite"} + ranks(world) + stage(number);
      check_completes(place.run_with(run + Arguments{"--output", "plain"}));
      const ProgramResult logged = place.run_with(run + on + Arguments{"--output", "logged"});
      check_completes(logged);
      CHECK(curve_of(place.file("logged")) == curve_of(place.file("plain")));
      INFO(logged.err);
      check_logged_collectives(logged.err, place.file("logged"));
      CHECK(logged.err.find("\ncollectives of 4 step(s) on rank 0 (comms_logger)") != std::string::npos);
      CHECK(count_of(contents_of(place.file("logged") / "train.log"), "collectives of 4 step(s)") == 1);
    }
  }
}

TEST_CASE("comms_logger tells of blocks that go to owners of whole matrices and back") {
  const Workplace place;
  for (const int number : {1, 2, 3}) {
    CAPTURE(number);
    const Arguments run =
        Arguments{"--config", "config.json", "--overwrite", "--set", "optimizer.type=Muon"} + ranks(3) + stage(number);
    check_completes(place.run_with(run + Arguments{"--output", "plain"}));
    const ProgramResult logged = place.run_with(run + on + Arguments{"--output", "logged"});
    check_completes(logged);
    INFO(logged.err);
    CHECK(curve_of(place.file("logged")) == curve_of(place.file("plain")));
    check_logged_collectives(logged.err, place.file("logged"));
    CHECK(logged_collectives(logged.err)["all_to_all"].calls > 0);
  }
}

TEST_CASE("comms_logger says each call with verbose, what it is for with debug, and leaves out what prof_ops does") {
  const Workplace place;
  const Arguments run = Arguments{"--config", "config.json", "--overwrite"} + ranks(2) + stage(3) + on;
  const ProgramResult all = place.run_with(run + Arguments{"--output", "all", "--set", "comms_logger.verbose=true",
                                                           "--set", "comms_logger.debug=true", "--trace", "2"});
  check_completes(all);
  INFO(all.err);
  std::map<std::string, Logged> table = logged_collectives(all.err);
  for (const auto& [kind, row] : table) {
    CAPTURE(kind);
    int lines = 0;
    for (int step = 1; step <= 4; ++step)
      lines += count_of(all.err, "\nstep " + std::to_string(step) + "  " + kind + "  message ");
    CHECK(lines == row.calls);
  }
  CHECK(table.size() == 3);
  for (const char* purpose :
       {"gather of h.0 in forward", "gather of h.1 in forward", "reduce of h.0 in backward", "finish"}) {
    CAPTURE(purpose);
    CHECK(all.err.find(std::string("  ") + purpose + "\n") != std::string::npos);
  }
  // A trace within still knows the units.
  CHECK(contents_of(place.file("all") / "trace.json").find("\"gather\"") != std::string::npos);

  const ProgramResult some =
      place.run_with(run + Arguments{"--output", "some", "--set", "comms_logger.prof_all=false", "--set",
                                     R"(comms_logger.prof_ops=["reduce_scatter_tensor"])"});
  check_completes(some);
  const std::map<std::string, Logged> reduced = logged_collectives(some.err);
  CHECK(reduced.size() == 1);
  CHECK(reduced.at("reduce_scatter") == table.at("reduce_scatter"));
  CHECK(some.err.find("of h.0") == std::string::npos);
  CHECK(curve_of(place.file("some")) == curve_of(place.file("all")));
}

TEST_CASE("comms_logger counts steps whose loss is read late, and those that a resumed run adds") {
  const Workplace place;
  const Arguments run = Arguments{"--config", "config.json"} + ranks(2) + stage(2) + on;
  const ProgramResult late = place.run_with(run + Arguments{"--output", "late", "--set", "training.report_delay=1",
                                                            "--set", "training.checkpoint_interval=4"});
  check_completes(late);
  check_logged_collectives(late.err, place.file("late"));
  const auto table = logged_collectives(late.err);

  const ProgramResult more =
      place.run_with(run + Arguments{"--output", "late", "--set", "training.report_delay=1", "--set",
                                     "training.checkpoint_interval=4", "--resume", "--set", "training.max_steps=6"});
  check_completes(more);
  INFO(more.err);
  CHECK(more.err.find("\ncollectives of 2 step(s)") != std::string::npos);
  CHECK(2 * logged_collectives(more.err).at("all_gather").sent == table.at("all_gather").sent);
}
