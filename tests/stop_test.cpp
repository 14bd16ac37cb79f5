// A stop signal while a long step is being computed: it is left between two micro-steps, at the same one on all ranks,
// and the run that goes on from the checkpoint is the run that was never stopped.
#include <chrono>
#include <csignal>
#include <map>
#include <thread>

#include "catch_compat.h"
#include "checkpoint/directory.h"
#include "checkpoint/resume_point.h"
#include "comm/threads.h"
#include "config/resolve.h"
#include "config/resolve_again.h"
#include "core/json.h"
#include "plain_device.h"
#include "run_program.h"
#include "train/agreements.h"
#include "train/stop_watch.h"
#include "train/trainer.h"

using namespace zt;
using namespace zt::test;

namespace {

constexpr int terminate = 15;
constexpr int accumulation = 10;

using Sets = std::vector<std::string>;

const Sets base = {"model.type=gpt",
                   "model.n_layer=2",
                   "model.n_head=2",
                   "model.n_embd=16",
                   "model.n_positions=8",
                   "model.vocab_size=31",
                   "model.resid_pdrop=0.1",
                   "data.type=synthetic",
                   "data.task=tokens",
                   "data.samples=400",
                   "gradient_clipping=1.0",
                   "optimizer.type=AdamW",
                   "optimizer.params.lr=0.002",
                   "data_types.grad_accum_dtype=fp32",
                   "train_micro_batch_size_per_gpu=1",
                   "training.max_steps=4",
                   "training.eval_interval=0",
                   "device.threads=1"};

Sets operator+(Sets left, const Sets& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

class Run {
 public:
  explicit Run(Sets sets) : sets_(std::move(sets)) { std::filesystem::create_directories(directory()); }

  // `calm`: so often the last rank is asked for a signal before there is one; the others never have any.
  int train_on(int ranks, int stage, std::int64_t calm, bool resume = false) {
    ResolveOptions resolving;
    TrainOptions options;
    options.quiet = true;
    options.asks_for_stop_every = 0.0;
    options.process_start = std::chrono::steady_clock::now();
    if (resume) {
      options.resume = true;
      options.resume_point = find_resume_point("", directory(), false).point;
      REQUIRE(options.resume_point);
      resolving.resumed = batch_of(options.resume_point->manifest.config, "the checkpoint");
    }
    Sets sets =
        base + sets_ + Sets{"training.output_dir=" + directory(), "zero_optimization.stage=" + std::to_string(stage)};
    if (!resume) sets.push_back("gradient_accumulation_steps=" + std::to_string(accumulation));
    const ResolvedConfig config = resolve_config({}, sets, ranks, resolving);
    const Dataset dataset = open_dataset(config.settings);
    int code = 0;
    run_ranks_as_threads(ranks, 0, [&](Communicator& communicator) {
      TrainOptions mine = options;
      const bool last = communicator.rank() + 1 == communicator.size();
      std::int64_t asked = 0;
      mine.stop_signal = [&] { return last && asked++ >= calm ? terminate : 0; };
      const int result = train(config, dataset, communicator, mine);
      if (communicator.rank() == 0) code = result;
    });
    return code;
  }
  int train_undisturbed(int ranks, int stage) { return train_on(ranks, stage, 1'000'000'000); }

  std::string directory() const { return (place_.path() / "run").string(); }
  std::vector<std::int64_t> checkpoints() const { return list_checkpoints(directory() + "/checkpoints").finished; }
  nlohmann::ordered_json summary() const {
    return nlohmann::ordered_json::parse(contents_of(directory() + "/summary.json"));
  }
  std::string log() const { return contents_of(directory() + "/train.log"); }
  // By step; of a step that was taken twice both.
  std::multimap<std::int64_t, std::string> curve() const {
    std::multimap<std::int64_t, std::string> steps;
    std::istringstream lines(contents_of(directory() + "/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const auto record = nlohmann::ordered_json::parse(line);
      if (record.at("kind") != "train") continue;
      std::string values;
      for (const char* key : {"loss", "grad_norm", "loss_scale", "samples", "learning_rate"})
        values += record.at(key).dump() + " ";
      steps.emplace(record.at("step").get<std::int64_t>(), values);
    }
    return steps;
  }

 private:
  TemporaryDirectory place_;
  Sets sets_;
};

void check_same(const Run& run, const Run& undisturbed) {
  CHECK(run.curve() == undisturbed.curve());
  CHECK(run.summary().at("weights_checksum") == undisturbed.summary().at("weights_checksum"));
  CHECK(run.summary().at("steps") == undisturbed.summary().at("steps"));
}

}  // namespace

// Here the ranks ask each other before every micro-step, and vote at the end of a step: eleven times in each.
TEST_CASE("a step that a signal comes in is left, and done anew by the run that goes on: the same bits") {
  for (const int ranks : {1, 3}) {
    for (const int stage : {0, 1, 2, 3}) {
      CAPTURE(ranks, stage);
      Run undisturbed({});
      CHECK(undisturbed.train_undisturbed(ranks, stage) == 0);
      Run run({});
      CHECK(run.train_on(ranks, stage, 16) == 128 + terminate);
      CHECK(run.log().find("after step 1, with a checkpoint: --resume goes on from there; step 2 was left after 5 of "
                           "its 10 micro-steps") != std::string::npos);
      CHECK(run.checkpoints() == std::vector<std::int64_t>{1});
      const auto summary = run.summary();
      CHECK(summary.at("status") == "stopped");
      CHECK(summary.at("stop_reason") == "signal");
      CHECK(summary.at("steps").at("attempted") == 1);
      CHECK(summary.at("communication").at("elements") == summary.at("communication").at("planned_elements"));
      CHECK(run.curve().size() == 1);
      CHECK(run.train_on(ranks, stage, 1'000'000'000, true) == 0);
      check_same(run, undisturbed);
    }
  }
}

TEST_CASE("wherever in a run the signal comes, nothing is lost or doubled") {
  for (const Sets& sets : std::vector<Sets>{
           {},
           {"training.gradient_accumulation_order=local"},
           {"training.report_delay=1"},
           {"training.checkpoint_in_background=true", "training.checkpoint_interval=1"},
           {"fp16.enabled=true", "fp16.initial_scale_power=24", "fp16.on_overflow=retry", "fp16.hysteresis=1"}}) {
    Run undisturbed(sets);
    CHECK(undisturbed.train_undisturbed(2, 1) == 0);
    for (const std::int64_t calm : {0, 4, 10, 11, 17, 25}) {
      CAPTURE(sets, calm);
      Run run(sets);
      CHECK(run.train_on(2, 1, calm) == 128 + terminate);
      CHECK(run.curve().size() == run.summary().at("steps").at("attempted").get<std::size_t>());
      CHECK(run.checkpoints().back() == run.summary().at("steps").at("attempted"));
      CHECK(run.train_on(2, 1, 1'000'000'000, true) == 0);
      check_same(run, undisturbed);
    }
  }
}

TEST_CASE("a run that was stopped in its first step goes on from step 0, on other ranks and at another stage too") {
  Run undisturbed({});
  CHECK(undisturbed.train_undisturbed(3, 2) == 0);
  Run run({});
  CHECK(run.train_on(3, 2, 3) == 128 + terminate);
  CHECK(
      run.log().find("after step 0, with a checkpoint: --resume goes on from there; step 1 was left after 3 of its 10 "
                     "micro-steps") != std::string::npos);
  CHECK(run.checkpoints() == std::vector<std::int64_t>{0});
  CHECK(run.summary().at("final").at("loss").is_null());
  // Thirty micro-batches on four ranks: in the last of eight micro-steps two ranks have none.
  CHECK(run.train_on(4, 3, 4, true) == 128 + terminate);
  CHECK(run.train_on(1, 0, 1'000'000'000, true) == 0);
  check_same(run, undisturbed);
}

TEST_CASE("ranks ask each other rarely where micro-steps are quick, and before each where they are slow") {
  const auto asked_of = [](double seconds_between, int times, std::chrono::milliseconds each) {
    std::vector<std::int64_t> asked(3);
    run_ranks_as_threads(3, 0, [&](Communicator& communicator) {
      PlainDevice device;
      StopWatch watch([] { return 0; }, seconds_between);
      for (int k = 0; k < times; ++k) {
        if (each.count() > 0) std::this_thread::sleep_for(each);
        watch.ask(device, communicator);
      }
      asked[static_cast<std::size_t>(communicator.rank())] = watch.asked();
    });
    CHECK(asked[1] == asked[0]);
    CHECK(asked[2] == asked[0]);
    return asked[0];
  };
  CHECK(asked_of(1000.0, 10000, {}) == 14);  // 1, 2, 4 ... 8192 micro-steps apart
  CHECK(asked_of(0.0, 500, {}) == 500);
  CHECK(asked_of(0.01, 20, std::chrono::milliseconds(20)) == 20);
}

TEST_CASE("a signal to one rank is answered on all of them at the next question") {
  std::vector<int> stopped(3, -1);
  run_ranks_as_threads(3, 0, [&](Communicator& communicator) {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    PlainDevice device;
    int k = 0;
    StopWatch watch([&] { return rank == 1 && k >= 5 ? terminate : 0; }, 1000.0);
    for (; k < 100 && stopped[rank] < 0; ++k) {
      if (watch.ask(device, communicator) == terminate) stopped[rank] = k;
    }
  });
  CHECK(stopped == std::vector<int>{7, 7, 7});  // asked at 0, 1, 3, 7
}

TEST_CASE("a sum of votes tells a signal to stop for that some rank has received, of however many ranks") {
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGHUP}) {
    CAPTURE(signal);
    const std::int64_t vote = vote_for(signal);
    for (const std::int64_t ranks : {1, 2, 255, 32767}) CHECK(signal_of(ranks * vote) == signal);
    for (const std::int64_t ranks : {32768, 100000, 262143}) CHECK(signal_of(ranks * vote) != 0);
    for (const int other : {SIGINT, SIGTERM, SIGUSR1, SIGHUP}) {
      const int told = signal_of(32767 * (vote + (other == signal ? 0 : vote_for(other))));
      CHECK((told == signal || told == other));
    }
  }
  CHECK(vote_for(0) == 0);
  CHECK(signal_of(0) == 0);
}
