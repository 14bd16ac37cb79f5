// The program from the outside, on emulated GPUs: choosing them, refusing what cannot be, ranks as processes over NCCL,
// failures. The backend is the shared object that ZEROTRAIN_CUDA_BACKEND names.
#include <csignal>

#include "core/json.h"
#include "logged_collectives.h"
#include "program_support.h"

using namespace zt::test;

namespace {

const Arguments cuda = {"--set", "device.type=cuda"};
const Arguments over_nccl = {"--set", "device.communicator=nccl"};
const Arguments staged = {"--set", "device.communicator=staged"};

// A workplace whose programs see so many emulated GPUs.
class GpuPlace : public Workplace {
 public:
  using Environment = std::vector<std::pair<std::string, std::string>>;
  explicit GpuPlace(int devices, Environment more = {}) : environment_(std::move(more)) {
    environment_.emplace_back("ZEROTRAIN_EMULATION_DEVICES", std::to_string(devices));
  }
  ProgramOptions options() const { return {.directory = path(), .environment = environment_}; }
  ProgramResult run(const Arguments& more, const Arguments& launcher = {}) const {
    return run_program(command(more, launcher), options());
  }

 private:
  Environment environment_;
};

std::string checksum(const fs::path& run) { return json_of(run / "summary.json").at("weights_checksum"); }

}  // namespace

TEST_CASE("one rank trains on a GPU, and its records say so") {
  const GpuPlace place(1);
  const ProgramResult result = place.run(cuda);
  check_completes(result);
  const Json summary = json_of(place.file("run") / "summary.json");
  CHECK(summary.at("run").at("device") == "cuda");
  CHECK(summary.at("run").at("instruction_set").get<std::string>().starts_with("sm_"));
  check_memory_and_communication(place.file("run"));
  CHECK(result.err.find("device     GPU 0 (") != std::string::npos);
  const Json resolved = json_of(place.file("run") / "config.resolved.json");
  CHECK(resolved.at("device").at("type") == "cuda");
  CHECK(resolved.at("device").at("communicator") == "auto");  // several ranks may choose later
}

TEST_CASE("ranks on GPUs of their own use NCCL; stage, ranks and the way between them change no bit") {
  const GpuPlace place(4);
  check_completes(place.run(cuda));
  const std::string alone = checksum(place.file("run"));
  for (const int count : {2, 3}) {
    for (int number = 0; number <= 3; ++number) {
      CAPTURE(count, number);
      const ProgramResult result = place.run(cuda + ranks(count) + stage(number) + Arguments{"--overwrite"});
      check_completes(result);
      CHECK(result.err.find(std::to_string(count) + " ranks over NCCL") != std::string::npos);
      CHECK(checksum(place.file("run")) == alone);
      check_memory_and_communication(place.file("run"));
    }
  }
  check_completes(place.run(cuda + ranks(2) + stage(3) + staged + Arguments{"--overwrite"}));
  CHECK(checksum(place.file("run")) == alone);
}

TEST_CASE("comms_logger times collectives on GPUs without waiting for them, and changes no bit") {
  const GpuPlace place(2, {{"ZEROTRAIN_EMULATION_STREAMS", "lazy"}});
  for (const Arguments& way : {over_nccl, staged}) {
    for (const char* delay : {"0", "1"}) {
      CAPTURE(way, delay);
      const Arguments run = cuda + ranks(2) + stage(2) + way + Arguments{"--overwrite", "--set"} +
                            Arguments{std::string("training.report_delay=") + delay};
      check_completes(place.run(run));
      const std::string curve = curve_of(place.file("run"));
      const ProgramResult logged =
          place.run(run + Arguments{"--set", "comms_logger.enabled=true", "--set", "comms_logger.debug=true"});
      check_completes(logged);
      INFO(logged.err);
      CHECK(curve_of(place.file("run")) == curve);
      check_logged_collectives(logged.err, place.file("run"));
    }
  }
}

TEST_CASE("mpirun starts ranks on GPUs, too") {
  if (!can_use_mpi()) return;
  const GpuPlace place(2);
  check_completes(place.run(cuda + stage(2), mpirun(2)));
  const std::string over_mpi = checksum(place.file("run"));
  check_completes(place.run(cuda + ranks(2) + stage(1) + Arguments{"--overwrite"}));
  CHECK(checksum(place.file("run")) == over_mpi);
}

TEST_CASE("auto takes GPUs where every rank has one, else the CPU with a line that says why") {
  {
    const GpuPlace place(2);
    check_completes(place.run(ranks(2)));
    CHECK(json_of(place.file("run") / "summary.json").at("run").at("device") == "cuda");
  }
  const GpuPlace place(0);
  const ProgramResult result = place.run(ranks(2));
  check_completes(result);
  CHECK(json_of(place.file("run") / "summary.json").at("run").at("device") == "cpu");
  CHECK(count_of(result.err, "notice: device.type: \"auto\" is the CPU: ") == 1);
  check_fails(place.run(cuda + Arguments{"--overwrite"}), 2, "device.type: \"cuda\" cannot be used: ");
  check_fails(place.run(ranks(2) + over_nccl + Arguments{"--overwrite"}), 2, "is for GPUs, and none can be used");
}

TEST_CASE("ranks that differ in having a GPU are listed") {
  if (!can_use_mpi()) return;
  const Workplace place;
  Arguments launcher = mpirun(1);
  Arguments command = launcher + Arguments{"-x", "ZEROTRAIN_EMULATION_DEVICES=1"} + Workplace::command({});
  command = command + Arguments{":", "-n", "2", "-x", "ZEROTRAIN_EMULATION_DEVICES=0"} + Workplace::command({});
  const ProgramResult result = run_program(command, place.options());
  INFO(result.err);
  CHECK(result.code == 2);
  CHECK(result.err.find("\"auto\" needs all ranks to have a GPU, or none; some have none: ranks 1, 2: ") !=
        std::string::npos);
}

TEST_CASE("ranks that were started with different configs are told so before anything is trained") {
  if (!can_use_mpi()) return;
  const GpuPlace place(2);
  const auto started = [&](const Arguments& first, const Arguments& second) {
    const Arguments command =
        mpirun(1) + Workplace::command(first) + Arguments{":", "-n", "1"} + Workplace::command(second);
    return run_program(command, place.options());
  };
  for (const auto& [first, second, said] :
       {std::tuple{cuda, Arguments{"--set", "device.type=cpu"}, R"(device.type: "cpu" instead of "cuda" of rank 0)"},
        std::tuple{Arguments{}, Arguments{"--set", "training.report_delay=1"}, "training.report_delay: 1 instead of 0"},
        std::tuple{Arguments{}, Arguments{"--set", "optimizer.params.lr=1"}, "optimizer.params.lr: "}}) {
    const ProgramResult result = started(first, second);
    INFO(result.err);
    CHECK_FALSE(result.timed_out);
    CHECK(result.code == 2);
    CHECK(result.err.find("ranks have different configs: rank 1 has " + std::string(said)) != std::string::npos);
  }
}

TEST_CASE("ranks may share a GPU through the host's memory, but not over NCCL") {
  const GpuPlace place(1);
  check_completes(place.run(cuda));
  const std::string alone = checksum(place.file("run"));
  const ProgramResult shared = place.run(cuda + ranks(3) + stage(3) + Arguments{"--overwrite"});
  check_completes(shared);
  CHECK(count_of(shared.err, "notice: device.communicator: ranks share GPUs, there are 3 ranks, but only 1 GPU(s)") ==
        1);
  CHECK(shared.err.find("shared by 3 ranks") != std::string::npos);
  CHECK(checksum(place.file("run")) == alone);
  check_fails(place.run(cuda + ranks(2) + over_nccl + Arguments{"--overwrite"}), 2,
              "\"nccl\" needs a GPU for each rank of a machine; there are 2 ranks, but only 1 GPU(s)");
}

TEST_CASE("a GPU that is too small is refused before training, with the category and what helps") {
  const GpuPlace place(1, {{"ZEROTRAIN_EMULATION_MEMORY_MB", "2"}});
  const ProgramResult result = place.run(cuda);
  check_fails(result, 2, "this run needs ");
  CHECK(result.err.find("of GPU 0 (emulated GPU), but only ") != std::string::npos);
  CHECK(result.err.find("Most of it is workspace") != std::string::npos);
  CHECK_FALSE(fs::exists(place.file("run") / "metrics.jsonl"));  // nothing that would look like a run
  CHECK_FALSE(fs::exists(place.file("run") / "config.resolved.json"));
}

TEST_CASE("what CUDA or NCCL refuse ends the run with their words, not in a hang") {
  for (const char* failure : {"allocation:1", "allocation:9", "allocation:30", "launch:1", "launch:40", "launch:400"}) {
    CAPTURE(failure);
    const GpuPlace place(1, {{"ZEROTRAIN_EMULATION_FAIL", failure}});
    const ProgramResult result = place.run(cuda);
    INFO(result.err);
    CHECK_FALSE(result.timed_out);
    CHECK((result.code == 1 || result.code == 2));
    CHECK(count_of(result.err, "zerotrain: ") == 1);
    CHECK((result.err.find("CUDA error") != std::string::npos || result.err.find("cuBLASLt") != std::string::npos ||
           result.err.find("not enough memory") != std::string::npos));
  }
  for (const char* failure : {"collective:1", "collective:3", "collective:20"}) {
    CAPTURE(failure);
    const GpuPlace place(2, {{"ZEROTRAIN_EMULATION_FAIL", failure}});
    const ProgramResult result = place.run(cuda + ranks(2) + stage(3));
    INFO(result.err);
    CHECK_FALSE(result.timed_out);
    CHECK(result.code != 0);
    CHECK(result.err.find("NCCL") != std::string::npos);
    CHECK_FALSE(result.left_processes);
  }
}

TEST_CASE("a rank that is killed on its GPU ends the others, and is named") {
  const GpuPlace place(3);
  const fs::path run = place.file("run");
  Program program(Workplace::command(cuda + ranks(3) + stage(3) + endless), place.options());
  CHECK(program.wait_until([&] { return metrics_lines(run) >= 2; }));
  const std::vector<pid_t> processes = children_of(program.process());
  REQUIRE(processes.size() == 3);
  kill(processes[1], SIGKILL);
  const ProgramResult result = program.finish();
  INFO(result.err);
  CHECK_FALSE(result.timed_out);
  CHECK(result.code == 1);
  CHECK(result.err.find("rank 1") != std::string::npos);
  CHECK_FALSE(result.left_processes);
}

TEST_CASE("a signal stops a run on GPUs after its step") {
  const GpuPlace place(2);
  const fs::path run = place.file("run");
  Program program(Workplace::command(cuda + ranks(2) + endless), place.options());
  CHECK(program.wait_until([&] { return metrics_lines(run) >= 2; }));
  program.send(SIGTERM);
  const ProgramResult result = program.finish();
  INFO(result.err);
  CHECK(result.code == 128 + SIGTERM);
  CHECK(json_of(run / "summary.json").at("status") == "stopped");
}

TEST_CASE("values that are not finite are named on a GPU as on the CPU") {
  const GpuPlace place(1);
  const ProgramResult result =
      place.run(cuda + Arguments{"--set", "optimizer.params.lr=1e30", "--set", "gradient_clipping=0"});
  INFO(result.err);
  CHECK(result.code == 1);
  CHECK(result.err.find("not finite") != std::string::npos);
}

TEST_CASE("a plan for GPUs needs none") {
  const GpuPlace place(0);
  const ProgramResult plan = place.run(cuda + Arguments{"--dry-run", "--world-size", "6"});
  INFO(plan.err);
  CHECK(plan.code == 0);
  CHECK(plan.out.find("workspace        33.6 MB") != std::string::npos);
  const ProgramResult printed = place.run(cuda + Arguments{"--print-config", "--ranks", "6"});
  CHECK(printed.code == 0);
  CHECK(Json::parse(printed.out).at("device").at("communicator") == "nccl");
}

TEST_CASE("prove shows one curve on GPUs") {
  const GpuPlace place(4);
  const ProgramResult result = run_program({ZEROTRAIN_BINARY, "prove", "--config", "config.json", "--set",
                                            "device.type=cuda", "--ranks", "1,2,3", "--steps", "2"},
                                           place.options());
  INFO(result.err << result.out);
  CHECK(result.code == 0);
  CHECK(result.out.find("one curve: every row has the same bits") != std::string::npos);
  CHECK(result.out.find("sm_") != std::string::npos);
}
