// The program from the outside: checkpoints, and runs that go on from them.
#include <functional>
#include <map>

#include "checkpoint/checksum.h"
#include "checkpoint/directory.h"
#include "program_support.h"

using namespace zt::test;

namespace {

const Arguments every_second = {"--set", "training.checkpoint_interval=2", "--set", "training.max_steps=8"};

fs::path checkpoint(const fs::path& run, std::int64_t step) { return run / "checkpoints" / zt::checkpoint_name(step); }

std::vector<std::int64_t> finished(const fs::path& run) {
  return zt::list_checkpoints((run / "checkpoints").string()).finished;
}

// Curve lines by step, the later of the same step counting; and the final checksum.
std::map<std::int64_t, std::string> steps_of(const fs::path& run) {
  std::map<std::int64_t, std::string> steps;
  for (const Json& record : metrics_of(run)) {
    if (record.at("kind") != "train") continue;
    steps[record.at("step").get<std::int64_t>()] =
        record.at("loss").dump() + " " + record.at("grad_norm").dump() + " " + record.at("loss_scale").dump() + " " +
        record.at("samples").dump() + " " + record.at("tokens").dump() + " " + record.at("learning_rate").dump();
  }
  return steps;
}
std::string checksum_of_run(const fs::path& run) { return json_of(run / "summary.json").at("weights_checksum"); }

// The first `steps` steps of a run with a checkpoint there, as if it had been stopped.
void run_part(const Workplace& place, const Arguments& launch, std::int64_t steps, const Arguments& more = {}) {
  check_completes(
      place.run(launch + every_second + Arguments{"--set", "training.max_steps=" + std::to_string(steps)} + more));
}

struct Whole {
  std::map<std::int64_t, std::string> steps;
  std::string checksum;
};
Whole undisturbed(const Arguments& more = {}) {
  const Workplace place;
  check_completes(place.run(every_second + more));
  return {steps_of(place.file("run")), checksum_of_run(place.file("run"))};
}

void require_whole(const fs::path& run, const Whole& whole) {
  CHECK(steps_of(run) == whole.steps);
  CHECK(checksum_of_run(run) == whole.checksum);
}

// Starts of the run: one, and each that it went on at.
std::size_t worlds_begun(const fs::path& run) {
  return 1 + static_cast<std::size_t>(count_of(contents_of(run / "metrics.jsonl"), "\"resume\""));
}
// A checkpoint has been written since it last went on.
bool has_gone_on(const fs::path& run) {
  const std::string metrics = contents_of(run / "metrics.jsonl");
  const std::size_t at = metrics.rfind("\"resume\"");
  const auto steps = finished(run);
  if (steps.empty()) return false;
  return at == std::string::npos || steps.back() > std::stoll(metrics.substr(metrics.find("\"step\": ", at) + 8));
}

void change_byte(const fs::path& file, std::int64_t from_end) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekg(-from_end, std::ios::end);
  const int byte = stream.get();
  stream.seekp(-from_end, std::ios::end);
  stream.put(static_cast<char>(byte ^ 0x10));
}

}  // namespace

TEST_CASE("a resumed run goes on on the same curve, at any number of ranks and any stage") {
  const Whole whole = undisturbed();
  struct Part {
    int ranks, stage;
  };
  for (const auto& [first, second] : std::vector<std::pair<Part, Part>>{{{1, 0}, {1, 0}},
                                                                        {{3, 3}, {3, 3}},
                                                                        {{1, 0}, {4, 3}},
                                                                        {{4, 3}, {3, 1}},
                                                                        {{2, 2}, {7, 3}},
                                                                        {{7, 1}, {1, 0}}}) {
    CAPTURE(first.ranks, first.stage, second.ranks, second.stage);
    const Workplace place;
    const fs::path run = place.file("run");
    // Ranks that six micro-batches cannot be dealt evenly to take part only where a run goes on.
    if (6 % first.ranks != 0) {
      run_part(place, {}, 2);
      check_completes(place.run(ranks(first.ranks) + stage(first.stage) + every_second +
                                Arguments{"--set", "training.max_steps=4", "--resume"}));
    } else {
      run_part(place, ranks(first.ranks) + stage(first.stage), 4);
    }
    CHECK(finished(run) == std::vector<std::int64_t>{2, 4});
    const ProgramResult result =
        place.run(ranks(second.ranks) + stage(second.stage) + every_second + Arguments{"--resume"});
    check_completes(result);
    INFO(result.err);
    CHECK(count_of(result.err, "going on after step 4 from ") == 1);
    CHECK((result.err.find("6 micro-batches a step on") != std::string::npos) == (6 % second.ranks != 0));
    require_whole(run, whole);
    CHECK(finished(run) == std::vector<std::int64_t>{6, 8});
    CHECK(contents_of(run / "checkpoints/latest") == "step-00000008\n");
    const Json summary = json_of(run / "summary.json");
    CHECK(summary.at("steps").at("attempted") == 8);
    CHECK(summary.at("communication").at("elements") == summary.at("communication").at("planned_elements"));
    CHECK(summary.at("checkpoints").at("written") == 2);
    check_memory_and_communication(run);
  }
}

TEST_CASE("a resumed run goes on in fp16 with its scale, its skipped steps and its schedule, over MPI too") {
  const Arguments more =
      fp16 + every_second + Arguments{"--set", R"(scheduler={"type":"WarmupLR","params":{"warmup_num_steps":5}})"};
  const Whole whole = undisturbed(more);
  for (const bool mpi : {false, true}) {
    if (mpi && !can_use_mpi()) continue;
    const Workplace place;
    const Arguments launcher = mpi ? mpirun(3) : Arguments{};
    const Arguments here = mpi ? Arguments{} : ranks(3);
    check_completes(place.run(here + more + Arguments{"--set", "training.max_steps=4"}, launcher));
    check_completes(place.run(here + stage(2) + more + Arguments{"--resume"}, launcher));
    require_whole(place.file("run"), whole);
  }
}

TEST_CASE("a signal leaves a checkpoint whatever the interval, from which the run goes on") {
  const Whole whole = undisturbed();
  for (const int number : {1, 3}) {
    CAPTURE(number);
    const Workplace place;
    const fs::path run = place.file("run");
    Program program(Workplace::command(ranks(number) + Arguments{"--set", "training.max_steps=100000000"}),
                    place.options());
    CHECK(program.wait_until([&] { return metrics_lines(run) >= 1; }));
    program.send(SIGTERM);
    const ProgramResult stopped = program.finish();
    INFO(stopped.err);
    CHECK(stopped.code == 128 + SIGTERM);
    const std::vector<std::int64_t> steps = finished(run);
    REQUIRE(steps.size() == 1);
    CHECK(steps.front() == json_of(run / "summary.json").at("steps").at("attempted"));
    if (steps.front() >= 8) continue;  // a fast machine
    check_completes(place.run(ranks(number) + every_second + Arguments{"--resume"}));
    require_whole(run, whole);
  }
}

TEST_CASE("a damaged checkpoint is named, and the one before is taken when asked for") {
  const Whole whole = undisturbed();
  struct Damage {
    std::string what, told;
    std::function<void(const fs::path&)> make;
  };
  const auto manifest_with = [](const std::string& from, const std::string& to) {
    return [from, to](const fs::path& path) {
      std::string text = contents_of(path / "manifest.json");
      const std::size_t at = text.find(from);
      REQUIRE(at != std::string::npos);
      text.replace(at, from.size(), to);
      std::ofstream(path / "manifest.json", std::ios::binary) << text;
    };
  };
  const std::vector<Damage> damages = {
      {"a flipped bit", "rank-00001.exp_avg.safetensors: its checksum",
       [](const fs::path& path) { change_byte(path / "rank-00001.exp_avg.safetensors", 5); }},
      {"a flipped bit in a header", "rank-00000.weights.safetensors: its checksum",
       [](const fs::path& path) {
         change_byte(path / "rank-00000.weights.safetensors",
                     static_cast<std::int64_t>(fs::file_size(path / "rank-00000.weights.safetensors")) - 20);
       }},
      {"a file cut short", "rank-00001.weights.safetensors has",
       [](const fs::path& path) {
         fs::resize_file(path / "rank-00001.weights.safetensors",
                         fs::file_size(path / "rank-00001.weights.safetensors") / 2);
       }},
      {"a missing shard", "rank-00000.exp_avg_sq.safetensors is missing",
       [](const fs::path& path) { fs::remove(path / "rank-00000.exp_avg_sq.safetensors"); }},
      {"a manifest cut short", "manifest.json: it does not end in its checksum",
       [](const fs::path& path) {
         fs::resize_file(path / "manifest.json", fs::file_size(path / "manifest.json") - 9);
       }},
      {"a changed manifest", "manifest.json: its checksum does not fit", manifest_with("\"step\": 4", "\"step\": 5")},
      {"an empty manifest", "manifest.json: it does not end in its checksum",
       [](const fs::path& path) { std::ofstream(path / "manifest.json", std::ios::trunc); }},
  };
  const Workplace original;
  run_part(original, ranks(2), 4);
  for (const Damage& damage : damages) {
    CAPTURE(damage.what);
    const Workplace place;
    const fs::path run = place.file("run");
    fs::copy(original.file("run"), run, fs::copy_options::recursive);
    damage.make(checkpoint(run, 4));
    const ProgramResult refused = place.run(ranks(2) + every_second + Arguments{"--resume"});
    check_fails(refused, 1, damage.told);
    INFO(refused.err);
    CHECK(refused.err.find("--resume-previous goes on from ") != std::string::npos);
    CHECK(refused.err.find("step-00000002") != std::string::npos);
    const ProgramResult result = place.run(ranks(2) + every_second + Arguments{"--resume-previous"});
    check_completes(result);
    CHECK(result.err.find("going on after step 2 from") != std::string::npos);
    CHECK(fs::exists(run / "checkpoints/step-00000004.set-aside"));
    require_whole(run, whole);
  }
}

TEST_CASE("a manifest of a newer version is refused with what wrote it") {
  const Workplace place;
  run_part(place, {}, 4);
  const fs::path path = checkpoint(place.file("run"), 4) / "manifest.json";
  std::string text = contents_of(path);
  text.replace(text.find("\"version\": 1"), 12, "\"version\": 9");
  text.erase(text.rfind(",\n  \"checksum\""));
  std::ofstream(path, std::ios::binary) << text << ",\n  \"checksum\": \"" << zt::checksum_text(zt::checksum_of(text))
                                        << "\"\n}\n";
  check_fails(place.run(every_second + Arguments{"--resume"}), 1, "it was written by a newer zerotrain");
}

TEST_CASE("what latest says is checked") {
  const Workplace place;
  run_part(place, {}, 4);
  const fs::path latest = place.file("run/checkpoints/latest");
  for (const auto& [text, told] :
       std::map<std::string, std::string>{{"step-00000006\n", "latest names step-00000006, which is not there"},
                                          {"rubbish", "latest is damaged"},
                                          {"../../elsewhere\n", "latest is damaged"},
                                          {"", "latest is damaged"}}) {
    CAPTURE(text);
    std::ofstream(latest, std::ios::trunc) << text;
    const ProgramResult refused = place.run(every_second + Arguments{"--resume"});
    check_fails(refused, 1, told);
    CHECK(refused.err.find("--resume-previous goes on from ") != std::string::npos);
  }
  // Older than the newest, or missing: as a crash may leave it.
  for (const bool there : {true, false}) {
    CAPTURE(there);
    if (there) std::ofstream(latest, std::ios::trunc) << "step-00000002\n";
    if (!there) fs::remove(latest);
    const std::string steps = there ? "6" : "8";
    const ProgramResult result =
        place.run(every_second + Arguments{"--resume", "--set", "training.max_steps=" + steps});
    check_completes(result);
    CHECK(result.err.find("is the newest whole checkpoint") != std::string::npos);
  }
}

TEST_CASE("what cannot be reconciled with a checkpoint is told with both values") {
  const Workplace place;
  run_part(place, {}, 4);
  for (const auto& [set, told] : std::map<std::string, std::string>{
           {"model.n_layer=3", "model.n_layer: 3, before 2"},
           {"model.n_head=4", "model.n_head: 4, before 2"},
           {"model.vocab_size=32", "model.vocab_size: 32, before 31"},
           {"model.activation_function=relu", R"(model.activation_function: "relu", before "gelu_new")"}}) {
    CAPTURE(set);
    check_fails(place.run(every_second + Arguments{"--resume", "--set", set}), 2, told);
  }
  const ProgramResult result = place.run(
      every_second + Arguments{"--resume", "--set", "optimizer.params.lr=0.001", "--set", "model.resid_pdrop=0"});
  check_completes(result);
  CHECK(result.err.find("resume: optimizer.params.lr: 0.001, before 0.002") != std::string::npos);
  CHECK(result.err.find("resume: model.resid_pdrop: 0.0, before 0.1") != std::string::npos);
}

TEST_CASE("a finished run is left alone, and goes on where more steps are asked for") {
  const Whole whole = undisturbed();
  const Workplace place;
  run_part(place, ranks(2), 4);
  const ProgramResult again =
      place.run(ranks(2) + every_second + Arguments{"--resume", "--set", "training.max_steps=4"});
  check_completes(again);
  CHECK(again.err.find("nothing to resume") != std::string::npos);
  // In another directory the old checkpoints stay as they are.
  Arguments elsewhere = {"--config", "config.json", "--output", "other", "--resume", "run"};
  check_completes(place.run_with(elsewhere + every_second));
  CHECK(checksum_of_run(place.file("other")) == whole.checksum);
  CHECK(finished(place.file("run")) == std::vector<std::int64_t>{2, 4});
  CHECK(finished(place.file("other")) == std::vector<std::int64_t>{6, 8});
  elsewhere[3] = "third";
  elsewhere[5] = checkpoint(place.file("run"), 2).string();
  check_completes(place.run_with(elsewhere + every_second));
  CHECK(checksum_of_run(place.file("third")) == whole.checksum);
  for (const std::string wrong : {"missing", "config.json", "."}) {
    elsewhere[3] = "fourth";
    elsewhere[5] = wrong;
    check_fails(place.run_with(elsewhere + every_second), 2, "--resume: " + wrong);
  }
}

TEST_CASE("old checkpoints are kept as asked for") {
  for (const auto& [keep, left] :
       std::map<int, std::vector<std::int64_t>>{{1, {8}}, {3, {4, 6, 8}}, {0, {2, 4, 6, 8}}}) {
    const Workplace place;
    check_completes(
        place.run(every_second + Arguments{"--set", "training.checkpoints_to_keep=" + std::to_string(keep)}));
    CHECK(finished(place.file("run")) == left);
  }
}

TEST_CASE("what a killed run has left of an old checkpoint is none, and goes with the next one") {
  const Workplace place;
  check_completes(place.run(every_second + Arguments{"--set", "training.max_steps=4"}));
  const fs::path checkpoints = place.file("run/checkpoints");
  fs::copy(checkpoints / "step-00000002", checkpoints / "step-00000001.removed", fs::copy_options::recursive);
  fs::remove(checkpoints / "step-00000001.removed/manifest.json");
  fs::copy(checkpoints / "step-00000002", checkpoints / "step-00000003", fs::copy_options::recursive);
  fs::remove(checkpoints / "step-00000003/manifest.json");
  const ProgramResult result = place.run(every_second + Arguments{"--resume"});
  check_completes(result);
  CHECK(result.err.find("step-00000001") == std::string::npos);
  CHECK(result.err.find("step-00000003 has no manifest.json: passed over") != std::string::npos);
  CHECK_FALSE(fs::exists(checkpoints / "step-00000001.removed"));
  CHECK(finished(place.file("run")) == std::vector<std::int64_t>{6, 8});
}

TEST_CASE("a checkpoint that cannot be looked into is told, not passed over") {
  const Workplace place;
  check_completes(place.run(every_second + Arguments{"--set", "training.max_steps=4"}));
  const fs::path newest = place.file("run/checkpoints/step-00000004");
  fs::remove_all(newest);
  fs::create_symlink(newest, newest);  // fails to be opened for everybody, as directories of other users do for most
  check_fails(place.run(every_second + Arguments{"--resume"}), 1, "step-00000004");
}

TEST_CASE("an elastic run goes on with one rank less on the same curve") {
  const Workplace place;
  const fs::path run = place.file("run");
  const Arguments more = {"--set", "training.checkpoint_interval=5", "--set", "training.max_steps=4000",
                          "--set", "training.eval_interval=0"};
  ProgramOptions options = place.options();
  options.time_limit = 400.0;  // on a loaded machine
  Program program(Workplace::command(ranks(3) + stage(3) + more + Arguments{"--elastic"}), options);
  for (std::size_t left = 3; left > 1; --left) {
    REQUIRE(program.wait_until([&] {
      return children_of(program.process()).size() == left && worlds_begun(run) == 4 - left && has_gone_on(run);
    }));
    kill(children_of(program.process()).back(), SIGKILL);
    REQUIRE(program.wait_until([&] { return children_of(program.process()).size() == left - 1; }));
  }
  const ProgramResult result = program.finish();
  INFO(result.err);
  CHECK(result.code == 0);
  CHECK(count_of(result.err, "elastic: going on with 2 ranks from ") == 1);
  CHECK(count_of(result.err, "elastic: going on with 1 rank from ") == 1);
  const Workplace quiet;
  check_completes(quiet.run(more + Arguments{"--set", "training.checkpoint_interval=0"}));
  CHECK(checksum_of_run(run) == checksum_of_run(quiet.file("run")));
  CHECK(steps_of(run) == steps_of(quiet.file("run")));
}

TEST_CASE("no rank needs more memory for loading than for training") {
  const std::string wide = R"({
    "train_batch_size": 4, "train_micro_batch_size_per_gpu": 1, "zero_optimization": { "stage": 3 },
    "model": { "type": "mlp", "layers": [8, 1600, 1600, 1600, 1600, 3], "activation": "relu", "loss": "mse" },
    "data": { "type": "synthetic", "task": "regression", "samples": 100 },
    "training": { "max_steps": 2, "checkpoint_interval": 2 }, "device": { "threads": 1 } })";
  const Workplace place(wide);
  check_completes(place.run({}));
  const auto peak_of = [](const fs::path& run) {
    std::int64_t peak = 0;
    for (const Json& rank : json_of(run / "summary.json").at("memory").at("ranks"))
      peak = std::max(peak, rank.at("peak_resident").get<std::int64_t>());
    return peak;
  };
  check_completes(place.run_with({"--ranks", "4", "--config", "config.json", "--output", "fresh"}));
  check_completes(place.run_with({"--ranks", "4", "--config", "config.json", "--output", "more", "--resume", "run",
                                  "--set", "training.max_steps=4"}));
  const std::int64_t whole =
      json_of(place.file("run/summary.json")).at("model").at("parameters").get<std::int64_t>() * 16;
  const std::int64_t fresh = peak_of(place.file("fresh"));
  const std::int64_t resumed = peak_of(place.file("more"));
  INFO("whole " << whole << ", fresh " << fresh << ", resumed " << resumed);
  CHECK(resumed < fresh + (std::int64_t{12} << 20));
  CHECK(resumed < whole);
}
