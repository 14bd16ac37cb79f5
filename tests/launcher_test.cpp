#include "app/launcher.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "catch_compat.h"
#include "comm/topology.h"
#include "communicator_checks.h"
#include "core/errors.h"

using namespace zt;
using namespace zt::test;

namespace {

struct Outcome {
  int code = -1;     // exit code of the parent of the ranks; 128 + signal if it was killed
  std::string text;  // what it and its ranks wrote to stderr
  double seconds = 0.0;
};

// The launcher in a process of its own, so that its signals and its stderr can be watched. `meanwhile` gets its
// process number.
Outcome launch(const LaunchOptions& options, const std::function<int(Communicator&)>& body,
               const std::function<void(pid_t)>& meanwhile = {}) {
  std::array<int, 2> ends{};
  REQUIRE(pipe(ends.data()) == 0);
  std::fflush(nullptr);
  const auto start = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child == 0) {
    // Not the handlers of the test framework.
    for (const int number : {SIGINT, SIGTERM, SIGUSR1, SIGSEGV, SIGABRT}) signal(number, SIG_DFL);
    dup2(ends[1], 2);
    close(ends[0]);
    close(ends[1]);
    _exit(launch_local_ranks(options, body));
  }
  close(ends[1]);
  if (meanwhile) meanwhile(child);
  Outcome outcome;
  std::array<char, 4096> part{};
  // Ends when the parent and all ranks have ended: none holds the pipe any more.
  for (ssize_t got = 0; (got = read(ends[0], part.data(), part.size())) > 0;) {
    outcome.text.append(part.data(), static_cast<std::size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return outcome;
}

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

void pause_seconds(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

volatile sig_atomic_t last_signal = 0;
void remember(int signal) { last_signal = signal; }

}  // namespace

TEST_CASE("local processes gather and reduce in rank order, on one node and over several") {
  for (const int ranks : {1, 2, 3, 4}) {
    for (const int ranks_per_node : {0, 1, 2}) {
      CAPTURE(ranks, ranks_per_node);
      const Outcome outcome = launch({.ranks = ranks, .ranks_per_node = ranks_per_node}, [&](Communicator& c) {
        PlainDevice device;
        check_communicator(c, device, {0, 5, 3000});
        check_counts_of_dry_run(c, 96);
        // Larger than what fits a socket, or is copied through the caches.
        check_all_gather<float>(c, device, Stream::gather, 1200003);
        check_reduce_scatter<bf16_t, float>(c, device, Stream::reduce, 1200003);
        check_all_to_all<float>(c, device, Stream::reduce, 100003);
        return 0;
      });
      CHECK(outcome.text.empty());
      CHECK(outcome.code == 0);
    }
  }
}

TEST_CASE("mapped memory of peers is measured") {
  const Outcome outcome = launch({.ranks = 3}, [](Communicator& c) {
    PlainDevice device;
    const std::int64_t slice = 1 << 20;
    auto buffer = c.allocate(device, 3 * slice * 4, MemoryCategory::parameters, "p");
    require(c.peers_shared_bytes() < 1 << 20, "nothing is resident yet");
    std::memset(buffer->data(), 1, static_cast<std::size_t>(buffer->bytes()));
    c.all_gather(device, Stream::gather, {buffer.get(), 0, slice * 4}, buffer->view(0, 3 * slice, DType::f32));
    const std::int64_t shared = c.peers_shared_bytes();
    c.barrier();
    require(shared >= 2 * slice * 4 && shared <= 2 * buffer->bytes(), "slices of two peers: " + std::to_string(shared));
    buffer.reset();
    require(c.peers_shared_bytes() == 0, "nothing is mapped any more");
    return 0;
  });
  CHECK(outcome.text.empty());
  CHECK(outcome.code == 0);
}

TEST_CASE("cores are divided among the ranks if there are enough") {
  const auto cores = static_cast<int>(allowed_cores().size());
  for (const int ranks : {1, 2, 4}) {
    const Outcome outcome = launch({.ranks = ranks}, [&](Communicator& c) {
      std::int64_t sum = static_cast<std::int64_t>(allowed_cores().size());
      c.all_reduce_sum({&sum, 1});
      require(sum == (ranks <= cores ? cores : cores * ranks), "cores of all ranks: " + std::to_string(sum));
      return 0;
    });
    CHECK(outcome.text.empty());
    CHECK(outcome.code == 0);
  }
}

TEST_CASE("exit codes and messages of ranks reach the user once") {
  Outcome outcome = launch({.ranks = 3}, [](Communicator& c) {
    c.barrier();
    return c.rank() == 1 ? 7 : 0;
  });
  CHECK(outcome.code == 7);
  CHECK(outcome.text.empty());

  outcome = launch({.ranks = 3}, [](Communicator& c) -> int {
    c.barrier();
    if (c.rank() == 1) throw UserError("data.path: no such file");
    for (;;) c.barrier();
  });
  CHECK(outcome.code == 2);
  CHECK(outcome.text == "zerotrain: rank 1: data.path: no such file\n");
  CHECK(outcome.seconds < 3.0);

  outcome = launch({.ranks = 3}, [](Communicator&) -> int { throw RunError("all fail alike"); });
  CHECK(outcome.code == 1);
  CHECK(count_of(outcome.text, "all fail alike") == 1);

  outcome = launch({.ranks = 2}, [](Communicator& c) -> int {
    if (c.rank() == 0) c.abort(1, "said by the rank itself");
    if (c.rank() == 0) return 1;
    for (;;) c.barrier();
  });
  CHECK(outcome.code == 1);
  CHECK(outcome.text == "zerotrain: said by the rank itself\n");

  outcome = launch({.ranks = 2}, [](Communicator& c) {
    if (c.rank() == 1) return 0;
    for (;;) c.barrier();
  });
  CHECK(outcome.code == 1);
  CHECK(count_of(outcome.text, "rank 1") == 1);
}

TEST_CASE("a killed rank ends the run within seconds, with one message that names it") {
  for (const int ranks_per_node : {0, 1}) {
    CAPTURE(ranks_per_node);
    const Outcome outcome = launch({.ranks = 3, .ranks_per_node = ranks_per_node}, [](Communicator& c) -> int {
      c.barrier();
      if (c.rank() == 2) kill(getpid(), SIGKILL);
      for (;;) c.barrier();
    });
    CHECK(outcome.code == 1);
    CHECK(outcome.seconds < 3.0);
    CHECK(count_of(outcome.text, "\n") == 1);
    CHECK(count_of(outcome.text, "zerotrain: rank 2 (process ") == 1);
    CHECK(count_of(outcome.text, "was killed by signal 9 (Killed); the other ranks have been stopped") == 1);
  }
  // Ranks that compute and do not look are stopped too.
  Outcome outcome = launch({.ranks = 2, .grace_seconds = 0.5}, [](Communicator& c) -> int {
    if (c.rank() == 0) kill(getpid(), SIGKILL);
    for (;;) pause_seconds(1.0);
  });
  CHECK(outcome.code == 1);
  CHECK(outcome.seconds < 5.0);
  CHECK(count_of(outcome.text, "\n") == 1);

  outcome = launch({.ranks = 2}, [](Communicator& c) -> int {
    if (c.rank() == 0) _exit(0);
    for (;;) c.barrier();
  });
  CHECK(outcome.code == 1);
  CHECK(count_of(outcome.text, "ended with exit code 0 before it had finished") == 1);
}

TEST_CASE("signals reach every rank once, and the code is 128 + signal") {
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGHUP}) {
    CAPTURE(signal);
    const auto stop_after = [&](pid_t parent) {
      pause_seconds(0.5);
      kill(parent, signal);
    };
    // Ranks that stop at the end of a step.
    Outcome outcome = launch(
        {.ranks = 3},
        [&](Communicator& c) {
          struct sigaction action {};
          action.sa_handler = remember;
          sigaction(signal, &action, nullptr);
          std::int64_t stop = 0;
          while (stop == 0) {
            pause_seconds(0.01);
            stop = last_signal;
            c.all_reduce_sum({&stop, 1});
          }
          return 128 + signal;
        },
        stop_after);
    CHECK(outcome.code == 128 + signal);
    CHECK(outcome.text.empty());
    // Ranks that do not expect it.
    outcome = launch(
        {.ranks = 2},
        [](Communicator& c) -> int {
          for (;;) c.barrier();
        },
        stop_after);
    CHECK(outcome.code == 128 + signal);
    CHECK(outcome.text.empty());
  }
}

TEST_CASE("no rank outlives the launcher") {
  const Outcome outcome = launch(
      {.ranks = 3},
      [](Communicator&) -> int {
        for (;;) pause_seconds(1.0);
      },
      [](pid_t parent) {
        pause_seconds(0.5);
        kill(parent, SIGKILL);
      });
  // launch() has returned, so all ends of the pipe are closed.
  CHECK(outcome.code == 128 + SIGKILL);
  CHECK(outcome.seconds < 5.0);
}
