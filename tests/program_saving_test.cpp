// The program from the outside: what happens while a checkpoint is written.
#include <cerrno>
#include <map>
#include <random>

#include "checkpoint/directory.h"
#include "checkpoint/native.h"
#include "program_support.h"

using namespace zt::test;

namespace {

const Arguments every_second = {"--set", "training.checkpoint_interval=2", "--set", "training.max_steps=8"};

fs::path checkpoint(const fs::path& run, std::int64_t step) { return run / "checkpoints" / zt::checkpoint_name(step); }

std::vector<std::int64_t> finished(const fs::path& run) {
  return zt::list_checkpoints((run / "checkpoints").string()).finished;
}

std::string checksum_of_run(const fs::path& run) { return json_of(run / "summary.json").at("weights_checksum"); }

void run_part(const Workplace& place, const Arguments& launch, std::int64_t steps) {
  check_completes(place.run(launch + every_second + Arguments{"--set", "training.max_steps=" + std::to_string(steps)}));
}

// The `call`-th call on files whose path has `path` in it fails so in every process.
ProgramOptions with_failing(const Workplace& place, const std::string& path, int call, const std::string& with) {
  ProgramOptions options = place.options();
  options.environment = {{"LD_PRELOAD", ZEROTRAIN_FAILING_WRITES},
                         {"FAILING_CALL", std::to_string(call)},
                         {"FAILING_WITH", with},
                         {"FAILING_PATH", path}};
  return options;
}

}  // namespace

TEST_CASE("a rank killed at any moment of saving leaves a whole checkpoint") {
  std::mt19937 random(20240601);
  const Workplace place;
  const fs::path run = place.file("run");
  const Arguments saving = {"--set", "training.checkpoint_interval=1", "--set", "training.max_steps=100000000",
                            "--set", "training.eval_interval=0"};
  std::int64_t newest = 0;
  for (int time = 0; time < 50; ++time) {
    CAPTURE(time);
    const bool behind = time % 2 == 1;
    Program program(
        Workplace::command(ranks(2) + saving +
                           Arguments{"--resume", "--set",
                                     std::string("training.checkpoint_in_background=") + (behind ? "true" : "false")}),
        place.options());
    REQUIRE(program.wait_until([&] {
      const auto steps = finished(run);
      return !steps.empty() && steps.back() > newest;
    }));
    const std::vector<pid_t> processes = children_of(program.process());
    REQUIRE(processes.size() == 2);
    std::this_thread::sleep_for(std::chrono::microseconds(std::uniform_int_distribution<int>(0, 8000)(random)));
    kill(processes.at(time % 3 == 0 ? 1 : 0), SIGKILL);
    const ProgramResult result = program.finish();
    INFO(result.err);
    CHECK(result.code == 1);
    const auto steps = finished(run);
    REQUIRE_FALSE(steps.empty());
    CHECK(steps.back() > newest);
    newest = steps.back();
    const zt::NativeCheckpoint native(checkpoint(run, newest).string());
    native.verify();
    CHECK(native.manifest().step == newest);
  }
  // It is the curve of a run that nobody killed.
  const Workplace quiet;
  const Arguments steps = {"--set", "training.eval_interval=0", "--set",
                           "training.max_steps=" + std::to_string(newest + 1)};
  check_completes(place.run(steps + Arguments{"--resume"}));
  check_completes(quiet.run(steps));
  CHECK(checksum_of_run(run) == checksum_of_run(quiet.file("run")));
}

TEST_CASE("a write that fails ends the run with the reason, and the checkpoint before is whole") {
  for (const bool behind : {false, true}) {
    const Arguments more = every_second + Arguments{"--set", std::string("training.checkpoint_in_background=") +
                                                                 (behind ? "true" : "false")};
    for (const auto& [with, told] :
         std::map<std::string, std::string>{{std::to_string(ENOSPC), "No space left on device"},
                                            {std::to_string(EIO), "Input/output error"},
                                            {"short", ""}}) {
      int failed = 0;
      for (int call = 1;; ++call) {
        REQUIRE(call < 200);
        CAPTURE(behind, with, call);
        const Workplace place;
        const fs::path run = place.file("run");
        run_part(place, {}, 2);
        const std::string before = contents_of(checkpoint(run, 2) / "manifest.json");
        const ProgramOptions options = with_failing(place, "/checkpoints/", call, with);
        // Saves at steps 4 and 6; the calls of the first are what is counted through.
        const ProgramResult result =
            run_program(Workplace::command(more + Arguments{"--resume", "--set", "training.max_steps=4"}), options);
        INFO(result.err);
        if (with == "short") {
          CHECK(result.code == 0);
          zt::NativeCheckpoint(checkpoint(run, 4).string()).verify();
          if (call >= 12) break;
          continue;
        }
        if (result.code == 0) break;  // fewer calls than that
        ++failed;
        check_fails(result, 1, told);
        CHECK(contents_of(checkpoint(run, 2) / "manifest.json") == before);
        zt::NativeCheckpoint(checkpoint(run, 2).string()).verify();
        check_completes(place.run(more + Arguments{"--resume", "--set", "training.max_steps=4"}));
        zt::NativeCheckpoint(checkpoint(run, 4).string()).verify();
      }
      if (with != "short") CHECK(failed >= 12);
    }
  }
}

TEST_CASE("a rank whose part cannot be written, at once or in the background, ends all ranks with its reason") {
  const Workplace original;
  run_part(original, ranks(3) + stage(3), 2);
  struct Failure {
    std::string path;  // what rank writes there
    int call;
    int error;
    const char* told;
  };
  for (const auto& [path, call, error, told] :
       {Failure{"rank-00001.", 1, EACCES, "Permission denied"}, Failure{"rank-00002.", 2, ENOSPC, "No space left"},
        Failure{"rank-00002.", 5, EIO, "Input/output error"}, Failure{"manifest.json", 2, ENOSPC, "No space left"}}) {
    for (const bool behind : {false, true}) {
      CAPTURE(path, call, behind);
      const Workplace place;
      const fs::path run = place.file("run");
      fs::copy(original.file("run"), run, fs::copy_options::recursive);
      const std::string before = contents_of(checkpoint(run, 2) / "manifest.json");
      // It would go on for ever: the failure ends it, whenever the other ranks learn of it.
      const Arguments more =
          ranks(3) + stage(3) + Arguments{"--resume", "--set", "training.checkpoint_interval=2"} +
          Arguments{"--set", std::string("training.checkpoint_in_background=") + (behind ? "true" : "false")};
      const ProgramResult result =
          run_program(Workplace::command(more + endless), with_failing(place, path, call, std::to_string(error)));
      check_fails(result, 1, told);
      CHECK(result.err.find(path) != std::string::npos);
      CHECK(finished(run) == std::vector<std::int64_t>{2});
      CHECK(contents_of(checkpoint(run, 2) / "manifest.json") == before);
      CHECK(json_of(run / "summary.json").at("status") == "failed");
      check_completes(place.run(more + Arguments{"--set", "training.max_steps=4"}));
      zt::NativeCheckpoint(checkpoint(run, 4).string()).verify();
      CHECK_FALSE(fs::exists(zt::temporary_checkpoint((run / "checkpoints").string(), 4)));
    }
  }
}

TEST_CASE("a limit on the size of files is an error of the write that meets it, which says so") {
  const Workplace place;
  const auto limited = [&](const std::string& blocks, const std::string& words) {
    return run_program({"sh", "-c", "ulimit -f " + blocks + " && exec " + ZEROTRAIN_BINARY + " " + words},
                       place.options());
  };
  const ProgramResult run = limited("8", "--config config.json --output run --set training.checkpoint_interval=2");
  CHECK(run.code == 1);
  CHECK(run.err.find("File too large") != std::string::npos);
  CHECK(json_of(place.file("run") / "summary.json").at("status") == "failed");

  place.write("text.txt", std::string(100'000, 'a'));
  const ProgramResult tokens = limited("8", "tokenize --tokenizer bytes --input text.txt --output tokens.bin");
  CHECK(tokens.code == 1);
  CHECK(tokens.err.find("File too large") != std::string::npos);
  for (const auto& entry : fs::directory_iterator(place.path())) {
    CAPTURE(entry.path());
    CHECK(entry.path().filename().string().find("tokens") == std::string::npos);
  }
}
