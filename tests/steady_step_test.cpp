// What a step costs beside its arithmetic, once the first steps have taken what they need: the trainer itself runs, on
// one rank and on several, and nothing of ours is allocated, locked or asked of the kernel. Counts, not times.
#include <pthread.h>
#include <sys/wait.h>

#include <filesystem>
#include <string>
#include <vector>

#include "catch_compat.h"
#include "comm/threads.h"
#include "config/resolve.h"
#include "steady_step_hooks.h"
#include "system_call_trap.h"
#include "train/trainer.h"

using namespace zt;
using namespace zt::test;

namespace {

namespace fs = std::filesystem;

constexpr int steps = 9;
constexpr int first_steady = 4;  // other ranks may still be at the end of step 2 when rank 0 begins step 3

const std::vector<std::string> mlp = {"model.type=mlp", "model.layers=[96, 160, 5]", "data.type=synthetic",
                                      "data.task=regression", "optimizer.type=SGD"};
// Long enough that attention has several blocks of queries.
const std::vector<std::string> gpt = {"model.type=gpt",        "model.n_layer=2",       "model.n_head=2",
                                      "model.n_embd=64",       "model.n_positions=160", "model.vocab_size=67",
                                      "data.type=synthetic",   "data.task=tokens",      "data.samples=300",
                                      "gradient_clipping=1.0", "optimizer.type=AdamW"};

std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

class Directory {
 public:
  Directory() : path_(fs::temp_directory_path() / ("zerotrain-steady-" + std::to_string(getpid()))) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~Directory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

// Trains on ranks that are threads; `before_end` is called on rank 0 before the end of each step, with how many are
// done.
template <typename BeforeEnd>
void train_steps(const std::vector<std::string>& sets, int ranks, const BeforeEnd& before_end) {
  const Directory directory;
  const ResolvedConfig config = resolve_config(
      {},
      sets + std::vector<std::string>{"training.max_steps=" + std::to_string(steps), "training.eval_interval=0",
                                      "steps_per_print=1000", "training.output_dir=" + directory.path()},
      ranks);
  const Dataset dataset = open_dataset(config.settings);
  run_ranks_as_threads(ranks, 0, [&](Communicator& communicator) {
    TrainOptions options;
    options.quiet = true;
    options.process_start = std::chrono::steady_clock::now();
    options.asks_for_stop_every = std::nullopt;  // then the signal is looked for once a step, at its end
    int done = 0;
    options.stop_signal = [&, first = communicator.rank() == 0] {
      if (first) before_end(done++);
      return 0;
    };
    CHECK(train(config, dataset, communicator, options) == 0);
  });
}

void check_steady(const std::vector<std::string>& sets, int ranks) {
  std::string text;
  for (const std::string& set : sets) text += set + " ";
  INFO(text << "on " << ranks << " rank(s)");
  std::vector<hooks::Counts> before(steps);
  train_steps(sets, ranks, [&](int done) {
    before.at(static_cast<std::size_t>(done)) = hooks::counts();
    hooks::counting = done >= first_steady - 1 && done + 1 < steps;
  });
  const hooks::Counts& begin = before.at(first_steady - 1);
  const hooks::Counts& end = before.back();
  INFO("places of the first ones:\n" << hooks::first_places());
  CHECK(end.ours - begin.ours == 0);
  CHECK(end.locks - begin.locks == 0);
  // What the library allocates is small, and the same in each step. Several ranks are at different places of a step
  // when rank 0 is counted, so that only one is held to the number.
  CHECK(end.largest_of_library < 4096);
  // Its gemm, which it takes for some transposed operands, packs panels of them into memory that it does not ask for
  // beforehand: of a tile, never of a whole matrix.
  CHECK(end.largest_of_gemm < std::int64_t{4} << 20);
  if (ranks > 1) return;
  for (std::size_t step = first_steady; step + 1 < before.size(); ++step) {
    CHECK(before[step + 1].of_library - before[step].of_library ==
          before[first_steady].of_library - before[first_steady - 1].of_library);
  }
}

}  // namespace

TEST_CASE("a steady step of an MLP allocates nothing and takes no lock") {
  for (const char* threads : {"device.threads=1", "device.threads=2"}) {
    for (const std::vector<std::string>& precision : std::vector<std::vector<std::string>>{
             {}, {"fp16.enabled=true", "fp16.initial_scale_power=4"}, {"bf16.enabled=true"}}) {
      for (const char* batch : {"train_batch_size=4", "train_batch_size=48"})
        check_steady(mlp + precision + std::vector<std::string>{threads, batch}, 1);
    }
  }
}

TEST_CASE("a steady step of a GPT allocates nothing and takes no lock") {
  for (const char* threads : {"device.threads=1", "device.threads=2"}) {
    for (const std::vector<std::string>& precision : std::vector<std::vector<std::string>>{
             {}, {"fp16.enabled=true", "fp16.initial_scale_power=4"}, {"bf16.enabled=true"}}) {
      check_steady(gpt + precision + std::vector<std::string>{threads, "train_batch_size=2"}, 1);
    }
  }
  check_steady(gpt + std::vector<std::string>{"model.resid_pdrop=0.1", "model.attn_pdrop=0.1", "model.embd_pdrop=0.1",
                                              "train_batch_size=4", "gradient_accumulation_steps=2"},
               1);
}

TEST_CASE("a steady step of ranks that share gradients and parameters allocates nothing and takes no lock") {
  for (const int stage : {0, 1, 2, 3}) {
    check_steady(gpt + std::vector<std::string>{"train_batch_size=4", "device.threads=1",
                                                "zero_optimization.stage=" + std::to_string(stage)},
                 2);
  }
}

// The library allocates in its products, so that a count of nothing would mean that nothing was looked at.
TEST_CASE("the count sees allocations and locks") {
  hooks::counting = true;
  const hooks::Counts before = hooks::counts();
  delete new int(1);
  std::free(std::malloc(100));
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
  const hooks::Counts after = hooks::counts();
  hooks::counting = false;
  CHECK(after.ours - before.ours >= 1);  // a compiler may leave out what has no effect
  CHECK(after.locks - before.locks == 1);
}

namespace {

// Trains in a process of its own, whose main thread is looked at. -1: cannot be looked at here.
std::int64_t system_calls_of_steady_steps(const std::vector<std::string>& sets, bool with_futex) {
  SystemCallCounts& counts = *system_calls();
  counts.installed = false;
  counts.counting = false;
  for (auto& count : counts.by_number) count = 0;
  const pid_t child = fork();
  if (child == 0) {
    // Ranks as threads have threads of their own: the first is looked at from within.
    train_steps(sets, 1, [&](int done) {
      if (done == first_steady - 2) counts.installed = trap_system_calls_of_this_thread();
      if (done == first_steady - 1) {
        getppid();  // the trap sees calls
        if (counts.installed) counts.counting = true;
        getppid();
      }
      if (done == steps - 1) _exit(0);
    });
    _exit(1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) == 0);
  if (!counts.installed) return -1;
  CHECK(counts.by_number[SYS_getppid] == 1);
  counts.by_number[SYS_getppid] = 0;
  counts.by_number[SYS_exit_group] = 0;
  // Where the kernel does not offer its clock to be read without one, that is no doing of ours.
  counts.by_number[SYS_clock_gettime] = 0;
  if (!with_futex) counts.by_number[SYS_futex] = 0;
  std::int64_t all = 0;
  for (std::size_t number = 0; number < counts.by_number.size(); ++number) {
    const std::int64_t calls = counts.by_number[number];
    if (calls > 0) UNSCOPED_INFO("system call " << number << ": " << calls);
    all += calls;
  }
  return all;
}

}  // namespace

TEST_CASE("the steady steps' thread makes no system call, but those by which the threads of a pool wait") {
  for (const std::vector<std::string>& model :
       {mlp + std::vector<std::string>{"train_batch_size=4"}, gpt + std::vector<std::string>{"train_batch_size=2"}}) {
    const std::int64_t alone = system_calls_of_steady_steps(model + std::vector<std::string>{"device.threads=1"}, true);
    if (alone < 0) {
      WARN("skipped: this machine allows no seccomp filter, or is no x86-64");
      return;
    }
    CHECK(alone == 0);
    CHECK(system_calls_of_steady_steps(model + std::vector<std::string>{"device.threads=2"}, false) == 0);
  }
}
