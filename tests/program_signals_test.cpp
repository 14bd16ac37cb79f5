// The program from the outside: signals, lost ranks, and processes that must not stay.
#include <cerrno>

#include "program_support.h"

using namespace zt::test;

TEST_CASE("a signal stops the run after its step, with code 128 + signal") {
  for (const int number : {1, 2}) {
    for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGHUP}) {
      CAPTURE(number, signal);
      const Workplace place;
      const fs::path run = place.file("run");
      Program program(Workplace::command(ranks(number) + endless), place.options());
      CHECK(program.wait_until([&] { return metrics_lines(run) >= 2; }));
      program.send(signal);
      const ProgramResult result = program.finish();
      INFO(result.err);
      CHECK(result.signal == 0);
      CHECK(result.code == 128 + signal);
      CHECK_FALSE(result.left_processes);
      CHECK(count_of(result.err, "stopped by signal " + std::to_string(signal) + " after step ") == 1);
      CHECK(count_of(result.err, "zerotrain: ") == 0);
      const Json summary = json_of(run / "summary.json");
      CHECK(summary.at("status") == "stopped");
      CHECK(summary.at("weights_checksum").is_string());
      CHECK(summary.at("memory").at("ranks").size() == static_cast<std::size_t>(number));
      CHECK(metrics_of(run).size() == summary.at("steps").at("attempted").get<std::size_t>());
    }
  }
}

// A handler's frame is written where the stack pointer points, and generated code may use it for something else.
TEST_CASE("no stop signal has a handler, and all threads of a rank but the one that waits have them blocked") {
  const Workplace place;
  const fs::path run = place.file("run");
  Program program(Workplace::command(ranks(2) + endless + Arguments{"--set", "device.threads=2"}), place.options());
  CHECK(program.wait_until([&] { return metrics_lines(run) >= 2; }));
  const auto mask_of = [](const fs::path& status, const std::string& name) {
    std::ifstream file(status);
    std::string line;
    while (std::getline(file, line)) {
      if (line.starts_with(name)) return std::stoull(line.substr(name.size()), nullptr, 16);
    }
    throw std::runtime_error("no " + name + " in " + status.string());
  };
  unsigned long long stops = 0;
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGHUP}) stops |= 1ULL << (signal - 1);
  const std::vector<pid_t> processes = children_of(program.process());
  REQUIRE(processes.size() == 2);
  for (const pid_t process : processes) {
    const fs::path folder = "/proc/" + std::to_string(process);
    CHECK((mask_of(folder / "status", "SigCgt:") & stops) == 0);
    int threads = 0, blocking = 0;
    for (const auto& task : fs::directory_iterator(folder / "task")) {
      ++threads;
      // In sigwait the kernel shows the awaited signals as not blocked.
      if ((mask_of(task.path() / "status", "SigBlk:") & stops) == stops) ++blocking;
    }
    CHECK(threads >= 3);  // the caller, a worker, the one that waits
    CHECK(blocking == threads - 1);
  }
  program.send(SIGTERM);
  CHECK(program.finish().code == 128 + SIGTERM);
}

TEST_CASE("a terminal that is closed stops the run with a checkpoint, however often it says so") {
  for (const int number : {1, 2}) {
    CAPTURE(number);
    const Workplace place;
    const fs::path run = place.file("run");
    const int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    REQUIRE(terminal >= 0);
    REQUIRE(grantpt(terminal) == 0);
    REQUIRE(unlockpt(terminal) == 0);
    const std::string other_end = ptsname(terminal);
    const Arguments command = Workplace::command(ranks(number) + endless);
    const std::string directory = place.path().string();
    const pid_t process = fork();
    if (process == 0) {
      setsid();
      const int end = open(other_end.c_str(), O_RDWR);  // the terminal of the new session
      std::vector<char*> words;
      for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
      words.push_back(nullptr);
      const bool is_ready =
          end >= 0 && dup2(end, 0) == 0 && dup2(end, 1) == 1 && dup2(end, 2) == 2 && chdir(directory.c_str()) == 0;
      if (is_ready) execv(words.front(), words.data());
      _exit(127);
    }
    REQUIRE(process > 0);
    const auto start = std::chrono::steady_clock::now();
    const auto seconds_since = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    fcntl(terminal, F_SETFL, O_NONBLOCK);
    std::array<char, 4096> shown{};
    while (metrics_lines(run) < 2 && seconds_since() < 60) {
      while (read(terminal, shown.data(), shown.size()) > 0) continue;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    close(terminal);
    kill(process, SIGHUP);  // as the shell does, beside the kernel
    int status = 0;
    while (waitpid(process, &status, WNOHANG) == 0 && seconds_since() < 120) {
      kill(process, SIGHUP);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 128 + SIGHUP);
    const Json summary = json_of(run / "summary.json");
    CHECK(summary.at("status") == "stopped");
    const std::string latest = contents_of(run / "checkpoints/latest");
    REQUIRE(latest.starts_with("step-"));
    CHECK(summary.at("steps").at("attempted") == std::stoll(latest.substr(5)));
  }
}

TEST_CASE("SIGHUP that was ignored at the start, as under nohup, stays so") {
  for (const int number : {1, 2}) {
    CAPTURE(number);
    const Workplace place;
    const fs::path run = place.file("run");
    Program program(Workplace::command(ranks(number) + endless, {"nohup"}), place.options());
    CHECK(program.wait_until([&] { return metrics_lines(run) >= 2; }));
    std::vector<pid_t> processes = children_of(program.process());
    processes.push_back(program.process());
    for (const pid_t process : processes) kill(process, SIGHUP);
    const std::size_t lines = metrics_lines(run);
    CHECK(program.wait_until([&] { return metrics_lines(run) >= lines + 10; }));
    program.send(SIGTERM);
    CHECK(program.finish().code == 128 + SIGTERM);
  }
}

TEST_CASE("a signal to one rank stops all after the same step") {
  const Workplace place;
  const fs::path run = place.file("run");
  Program program(Workplace::command(ranks(3) + endless), place.options());
  CHECK(program.wait_until([&] { return metrics_lines(run) >= 2; }));
  const std::vector<pid_t> processes = children_of(program.process());
  REQUIRE(processes.size() == 3);
  kill(processes.back(), SIGUSR1);
  const ProgramResult result = program.finish();
  INFO(result.err);
  CHECK(result.code == 128 + SIGUSR1);
  CHECK(json_of(run / "summary.json").at("status") == "stopped");
}

TEST_CASE("SIGUSR1 to mpirun stops its ranks, which write their summary") {
  if (!can_use_mpi()) return;
  const Workplace place;
  const fs::path run = place.file("run");
  Program program(Workplace::command(endless, mpirun(2)), place.options());
  CHECK(program.wait_until([&] { return metrics_lines(run) >= 2; }));
  program.send(SIGUSR1);
  const ProgramResult result = program.finish();
  INFO(result.err);
  CHECK(result.code == 128 + SIGUSR1);
  CHECK(json_of(run / "summary.json").at("status") == "stopped");
  CHECK(count_of(result.err, "stopped by signal") == 1);
}

TEST_CASE("a signal within a step of hours ends the run soon, as if the step had not begun") {
  const Arguments long_steps = {"--set", "train_batch_size=30000000", "--set", "data.samples=40000000"};
  for (const auto& [number, which] : std::vector<std::pair<int, int>>{{1, 0}, {3, 2}}) {
    CAPTURE(number, which);
    const Workplace place;
    const Arguments base = ranks(number) + stage(which);
    Program program(Workplace::command(base + long_steps + endless), place.options());
    CHECK(program.wait_until([&] { return program.err_so_far().find("model states") != std::string::npos; }));
    program.wait_until([] { return false; }, 2.0);
    const auto start = std::chrono::steady_clock::now();
    program.send(SIGTERM);
    const ProgramResult stopped = program.finish();
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(30));
    INFO(stopped.err);
    CHECK(stopped.code == 128 + SIGTERM);
    CHECK(stopped.err.find("after step 0, with a checkpoint: --resume goes on from there; step 1 was left after ") !=
          std::string::npos);
    CHECK(fs::exists(place.file("run/checkpoints/step-00000000/manifest.json")));
    CHECK(json_of(place.file("run/summary.json")).at("status") == "stopped");
    const Arguments short_steps = base + Arguments{"--set", "train_batch_size=6", "--set", "data.samples=40000000"};
    const ProgramResult resumed = place.run(short_steps + Arguments{"--resume"});
    check_completes(resumed);
    const Workplace other;
    check_completes(other.run(short_steps));
    CHECK(json_of(place.file("run/summary.json")).at("weights_checksum") ==
          json_of(other.file("run/summary.json")).at("weights_checksum"));
  }
}

TEST_CASE("a second signal ends the run at once") {
  // One micro-batch that takes long: between micro-batches a step is left. Attention does, and needs little memory.
  const Arguments long_steps = {"--set", "model.n_positions=65536", "--set", "model.n_embd=64",
                                "--set", "model.n_head=1",          "--set", "training.eval_interval=0"};
  for (const int number : {1, 2}) {
    CAPTURE(number);
    const Workplace place;
    Program program(Workplace::command(ranks(number) + long_steps +
                                       Arguments{"--set", "train_batch_size=" + std::to_string(number)}),
                    place.options());
    CHECK(program.wait_until([&] { return program.err_so_far().find("model states") != std::string::npos; }));
    std::vector<pid_t> processes = children_of(program.process());
    processes.push_back(program.process());
    program.send(SIGINT);
    // Signals of one number that have not been received do not add up.
    CHECK(program.wait_until([&] {
      return std::none_of(processes.begin(), processes.end(),
                          [](pid_t process) { return signal_is_pending(process, SIGINT); });
    }));
    const auto start = std::chrono::steady_clock::now();
    while (program.running() && std::chrono::steady_clock::now() - start < std::chrono::seconds(60)) {
      program.send(SIGINT);
      program.wait_until([] { return false; }, 0.5);
    }
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(8));
    const ProgramResult result = program.finish();
    INFO(result.err);
    CHECK(result.signal == 0);
    CHECK(result.code == 128 + SIGINT);
    CHECK_FALSE(result.left_processes);
    CHECK(count_of(result.err, "zerotrain: ") == 0);
    CHECK_FALSE(fs::exists(place.file("run/summary.json")));
    CHECK(metrics_lines(place.file("run")) == 0);
  }
}

TEST_CASE("a rank that does not answer is ended by the second signal") {
  const Workplace place;
  Program program(Workplace::command(ranks(3) + endless), place.options());
  CHECK(program.wait_until([&] { return metrics_lines(place.file("run")) >= 2; }));
  const std::vector<pid_t> processes = children_of(program.process());
  REQUIRE(processes.size() == 3);
  kill(processes.at(1), SIGSTOP);
  const auto start = std::chrono::steady_clock::now();
  // Until the very end: none may reach the program at a moment when it has no hand free for it.
  while (program.running() && std::chrono::steady_clock::now() - start < std::chrono::seconds(60)) {
    program.send(SIGTERM);
    program.wait_until([] { return false; }, 1e-4);
  }
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
  const ProgramResult result = program.finish();
  CHECK(result.signal == 0);
  CHECK(result.code == 128 + SIGTERM);
  CHECK_FALSE(result.left_processes);
}

TEST_CASE("a killed rank ends the run with code 1, one message and no process left") {
  for (const std::size_t victim : {0U, 1U, 2U}) {
    CAPTURE(victim);
    const Workplace place;
    const fs::path run = place.file("run");
    Program program(Workplace::command(ranks(3) + stage(3) + endless), place.options());
    CHECK(program.wait_until([&] { return metrics_lines(run) >= 2; }));
    const std::vector<pid_t> processes = children_of(program.process());
    REQUIRE(processes.size() == 3);
    kill(processes.at(victim), SIGKILL);
    CHECK_FALSE(program.wait_until([] { return false; }, 10.0));
    CHECK_FALSE(program.running());
    const ProgramResult result = program.finish();
    check_fails(result, 1, "(process " + std::to_string(processes.at(victim)) + ") was killed by signal 9");
    for (const pid_t process : processes) CHECK((kill(process, 0) == -1 && errno == ESRCH));
    // Rank 0 writes; where it is the one that was killed, rank 1 does.
    const Json summary = json_of(run / "summary.json");
    CHECK(summary.at("status") == "failed");
    CHECK(summary.at("error").get<std::string>().find("killed by signal 9") != std::string::npos);
  }
}

TEST_CASE("no rank outlives the program") {
  const Workplace place;
  Program program(Workplace::command(ranks(2) + endless), place.options());
  CHECK(program.wait_until([&] { return metrics_lines(place.file("run")) >= 2; }));
  const std::vector<pid_t> processes = children_of(program.process());
  REQUIRE(processes.size() == 2);
  program.send(SIGKILL);
  const ProgramResult result = program.finish();
  CHECK(result.signal == SIGKILL);
  CHECK_FALSE(result.left_processes);
}

TEST_CASE("the directory of a run that goes on is not taken from it") {
  for (const int number : {1, 2}) {
    CAPTURE(number);
    const Workplace place;
    Program program(Workplace::command(ranks(number) + endless), place.options());
    CHECK(program.wait_until([&] { return metrics_lines(place.file("run")) >= 2; }));
    for (const char* option : {"--overwrite", "--resume"}) {
      CAPTURE(option);
      check_fails(place.run({option, "--set", "training.max_steps=2"}), 2, "is in use");
    }
    CHECK(program.running());
    CHECK(metrics_lines(place.file("run")) >= 2);
    program.send(SIGTERM);
    CHECK(program.finish().code == 128 + SIGTERM);
    check_completes(place.run({"--overwrite", "--set", "training.max_steps=2"}));
  }
}
