// Configs that other people wrote for DeepSpeed, each laid over a tiny model: what becomes of it. The files belong to
// others and are not in this repository: the test looks for them in the folder that ZEROTRAIN_DS_CONFIGS names, or in
// shared/ds_configs beside the source folder, and says so where there is none. What is peculiar in them is held by
// deepspeed_keys_test with configs of this project, which runs everywhere. And what DeepSpeed's reports leave.
#include <cstdio>
#include <map>
#include <set>

#include "event_reader.h"
#include "program_support.h"

using namespace zt::test;

namespace {

// Takes any batch in no time; says nothing that a file may want to say.
const char* const base = R"({
  "model": { "type": "mlp", "layers": [4, 4, 1] },
  "data": { "type": "synthetic", "samples": 80000 },
  "training": { "max_steps": 2 },
  "device": { "type": "cpu", "threads": 1 }
})";

const Arguments batch_of_8 = {"--set", "train_batch_size=8"};

struct Outcome {
  std::string file;
  int ranks;
  Arguments more;
  bool trains;
  std::vector<std::string> words;  // on stderr: of the refusal, or of the notices
};

const char* const offload = "offload_optimizer.device: has no effect: on the CPU everything rests in the host's memory";
const char* const offload_param =
    "offload_param.device: has no effect: on the CPU everything rests in the host's memory";
const char* const no_batch = "train_batch_size: missing: give train_batch_size";
const char* const batch_is_auto = "train_batch_size: no number given (\"auto\" counts as absent)";

// By the number at the start of the file's name; written after reading each.
const std::vector<Outcome> outcomes = {
    {"01", 1, {}, false, {no_batch}},
    {"01",
     2,
     batch_of_8,
     true,
     {offload, offload_param, "sub_group_size: has no effect", "reduce_bucket_size: has no effect",
      "stage3_gather_fp16_weights_on_model_save is an old name of", "warmup_num_steps: 500 is more than"}},
    {"02", 1, {}, false, {batch_is_auto}},
    {"02",
     2,
     batch_of_8,
     true,
     {offload_param, "zero_force_ds_cpu_optimizer: has no effect", "zero_allow_untested_optimizer: has no effect",
      "max_live_parameters is an old name of", "stage3_prefetch_bucket_size: \"auto\" is 14",
      "stage3_param_persistence_threshold: \"auto\" is 40", "gradient_clipping: \"auto\" is 1.0"}},
    {"04", 1, {}, false, {batch_is_auto}},
    {"04",
     2,
     batch_of_8,
     true,
     {offload, "optimizer.params.lr: \"auto\" is 5e-05", "total_num_steps: \"auto\" is 2, training.max_steps",
      "warmup_max_lr: \"auto\" is 5e-05", "bf16.enabled: \"auto\" is"}},
    {"06",
     1,
     {},
     false,
     {"stage3_param_persitance_threshold: unknown key; did you mean "
      "zero_optimization.stage3_param_persistence_threshold?",
      "offload_optimizer.device: found \"nvme\"", "offload_param.device: found \"nvme\"", "3 mistakes"}},
    {"08",
     2,
     {},
     true,
     {"optimizer.params.lr: has no effect: OneCycle goes from cycle_min_lr 0.004 to cycle_max_lr 0.015",
      "the cycle takes 1100 steps", "optimizer.params.betas: have no effect"}},
    {"08", 3, {}, false, {"found 512, not a multiple of train_micro_batch_size_per_gpu 32 x 3 ranks"}},
    {"10", 2, {}, true, {}},
    {"10", 3, {}, false, {"the nearest that fit: 24 and 36"}},
    {"11", 1, {}, false, {batch_is_auto}},
    {"11",
     1,
     batch_of_8,
     true,
     {"fp16.enabled: \"auto\" is false", offload, "gather_16bit_weights_on_model_save is an old name of",
      "warmup_num_steps: \"auto\" is 1"}},
    {"13", 1, {}, false, {":3:1: a fragment without its outer braces: put { before this and } at the end of the file"}},
    {"14", 8, {}, true, {offload, "allgather_bucket_size: has no effect"}},
    {"14",
     2,
     {},
     false,
     {"found 4480, but train_micro_batch_size_per_gpu 560 x gradient_accumulation_steps 1 x 2 ranks = 1120",
      "or gradient_accumulation_steps to 4", "or run on 8 ranks"}},
    {"17", 1, {}, false, {"freeze_step: found 100000; a key of DeepSpeed's 1-bit optimizers", "remove it"}},
    {"20", 1, {}, false, {batch_is_auto}},
    {"20", 2, batch_of_8, true, {"torch_adam: has no effect", "betas: \"auto\" is [0.9,0.999]", offload}},
    {"21", 1, {}, false, {"train_batch_size: missing; gradient_accumulation_steps alone is not enough"}},
    {"21",
     2,
     batch_of_8,
     true,
     {"zero_optimization: true is an old form of \"stage\": 1", "warmup_num_steps: 25000 is more than"}},
    {"26", 8, {}, false, {":15:20: write true"}},
    {"28", 2, {}, true, {}},
    {"28", 3, {}, false, {"found 4, not a multiple of 3 ranks; the nearest that fit: 3 and 6"}},
    {"29", 8, {}, true, {"optimizer.type: \"Adam\"", "zero_allow_untested_optimizer: has no effect"}},
    {"29", 2, {}, false, {"or run on 8 ranks"}},
    {"35", 1, {}, false, {batch_is_auto}},
    {"35", 2, batch_of_8, true, {offload, offload_param}},
    {"39",
     2,
     {},
     true,
     {"cpu_offload: true is an old form of \"zero_optimization.offload_optimizer.device\": \"cpu\"", offload,
      "partition_activations: has no effect", "cpu_checkpointing: has no effect"}},
    {"40", 3, {}, false, {"found \"OneBitAdam\"; 1-bit optimizers do not work with ZeRO", "use \"AdamW\""}},
    {"44", 2, {}, false, {"lr_scheduler: unknown key; did you mean scheduler?"}},
    {"44", 1, {}, false, {"lr_scheduler: unknown key", "train_batch_size: found 4", "or run on 2 ranks", "2 mistakes"}},
    {"49", 2, {}, true, {"optimizer", "warmup_num_steps: 300 is more than"}},
    {"52",
     2,
     {},
     true,
     {"round_robin_gradients: has no effect", "optimizer.params.weight_decay: \"auto\" is 0.0",
      "warmup_max_lr: \"auto\" is 5e-05"}},
    {"57",
     2,
     {},
     true,
     {"zero_optimization: true is an old form", "fp16.auto_cast: has no effect", "by default is more than"}},
    {"57", 1, {}, false, {"found 64, but train_micro_batch_size_per_gpu 2 x gradient_accumulation_steps 16 x 1 rank"}},
    {"58", 1, {}, false, {batch_is_auto}},
    {"58", 2, batch_of_8, true, {offload, "eps: \"auto\" is 1e-08"}},
    {"60", 1, {}, false, {"the file ends before the { of line 1 is closed with }"}},
    {"63", 1, batch_of_8, false, {"scheduler.params.total_num_steps: missing", "\"auto\""}},
    {"64", 1, {}, false, {batch_is_auto}},
    {"64", 2, batch_of_8, true, {"warmup_max_lr: \"auto\" is 5e-05", "overlap_comm: has no effect"}},
    {"68", 1, {}, false, {batch_is_auto}},
    {"68",
     1,
     batch_of_8,
     true,
     {offload, "stage3_gather_16bit_weights_on_model_save: has no effect", "stage3_max_reuse_distance: has no effect"}},
    {"71", 2, {}, false, {"zero_optimization.zenflow: an update that goes on", "remove the section"}},
    {"73", 1, {}, false, {"found \"ZeroOneAdam\"; 1-bit optimizers do not work with ZeRO", "use \"AdamW\""}},
    {"75",
     1,
     {},
     false,
     {"warmup_min_lr: found 3e-5; WarmupCosineLR has shares", "warmup_max_lr: found 0.0003; WarmupCosineLR takes",
      "2 mistakes"}},
    {"75", 3, {}, false, {"found 64, not a multiple of gradient_accumulation_steps 16 x 3 ranks = 48", "3 mistakes"}},
};

fs::path folder_of_configs() {
  if (const char* named = std::getenv("ZEROTRAIN_DS_CONFIGS")) return named;
  return fs::path(ZEROTRAIN_SOURCE_DIR).parent_path() / "shared" / "ds_configs";
}

// By the number at the start of the name.
std::map<std::string, fs::path> configs_in(const fs::path& folder) {
  std::map<std::string, fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() == ".json" && name.size() > 2) files[name.substr(0, 2)] = entry.path();
  }
  return files;
}

// Each key that is ignored is named, by one rank alone.
void check_notices_stand_once(const std::string& err) {
  std::set<std::string> seen;
  for (const std::string& line : lines_of(err)) {
    if (line.find(": has no effect") == std::string::npos) continue;
    CAPTURE(line);
    CHECK(seen.insert(line).second);
  }
}

}  // namespace

TEST_CASE("DeepSpeed configs of other people train a tiny model or are refused with what to do") {
  const fs::path folder = folder_of_configs();
  if (!fs::is_directory(folder)) {
    std::printf("no configs at %s: nothing was run (ZEROTRAIN_DS_CONFIGS names another folder)\n", folder.c_str());
    return;
  }
  std::map<std::string, fs::path> files = configs_in(folder);
  std::set<std::string> tried;
  for (const Outcome& outcome : outcomes) {
    const auto file = files.find(outcome.file);
    CAPTURE(outcome.file, outcome.ranks, outcome.more);
    REQUIRE(file != files.end());
    tried.insert(outcome.file);
    const Workplace place(base);
    const ProgramResult result = place.run(Arguments{"--config", file->second.string()} + outcome.more +
                                           (outcome.ranks > 1 ? ranks(outcome.ranks) : Arguments{}));
    INFO(result.err);
    if (outcome.trains) {
      check_completes(result);
      CHECK(json_of(place.file("run/summary.json")).at("steps").at("attempted") == 2);
      check_notices_stand_once(result.err);
    } else {
      check_fails(result, 2, file->second.filename().string());
      CHECK(count_of(result.err, "zerotrain: ") == 1);
      CHECK_FALSE(fs::exists(place.file("run")));
    }
    for (const std::string& words : outcome.words) {
      CAPTURE(words);
      CHECK(result.err.find(words) != std::string::npos);
    }
  }
  CHECK(tried.size() == files.size());
}

TEST_CASE("csv_monitor writes DeepSpeed's files, under one header also where a run goes on") {
  const Workplace place;
  const Arguments monitor = {"--set", "csv_monitor.enabled=true",      "--set", "csv_monitor.job_name=job",
                             "--set", "training.checkpoint_interval=2"};
  check_completes(place.run(monitor + fp16 + Arguments{"--set", "training.max_steps=4"}));
  check_completes(place.run(monitor + fp16 + Arguments{"--resume"}));
  const fs::path folder = place.file("run/csv_monitor/job");
  const std::vector<std::pair<std::string, std::string>> curves = {
      {"train_loss", "loss"}, {"lr", "learning_rate"}, {"loss_scale", "loss_scale"}};
  for (const auto& [name, key] : curves) {
    CAPTURE(name);
    const std::vector<std::string> lines = lines_of(contents_of(folder / ("Train_Samples_" + name + ".csv")));
    std::size_t number = 1;
    REQUIRE(lines.size() == 7);
    CHECK(lines.front() == "step," + name + "\r");
    for (const Json& record : metrics_of(place.file("run"))) {
      if (record.at("kind") != "train") continue;
      const std::string start = std::to_string(record.at("samples").get<int>()) + ",";
      REQUIRE(lines.at(number).starts_with(start));
      CHECK(std::stod(lines.at(number).substr(start.size())) == record.at(key).get<double>());
      ++number;
    }
    CHECK(number == 7);
  }
  // Elsewhere where it is asked for, and nothing of a scale in fp32.
  check_completes(
      place.run({"--overwrite", "--set", "csv_monitor.enabled=true", "--set", "csv_monitor.output_path=logs"}));
  CHECK(fs::exists(place.file("logs/DeepSpeedJobName/Train_Samples_lr.csv")));
  CHECK_FALSE(fs::exists(place.file("logs/DeepSpeedJobName/Train_Samples_loss_scale.csv")));
  place.write("occupied", "a file");
  check_fails(
      place.run({"--overwrite", "--set", "csv_monitor.enabled=true", "--set", "csv_monitor.output_path=occupied"}), 2,
      "csv_monitor.output_path");
}

TEST_CASE("tensorboard gets DeepSpeed's tags over the samples, in a new file where a run goes on") {
  const Workplace place;
  const Arguments monitor = {"--set", "tensorboard.enabled=true", "--set", "tensorboard.job_name=job",
                             "--set", "csv_monitor.enabled=true", "--set", "training.checkpoint_interval=2"};
  check_completes(place.run(monitor + fp16 + Arguments{"--set", "training.max_steps=5"}));
  // A killed run's checkpoint is older than its last step, whose point comes anew.
  fs::remove(place.file("run/summary.json"));
  place.write("run/checkpoints/latest", "step-00000004\n");
  check_completes(place.run(monitor + fp16 + Arguments{"--resume"}));

  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(place.file("run/tensorboard/job"))) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  REQUIRE(files.size() == 2);
  std::vector<ReadEvent> events;
  for (const fs::path& file : files) {
    CHECK(file.filename().string().starts_with("events.out.tfevents."));
    const std::vector<ReadEvent> of_file = read_events(contents_of(file));
    REQUIRE_FALSE(of_file.empty());
    CHECK(of_file.front().version == "brain.Event:2");
    for (const ReadEvent& event : of_file) CHECK(event.wall_time > 1.6e9);
    events.insert(events.end(), of_file.begin(), of_file.end());
  }
  std::map<std::string, std::map<std::int64_t, float>> expected;
  std::map<int, std::int64_t> samples_of_step;
  for (const Json& record : metrics_of(place.file("run"))) {
    const int step = record.at("step").get<int>();
    if (record.at("kind") == "eval") {
      expected["Validation/Samples/loss"][samples_of_step.at(step)] = record.at("loss").get<float>();
    }
    if (record.at("kind") != "train") continue;
    const auto samples = samples_of_step[step] = record.at("samples").get<std::int64_t>();
    expected["Train/Samples/train_loss"][samples] = record.at("loss").get<float>();
    expected["Train/Samples/lr"][samples] = record.at("learning_rate").get<float>();
    expected["Train/Samples/loss_scale"][samples] = record.at("loss_scale").get<float>();
  }
  CHECK(expected.at("Train/Samples/lr").size() == 6);
  CHECK(expected.at("Validation/Samples/loss").size() >= 3);
  const auto found = curves_of(events);
  CHECK(found.size() == expected.size());
  for (const auto& [tag, points] : expected) {
    CAPTURE(tag);
    REQUIRE(found.contains(tag));
    REQUIRE(found.at(tag).size() == points.size());
    for (const auto& [samples, value] : points) {
      REQUIRE(found.at(tag).contains(samples));
      // The one was rounded to a float, the other to nine digits before.
      CHECK(std::abs(found.at(tag).at(samples) - value) <= 1.2e-7F * std::abs(value));
    }
  }
  CHECK(fs::exists(place.file("run/csv_monitor/DeepSpeedJobName/Validation_Samples_loss.csv")));

  // A new run does not add to the old one's curves.
  check_completes(place.run(monitor + Arguments{"--overwrite", "--set", "training.max_steps=2"}));
  files.assign(fs::directory_iterator(place.file("run/tensorboard/job")), {});
  REQUIRE(files.size() == 1);
  CHECK(curves_of(read_events(contents_of(files.front()))).at("Train/Samples/lr").size() == 2);
  CHECK_FALSE(curves_of(read_events(contents_of(files.front()))).contains("Train/Samples/loss_scale"));
}

TEST_CASE("a run that does not begin leaves no folder of a monitor") {
  const Workplace place;
  place.write("occupied", "a file");
  const Arguments monitors = {"--set", "csv_monitor.enabled=true",        "--set", "tensorboard.enabled=true",
                              "--set", "csv_monitor.output_path=logs/csv"};
  // The second of them cannot be made.
  check_fails(place.run(monitors + Arguments{"--set", "tensorboard.output_path=occupied"}), 2,
              "tensorboard.output_path");
  CHECK_FALSE(fs::exists(place.file("logs")));
  // What stops the run comes after both.
  check_completes(
      place.run_with({"--config", "config.json", "--output", "earlier", "--set", "training.checkpoint_interval=4"}));
  const fs::path weights = place.file("earlier/checkpoints/step-00000004/rank-00000.weights.safetensors");
  std::string bytes = contents_of(weights);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  std::ofstream(weights, std::ios::binary) << bytes;
  const ProgramResult damaged = place.run(monitors + Arguments{"--set", "model.pretrained=earlier"});
  INFO(damaged.err);
  CHECK(damaged.code == 1);
  CHECK(damaged.err.find("weights.safetensors") != std::string::npos);
  CHECK_FALSE(fs::exists(place.file("logs")));
  CHECK_FALSE(fs::exists(place.file("run/tensorboard")));
  check_completes(place.run(monitors));
  CHECK(fs::exists(place.file("logs/csv/DeepSpeedJobName/Train_Samples_lr.csv")));
}

TEST_CASE("breakdowns come with each progress line, the config's dump at the start") {
  const Workplace place;
  const ProgramResult plain = place.run({"--set", "steps_per_print=2"});
  check_completes(plain);
  for (const char* words : {"forward ", "resident at most", "dump_state"}) {
    CHECK(plain.err.find(words) == std::string::npos);
  }
  const ProgramResult result =
      place.run(Arguments{"--overwrite", "--set", "steps_per_print=2", "--set", "wall_clock_breakdown=true", "--set",
                          "memory_breakdown=true", "--set", "dump_state=true"} +
                ranks(2));
  check_completes(result);
  INFO(result.err);
  const std::regex seconds(
      R"(step [24]  a step: forward \d+\.\d\d ms, backward \d+\.\d\d ms, optimizer \d+\.\d\d ms; of these in collectives \d+\.\d\d ms; waiting for data \d+\.\d\d ms)");
  const std::regex memory(
      R"(step [24]  memory: parameters [\d.]+ k?B, gradients .*, workspace .*, resident at most .*MB)");
  int seconds_lines = 0;
  int memory_lines = 0;
  for (const std::string& line : lines_of(result.err)) {
    seconds_lines += std::regex_search(line, seconds) ? 1 : 0;
    memory_lines += std::regex_search(line, memory) ? 1 : 0;
  }
  CHECK(seconds_lines == 2);
  CHECK(memory_lines == 2);
  CHECK(result.err.find("\"wall_clock_breakdown\": true") != std::string::npos);
  CHECK(result.err.find("the resolved config (dump_state):") != std::string::npos);
}
