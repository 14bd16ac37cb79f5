// The program from the outside: exit codes, files, output, signals, and one curve whatever starts the ranks.
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "catch_compat.h"
#include "run_program.h"
#include "train/words.h"

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using namespace zt::test;

namespace {

using Arguments = std::vector<std::string>;

const char* const tiny_gpt = R"({
  "train_batch_size": 6, "train_micro_batch_size_per_gpu": 1, "gradient_clipping": 1.0,
  "optimizer": { "type": "AdamW", "params": { "lr": 2e-3, "weight_decay": 0.1 } },
  "data_types": { "grad_accum_dtype": "fp32" },
  "model": { "type": "gpt", "n_layer": 2, "n_head": 2, "n_embd": 16, "n_positions": 8, "vocab_size": 31,
             "resid_pdrop": 0.1 },
  "data": { "type": "synthetic", "task": "tokens", "samples": 100 },
  "training": { "max_steps": 4, "eval_interval": 2, "eval_steps": 1 },
  "device": { "threads": 1 }
})";

const char* const tiny_mlp = R"({
  "train_batch_size": 4,
  "optimizer": { "type": "SGD", "params": { "lr": 0.01 } },
  "model": { "type": "mlp", "layers": [8, 9, 3], "activation": "relu", "loss": "cross_entropy" },
  "data": { "type": "synthetic", "task": "regression", "samples": 100 },
  "training": { "max_steps": 3, "eval_interval": 0 },
  "device": { "threads": 1 }
})";

// fp16 that skips its first steps and applies others.
const Arguments fp16 = {"--set", "fp16.enabled=true", "--set", "fp16.initial_scale_power=20",
                        "--set", "fp16.hysteresis=1", "--set", "training.max_steps=6"};

const Arguments endless = {"--set", "training.max_steps=100000000", "--set", "training.eval_interval=0"};

// A directory with config.json; runs go to its folder "run" unless told otherwise.
class Workplace {
 public:
  explicit Workplace(const std::string& config = tiny_gpt) { write("config.json", config); }

  const fs::path& path() const { return directory_.path(); }
  fs::path file(const std::string& name) const { return path() / name; }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(file(name), std::ios::binary) << text;
  }
  ProgramOptions options() const { return {.directory = path(), .environment = {}}; }

  static Arguments command(const Arguments& more, const Arguments& launcher = {}) {
    Arguments all = launcher;
    for (const char* word : {ZEROTRAIN_BINARY, "--config", "config.json", "--output", "run"}) all.emplace_back(word);
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  ProgramResult run(const Arguments& more, const Arguments& launcher = {}) const {
    return run_program(command(more, launcher), options());
  }
  // Exactly these arguments.
  ProgramResult run_with(const Arguments& arguments) const {
    Arguments all = {ZEROTRAIN_BINARY};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return run_program(all, options());
  }

 private:
  TemporaryDirectory directory_;
};

Arguments operator+(Arguments left, const Arguments& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

Json json_of(const fs::path& path) {
  INFO(path);
  const Json json = Json::parse(contents_of(path), nullptr, false);
  REQUIRE_FALSE(json.is_discarded());
  return json;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::vector<Json> metrics_of(const fs::path& run) {
  std::vector<Json> records;
  for (const std::string& line : lines_of(contents_of(run / "metrics.jsonl"))) {
    INFO(line);
    records.push_back(Json::parse(line, nullptr, false));
    REQUIRE_FALSE(records.back().is_discarded());
  }
  return records;
}

std::size_t metrics_lines(const fs::path& run) { return lines_of(contents_of(run / "metrics.jsonl")).size(); }

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// What a run computed, as text: loss, gradient norm and scale of each line of metrics.jsonl, and the checksum.
std::string curve_of(const fs::path& run) {
  std::string curve;
  for (const std::string& line : lines_of(contents_of(run / "metrics.jsonl"))) {
    for (const std::string name : {"kind", "step", "loss", "grad_norm", "loss_scale", "skipped"}) {
      const std::size_t at = line.find("\"" + name + "\": ");
      if (at != std::string::npos) curve += line.substr(at, line.find_first_of(",}", at) - at) + " ";
    }
    curve += "\n";
  }
  return curve + json_of(run / "summary.json").at("weights_checksum").get<std::string>();
}

Arguments stage(int number) { return {"--set", "zero_optimization.stage=" + std::to_string(number)}; }
Arguments ranks(int number) { return {"--ranks", std::to_string(number)}; }

// The command that starts `number` ranks over MPI; empty where that is not possible.
Arguments mpirun(int number) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  bool found = false;
  for (std::string folder; std::getline(folders, folder, ':');) {
    found = found || access((folder + "/mpirun").c_str(), X_OK) == 0;
  }
  if (!found) return {};
  Arguments launcher = {"mpirun"};
  if (geteuid() == 0) launcher = launcher + Arguments{"--allow-run-as-root", "--oversubscribe"};
  return launcher + Arguments{"-n", std::to_string(number)};
}

bool can_use_mpi() {
  if (mpirun(1).empty()) {
    WARN("skipped: there is no mpirun");
    return false;
  }
  if (run_program({ZEROTRAIN_BINARY, "--version"}, {}).out.find(", MPI (") == std::string::npos) {
    WARN("skipped: this build is without MPI");
    return false;
  }
  return true;
}

// `shape` names what belongs where: text, whole, float, flag, float or null, ...; an array holds the shape of every
// element. Returns what is different.
void compare(const Json& shape, const Json& value, const std::string& place, std::vector<std::string>& differences) {
  if (shape.is_object()) {
    if (!value.is_object()) return differences.push_back(place + " is no object");
    for (const auto& [name, inner] : shape.items()) {
      if (!value.contains(name)) {
        differences.push_back(place + "." + name + " is missing");
      } else {
        compare(inner, value.at(name), place + "." + name, differences);
      }
    }
    for (const auto& item : value.items()) {
      if (!shape.contains(item.key())) differences.push_back(place + "." + item.key() + " was not promised");
    }
  } else if (shape.is_array()) {
    if (!value.is_array() || value.empty()) return differences.push_back(place + " is no list with elements");
    for (const Json& element : value) compare(shape.at(0), element, place + "[]", differences);
  } else {
    const std::string type = shape.get<std::string>();
    const bool fits = type == "text"            ? value.is_string()
                      : type == "whole"         ? value.is_number_integer() && value.get<std::int64_t>() >= 0
                      : type == "float"         ? value.is_number_float()
                      : type == "float or null" ? value.is_number_float() || value.is_null()
                      : type == "null"          ? value.is_null()
                      : type == "flag"          ? value.is_boolean()
                                                : value == shape;
    if (!fits) differences.push_back(place + " should be " + type + ": " + value.dump());
  }
}

std::vector<std::string> differences(const std::string& shape, const Json& value) {
  std::vector<std::string> found;
  compare(Json::parse(shape), value, "", found);
  return found;
}

const std::vector<std::string> none;

std::string summary_shape(const std::string& rate) {
  const std::string memory = R"("parameters": "whole", "gradients": "whole", "optimizer": "whole",
    "activations": "whole", "communication": "whole", "data": "whole", "workspace": "whole", "padding": "whole")";
  const std::string collective = R"({"calls": "whole", "bytes": "whole", "seconds": "float"})";
  return R"({"status": "completed",
    "steps": {"attempted": "whole", "applied": "whole", "skipped": "whole"},
    "final": {"loss": "float", "validation_loss": "float or null", "loss_scale": "float"},
    "model": {"type": "text", "parameters": "whole"},
    "weights_checksum": "text",
    "run": {"world_size": "whole", "stage": "whole", "precision": "text", "device": "cpu", "instruction_set": "text",
            "threads_per_rank": "whole", "micro_batch": "whole", "accumulation": "whole"},
    "memory": {"formula_bytes_per_parameter": "float", "planned": {)" +
         memory + R"(}, "ranks": [{"rank": "whole", "peak_resident": "whole", "peers_shared": "whole", )" + memory +
         R"(}]},
    "communication": {"elements_per_parameter_and_step": "float", "planned": "float", "paper": "float",
      "elements": "whole", "planned_elements": "whole", "all_reduce": )" +
         collective + R"(, "reduce_scatter": )" + collective + R"(, "all_gather": )" + collective +
         R"(, "broadcast": )" + collective + R"(},
    "throughput": {")" +
         rate + R"(": "float", "model_flops_per_second": "float", "matmul_flops_per_second": "float",
      "utilization": "float"},
    "seconds": {"startup": "float", "train": "float", "forward": "float", "backward": "float", "optimizer": "float",
      "communication_exposed": "float", "data_wait": "float"}})";
}

// Numbers with a point or an exponent that have more than nine significant digits.
std::vector<std::string> too_precise(const std::string& text) {
  static const std::regex number(R"(("(?:[^"\\]|\\.)*")|-?(\d+\.?\d*)([eE][-+]?\d+)?)");
  std::vector<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), number), end; match != end; ++match) {
    std::string digits = (*match)[2];
    if ((*match)[1].matched || (digits.find('.') == std::string::npos && !(*match)[3].matched)) continue;
    digits.erase(std::remove(digits.begin(), digits.end(), '.'), digits.end());
    digits.erase(0, digits.find_first_not_of('0'));
    digits.erase(digits.find_last_not_of('0') + 1);
    if (digits.size() > 9) found.push_back(match->str());
  }
  return found;
}

void check_memory_and_communication(const fs::path& run) {
  const Json summary = json_of(run / "summary.json");
  const Json& planned = summary.at("memory").at("planned");
  const Json& held = summary.at("memory").at("ranks");
  REQUIRE(held.size() == summary.at("run").at("world_size").get<std::size_t>());
  for (std::size_t rank = 0; rank < held.size(); ++rank) {
    CHECK(held.at(rank).at("rank") == rank);
    for (const auto& [category, bytes] : planned.items()) {
      CAPTURE(rank, category);
      CHECK(held.at(rank).at(category) == bytes);
    }
  }
  const Json& communication = summary.at("communication");
  CHECK(communication.at("elements") == communication.at("planned_elements"));
  CHECK(communication.at("elements_per_parameter_and_step") == communication.at("planned"));
  const bool alone = held.size() == 1;
  CHECK((communication.at("elements").get<std::int64_t>() == 0) == alone);
}

// A run that ended with one message of the program and this code.
void check_fails(const ProgramResult& result, int code, const std::string& part) {
  INFO(result.err);
  CHECK_FALSE(result.timed_out);
  CHECK(result.signal == 0);
  CHECK(result.code == code);
  CHECK(result.out.empty());
  CHECK(count_of(result.err, "zerotrain: ") == 1);
  CHECK(result.err.find(part) != std::string::npos);
  CHECK_FALSE(result.left_processes);
}

void check_completes(const ProgramResult& result) {
  INFO(result.err);
  CHECK_FALSE(result.timed_out);
  CHECK(result.signal == 0);
  REQUIRE(result.code == 0);
  CHECK(count_of(result.err, "zerotrain: ") == 0);
  CHECK_FALSE(result.left_processes);
}

}  // namespace

TEST_CASE("local processes train one curve at every stage and number of ranks") {
  for (const bool half : {false, true}) {
    const Workplace place;
    std::string first;
    for (const int number : {1, 2, 3}) {
      for (const int level : {0, 1, 2, 3}) {
        if (half && number == 1 && level != 0) continue;
        CAPTURE(half, number, level);
        check_completes(
            place.run(ranks(number) + stage(level) + (half ? fp16 : Arguments{}) + Arguments{"--overwrite"}));
        const std::string curve = curve_of(place.file("run"));
        if (first.empty()) first = curve;
        CHECK(curve == first);
        check_memory_and_communication(place.file("run"));
      }
    }
    CHECK(count_of(first, R"("kind": "train")") == (half ? 6 : 4));
    CHECK(count_of(first, R"("kind": "eval")") == (half ? 3 : 2));
    CHECK((count_of(first, R"("skipped": true)") > 0) == half);
    CHECK(count_of(first, R"("skipped": false)") > 0);
  }
}

TEST_CASE("nodes of one rank each train the same curve") {
  const Workplace place;
  check_completes(place.run({}));
  const std::string first = curve_of(place.file("run"));
  for (const int level : {0, 2, 3}) {
    CAPTURE(level);
    check_completes(place.run(ranks(3) + stage(level) + Arguments{"--set", "device.ranks_per_node=1", "--overwrite"}));
    CHECK(curve_of(place.file("run")) == first);
    check_memory_and_communication(place.file("run"));
  }
}

TEST_CASE("ranks over MPI train the same curve") {
  if (!can_use_mpi()) return;
  const Workplace place;
  check_completes(place.run({}));
  const std::string first = curve_of(place.file("run"));
  struct Case {
    int ranks, stage;
    Arguments more;
  };
  for (const Case& one : {Case{2, 1, {}}, Case{3, 3, {}}, Case{2, 3, {"--set", "device.communicator=mpi"}},
                          Case{2, 2, {"--set", "device.ranks_per_node=1"}}}) {
    CAPTURE(one.ranks, one.stage, one.more);
    check_completes(place.run(stage(one.stage) + one.more + Arguments{"--overwrite"}, mpirun(one.ranks)));
    CHECK(json_of(place.file("run/summary.json")).at("run").at("world_size") == one.ranks);
    CHECK(curve_of(place.file("run")) == first);
    check_memory_and_communication(place.file("run"));
  }
}

TEST_CASE("summary.json and metrics.jsonl of a GPT hold what is promised") {
  const Workplace place;
  check_completes(place.run(ranks(2) + stage(3)));
  const fs::path run = place.file("run");
  const Json summary = json_of(run / "summary.json");
  CHECK(differences(summary_shape("tokens_per_second"), summary) == none);
  CHECK(summary.at("run").at("world_size") == 2);
  CHECK(summary.at("run").at("stage") == 3);
  CHECK(summary.at("run").at("precision") == "fp32");
  CHECK(summary.at("run").at("threads_per_rank") == 1);
  CHECK(summary.at("run").at("micro_batch") == 1);
  CHECK(summary.at("run").at("accumulation") == 3);
  CHECK(summary.at("steps") == Json({{"attempted", 4}, {"applied", 4}, {"skipped", 0}}));
  CHECK(std::regex_match(summary.at("weights_checksum").get<std::string>(), std::regex("[0-9a-f]{16}")));
  CHECK(too_precise(contents_of(run / "summary.json")) == none);
  CHECK(too_precise(contents_of(run / "metrics.jsonl")) == none);

  std::int64_t step = 0;
  std::vector<std::int64_t> evaluated;
  const std::vector<Json> records = metrics_of(run);
  for (const Json& record : records) {
    if (record.at("kind") == "eval") {
      CHECK(differences(R"({"kind": "eval", "step": "whole", "loss": "float", "perplexity": "float"})", record) ==
            none);
      CHECK(record.at("perplexity").get<double>() == Approx(std::exp(record.at("loss").get<double>())).epsilon(1e-8));
      evaluated.push_back(record.at("step").get<std::int64_t>());
      continue;
    }
    CHECK(differences(R"({"kind": "train", "step": "whole", "loss": "float", "grad_norm": "float",
                          "learning_rate": "float", "loss_scale": "float", "skipped": "flag", "samples": "whole",
                          "tokens": "whole", "step_seconds": "float", "tokens_per_second": "float"})",
                      record) == none);
    CHECK(record.at("step") == ++step);
    CHECK(record.at("samples") == 6 * step);
    CHECK(record.at("tokens") == 6 * 8 * step);
    CHECK(record.at("learning_rate") == 2e-3);
    CHECK(record.at("loss_scale") == 1.0);
    CHECK(record.at("skipped") == false);
    CHECK(record.at("tokens_per_second").get<double>() * record.at("step_seconds").get<double>() ==
          Approx(48.0).epsilon(1e-6));
    if (step == 4) CHECK(summary.at("final").at("loss") == record.at("loss"));
  }
  CHECK(step == 4);
  CHECK(evaluated == std::vector<std::int64_t>{2, 4});
  CHECK(summary.at("final").at("validation_loss") == records.back().at("loss"));
  CHECK(fs::exists(run / "train.log"));
}

TEST_CASE("summary.json and metrics.jsonl of an MLP hold what is promised") {
  const Workplace place(tiny_mlp);
  const fs::path run = place.file("run");
  check_completes(place.run({}));
  const Json without = json_of(run / "summary.json");
  CHECK(differences(summary_shape("samples_per_second"), without) == none);
  CHECK(without.at("final").at("validation_loss").is_null());
  CHECK(metrics_of(run).size() == 3);

  check_completes(place.run({"--overwrite", "--set", "training.eval_interval=2", "--set", "training.eval_steps=1"}));
  const std::vector<Json> records = metrics_of(run);
  REQUIRE(records.size() == 5);  // train, train, eval, train, eval
  CHECK(differences(R"({"kind": "train", "step": "whole", "loss": "float", "grad_norm": "float",
                        "learning_rate": "float", "loss_scale": "float", "skipped": "flag", "samples": "whole",
                        "step_seconds": "float", "samples_per_second": "float"})",
                    records.at(3)) == none);
  CHECK(differences(R"({"kind": "eval", "step": "whole", "loss": "float", "accuracy": "float"})", records.back()) ==
        none);
  CHECK(records.back().at("step") == 3);
  CHECK(json_of(run / "summary.json").at("final").at("validation_loss") == records.back().at("loss"));
  // Evaluating changes nothing.
  CHECK(json_of(run / "summary.json").at("weights_checksum") == without.at("weights_checksum"));
}

TEST_CASE("a skipped step has no gradient norm, and the summary counts it") {
  const Workplace place;
  const ProgramResult result = place.run(fp16);
  check_completes(result);
  const Json summary = json_of(place.file("run/summary.json"));
  CHECK(differences(summary_shape("tokens_per_second"), summary) == none);
  CHECK(summary.at("run").at("precision") == "fp16");
  std::int64_t skipped = 0;
  std::int64_t step = 0;
  double next_scale = std::exp2(20);
  for (const Json& record : metrics_of(place.file("run"))) {
    if (record.at("kind") != "train") continue;
    CHECK(record.at("step") == ++step);
    CHECK(record.at("samples") == 6 * step);
    CHECK(record.at("tokens") == 48 * step);
    CHECK(record.at("loss_scale").get<double>() == next_scale);
    const bool is_skipped = record.at("skipped").get<bool>();
    CHECK(record.at("grad_norm").is_null() == is_skipped);
    CHECK_FALSE(record.contains("not_finite"));
    if (is_skipped) ++skipped;
    if (is_skipped) next_scale /= 2.0;
  }
  CHECK(skipped > 0);
  CHECK(summary.at("steps") == Json({{"attempted", 6}, {"applied", 6 - skipped}, {"skipped", skipped}}));
  CHECK(summary.at("final").at("loss_scale").get<double>() == next_scale);
  CHECK(count_of(result.err, "skipped: gradients overflowed at loss scale") == skipped);
}

TEST_CASE("a run in which no step was applied is completed, with a warning") {
  const Workplace place;
  const ProgramResult result = place.run({"--set", "fp16.enabled=true", "--quiet"});
  check_completes(result);
  CHECK(result.err.starts_with("warning: no step was applied: all 4 "));
  CHECK(count_of(result.err, "\n") == 1);
  const Json summary = json_of(place.file("run/summary.json"));
  CHECK(summary.at("status") == "completed");
  CHECK(summary.at("steps") == Json({{"attempted", 4}, {"applied", 0}, {"skipped", 4}}));
}

TEST_CASE("config.resolved.json is what --print-config prints, and trains the same weights") {
  const Workplace place;
  place.write("text.txt", std::string(500, 'a') + std::string(500, 'b'));
  const Arguments text = {"--set", R"(data={"type": "text", "path": "text.txt", "tokenizer": "characters"})",
                          "--set", "model.vocab_size=auto",
                          "--set", R"(optimizer={"type": "SGD"})",
                          "--set", R"(scheduler={"type": "WarmupLR", "params": {"warmup_num_steps": 3}})",
                          "--set", "bf16.enabled=true"};
  int number = 0;
  for (const Arguments& kind : {ranks(2) + stage(2) + fp16, ranks(1) + text}) {
    CAPTURE(kind);
    const Arguments more = kind + Arguments{"--set", "device.threads=auto"};
    const ProgramResult printed = place.run(more + Arguments{"--print-config", "--overwrite"});
    check_completes(printed);
    if (number == 0) CHECK_FALSE(fs::exists(place.file("run")));
    CHECK(printed.out.find("\"auto\"") == std::string::npos);
    CHECK(printed.err.empty());
    check_completes(place.run(more + Arguments{"--overwrite"}));
    CHECK(contents_of(place.file("run/config.resolved.json")) == printed.out);

    const Arguments again = {"--ranks", kind.at(1), "--config", "run/config.resolved.json"};
    const std::string second = "again" + std::to_string(number++);
    check_completes(place.run_with(again + Arguments{"--output", second}));
    CHECK(curve_of(place.file(second)) == curve_of(place.file("run")));
    CHECK(place.run_with(again + Arguments{"--print-config"}).out == printed.out);
  }
}

TEST_CASE("what is wrong before the first step ends with code 2, one message and no files") {
  const Workplace place;
  const auto check_refused = [&](const Arguments& arguments, const std::string& part) {
    CAPTURE(arguments);
    check_fails(place.run(arguments), 2, part);
    CHECK(std::distance(fs::directory_iterator(place.path()), fs::directory_iterator()) == 1);
  };
  for (const Arguments& how : {Arguments{}, ranks(2)}) {
    check_refused(how + Arguments{"--set", "optimiser.type=AdamW", "--set", "training.max_steps=many"},
                  "2 mistakes in the config");
    check_refused(how + Arguments{"--set", R"(data={"type": "text", "path": "none.txt"})"}, "none.txt: no such file");
  }
  check_refused({"--ranks", "0"}, "--ranks must be 1 or more");
  check_refused({"--ranks", "4"}, "train_batch_size");
  check_refused({"--ranks", "2", "--set", "device.communicator=mpi"}, "mpirun");
  check_refused({"--world-size", "2"}, "--dry-run");
  check_refused({"--resume", "--overwrite"}, "exclude each other");
  check_refused({"--no-such-option"}, "--no-such-option");
  check_refused({"train", "extra"}, "extra");
  check_fails(place.run_with({"juggle", "--config", "config.json"}), 2, "\"juggle\"");
  check_fails(place.run_with({"--config", "none.json"}), 2, "none.json");
  check_fails(place.run_with({}), 2, "no config");
}

TEST_CASE("what is wrong is said once under mpirun") {
  if (!can_use_mpi()) return;
  const Workplace place;
  for (const Arguments& wrong :
       {Arguments{"--set", "optimiser.type=AdamW"}, Arguments{"--set", R"(data={"type": "text", "path": "none.txt"})"},
        Arguments{"--ranks", "2"}}) {
    CAPTURE(wrong);
    check_fails(place.run(wrong, mpirun(2)), 2, "zerotrain: ");
    CHECK_FALSE(fs::exists(place.file("run")));
  }
}

TEST_CASE("an output directory that holds a run is used again only when asked") {
  const Workplace place;
  check_completes(place.run({"--set", "training.seed=1"}));
  place.write("run/notes.txt", "of the user");
  const std::string before = contents_of(place.file("run/summary.json"));
  for (const Arguments& how : {Arguments{}, ranks(2)}) {
    check_fails(place.run(how), 2, "holds a run already");
    CHECK(contents_of(place.file("run/summary.json")) == before);
  }
  check_completes(place.run({"--overwrite"}));
  CHECK(contents_of(place.file("run/summary.json")) != before);
  CHECK(metrics_of(place.file("run")).size() == 6);
  CHECK(contents_of(place.file("run/notes.txt")) == "of the user");

  place.write("file", "");
  for (const std::string path : {"file", "file/below"}) {
    check_fails(place.run_with({"--config", "config.json", "--output", path}), 2, path);
  }
  CHECK(fs::is_regular_file(place.file("file")));
}

TEST_CASE("help and version go to stdout") {
  const Workplace place;
  for (const std::string option : {"--help", "--version"}) {
    const ProgramResult result = place.run_with({option});
    check_completes(result);
    CHECK(result.out.find("zerotrain") != std::string::npos);
    CHECK(result.err.empty());
  }
}

TEST_CASE("a loss that is not finite ends the run with code 1, and step and tensor are named") {
  for (const int number : {1, 2}) {
    CAPTURE(number);
    const Workplace place;
    const ProgramResult result =
        place.run(ranks(number) + Arguments{"--set", R"(optimizer={"type": "SGD", "params": {"lr": 1e30}})"});
    check_fails(result, 1, "zerotrain: step 2: the loss is not finite; ");
    CHECK(std::regex_search(result.err, std::regex("at element [0-9]+ of (h\\.[01]|wte|wpe|ln_f)\\.[a-z_.]+ ")));
    const Json summary = json_of(place.file("run/summary.json"));
    CHECK(summary.at("status") == "failed");
    CHECK(result.err.find("zerotrain: " + summary.at("error").get<std::string>() + "\n") != std::string::npos);
    CHECK(summary.at("final").at("loss").is_null());
    CHECK(summary.at("steps").at("attempted") == 2);
    const std::vector<Json> records = metrics_of(place.file("run"));
    REQUIRE(records.size() == 2);
    CHECK(records.back().at("step") == 2);
    CHECK(records.back().at("loss").is_null());
    CHECK(records.back().at("not_finite") == "nan");
  }
}

TEST_CASE("an overflow at the smallest loss scale ends the run with code 1") {
  const Workplace place;
  const ProgramResult result = place.run(ranks(2) + fp16 + Arguments{"--set", "fp16.min_loss_scale=524288"});
  check_fails(result, 1, "zerotrain: step 2: the loss scale is at its minimum, 524288 (fp16.min_loss_scale)");
  const Json summary = json_of(place.file("run/summary.json"));
  CHECK(summary.at("status") == "failed");
  CHECK(summary.at("error").get<std::string>().find("at its minimum") != std::string::npos);
  CHECK(summary.at("steps") == Json({{"attempted", 2}, {"applied", 0}, {"skipped", 2}}));
}

TEST_CASE("a signal stops the run after its step, with code 128 + signal") {
  for (const int number : {1, 2}) {
    for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) {
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
  const unsigned long long stops = 1ULL << (SIGINT - 1) | 1ULL << (SIGTERM - 1) | 1ULL << (SIGUSR1 - 1);
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

TEST_CASE("a second signal ends the run at once") {
  const Arguments long_steps = {
      "--set", "model.layers=[64, 1024, 1024, 1]",   "--set", "model.loss=mse",      "--set", "train_batch_size=400000",
      "--set", "train_micro_batch_size_per_gpu=500", "--set", "data.samples=1000000"};
  for (const int number : {1, 2}) {
    CAPTURE(number);
    const Workplace place(tiny_mlp);
    Program program(Workplace::command(ranks(number) + long_steps), place.options());
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
    if (result.err.find("zerotrain: rank 0 ") != std::string::npos) continue;  // the rank that writes
    CHECK(json_of(run / "summary.json").at("status") == "failed");
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

TEST_CASE("a full disk ends the run with a message that names the file") {
  for (const int number : {1, 2}) {
    // A file that is there already is appended to with --resume; the others are written beside and renamed.
    for (const auto& [name, code] : std::map<std::string, int>{
             {"metrics.jsonl", 2}, {"config.resolved.json.tmp", 2}, {"summary.json.tmp", 1}, {"train.log", 1}}) {
      CAPTURE(number, name);
      const Workplace place;
      fs::create_directory(place.file("run"));
      fs::create_symlink("/dev/full", place.file("run") / name);
      const ProgramResult result = place.run(ranks(number) + Arguments{"--resume"});
      check_fails(result, code, place.file("run").string() + "/" + name.substr(0, name.find(".tmp")));
      CHECK(result.err.find("No space left on device") != std::string::npos);
    }
  }
}

TEST_CASE("a disk that fills up while training ends the run with code 1 and whole lines") {
  for (const int number : {1, 2}) {
    CAPTURE(number);
    const Workplace place;
    fs::create_directory(place.file("run"));
    const fs::path metrics = place.file("run/metrics.jsonl");
    constexpr std::int64_t limit = 64 << 20;
    constexpr std::int64_t before = limit - 700;  // room for two steps
    place.write("run/metrics.jsonl", "");
    fs::resize_file(metrics, before);
    ProgramOptions options = place.options();
    options.largest_file = limit;
    const ProgramResult result =
        run_program(Workplace::command(ranks(number) + endless + Arguments{"--resume"}), options);
    check_fails(result, 1, "cannot write " + metrics.string());
    const Json summary = json_of(place.file("run/summary.json"));
    CHECK(summary.at("status") == "failed");
    CHECK(summary.at("error").get<std::string>().find(metrics.string()) != std::string::npos);
    const std::vector<std::string> lines = lines_of(contents_of(metrics).substr(before));
    REQUIRE(lines.size() >= 2);
    CHECK(lines.front() == R"({"kind": "resume", "step": 0})");
    CHECK(Json::parse(lines.back()).at("step") == lines.size() - 1);
  }
}

TEST_CASE("stdout holds results only") {
  const Workplace place;
  for (const Arguments& how : {Arguments{}, ranks(2)}) {
    const ProgramResult loud = place.run(how + Arguments{"--overwrite"});
    check_completes(loud);
    CHECK(loud.out.empty());
    CHECK(loud.err.find("completed: 4 steps attempted, 4 applied, 0 skipped") != std::string::npos);
    const ProgramResult quiet = place.run(how + Arguments{"--overwrite", "--quiet"});
    check_completes(quiet);
    CHECK(quiet.out.empty());
    CHECK(quiet.err.empty());
  }
  const ProgramResult printed = place.run({"--print-config"});
  check_completes(printed);
  CHECK(printed.err.empty());
  const Json config = Json::parse(printed.out, nullptr, false);
  REQUIRE(config.is_object());
  CHECK(config.at("training").at("max_steps") == 4);
  CHECK(config.at("training").at("output_dir") == place.file("run").string());
}

TEST_CASE("results that cannot be written to stdout are an error") {
  const Workplace place;
  place.write("text.txt", std::string(500, 'a') + std::string(500, 'b'));
  const Arguments sample = {"--set",  R"(data={"type": "text", "path": "text.txt", "tokenizer": "characters"})",
                            "--set",  "model.vocab_size=auto",
                            "--set",  "training.sample_prompt=ab",
                            "--quiet"};
  const Arguments to_full_disk = {"sh", "-c", R"(exec "$@" >/dev/full)", "sh"};
  for (const Arguments& what : {Arguments{"--print-config"}, Arguments{"--dry-run"}, sample, ranks(2) + sample}) {
    CAPTURE(what);
    check_fails(place.run(what + Arguments{"--overwrite"}, to_full_disk), 1, "stdout");
  }
  CHECK(json_of(place.file("run/summary.json")).at("status") == "failed");
}

TEST_CASE("a prompt that the vocabulary lacks is found before a run is overwritten") {
  const Workplace place;
  place.write("text.txt", std::string(500, 'a') + std::string(500, 'b'));
  const Arguments sample = {"--set",   R"(data={"type": "text", "path": "text.txt", "tokenizer": "characters"})",
                            "--set",   "model.vocab_size=auto",
                            "--quiet", "--overwrite"};
  check_completes(place.run(sample));
  const std::string before = contents_of(place.file("run/summary.json"));
  CHECK(before.size() > 100);
  for (const int number : {1, 2}) {
    check_fails(place.run(ranks(number) + sample + Arguments{"--set", "training.sample_prompt=abc"}), 2, "c");
    CHECK(contents_of(place.file("run/summary.json")) == before);
  }
}

TEST_CASE("the generated text goes to stdout, the same at every stage and number of ranks") {
  const Workplace place;
  std::string text;
  for (int line = 0; line < 40; ++line) text += "In the beginning was the word, and so on.\n";
  place.write("text.txt", text);
  const Arguments sample = {"--set", R"(data={"type": "text", "path": "text.txt", "tokenizer": "characters"})",
                            "--set", "model.vocab_size=auto",
                            "--set", "training.sample_prompt=In the"};
  const ProgramResult alone = place.run(sample);
  check_completes(alone);
  CHECK(alone.out.starts_with("In the"));
  CHECK(alone.out.back() == '\n');
  CHECK(alone.out.size() == 6 + 300 + 1);
  for (const int level : {0, 3}) {
    const ProgramResult result = place.run(ranks(2) + stage(level) + sample + Arguments{"--overwrite", "--quiet"});
    check_completes(result);
    CHECK(result.out == alone.out);
    CHECK(result.err.empty());
  }
}

TEST_CASE("the plan is printed for any number of ranks, and is that of the run") {
  const Workplace place;
  for (const int level : {0, 1, 2, 3}) {
    for (const int number : {1, 2, 3, 64}) {
      CAPTURE(level, number);
      const ProgramResult plan =
          place.run(stage(level) + Arguments{"--dry-run", "--world-size", std::to_string(number), "--set",
                                             "train_batch_size=192", "--set", "data.samples=300"});
      check_completes(plan);
      CHECK(plan.err.find("zerotrain:") == std::string::npos);  // notices at most
      CHECK(plan.out.find("layout for " + std::to_string(number) + " rank(s): 7,216 parameters") != std::string::npos);
      for (const char* part : {"parameters ", "gradients ", "optimizer ", "activations ", "communication ", "data ",
                               "workspace ", "total ", "communication of a rank: "}) {
        CHECK(plan.out.find(part) != std::string::npos);
      }
      CHECK(plan.out.find("formula of stage " + std::to_string(level)) != std::string::npos);
    }
    CHECK_FALSE(fs::exists(place.file("run")));

    const ProgramResult plan = place.run(ranks(2) + stage(level) + Arguments{"--dry-run"});
    check_completes(place.run(ranks(2) + stage(level)));
    const Json summary = json_of(place.file("run/summary.json"));
    fs::remove_all(place.file("run"));
    for (const auto& [category, bytes] : summary.at("memory").at("ranks").at(0).items()) {
      if (category == "rank" || category == "peak_resident" || category == "peers_shared") continue;
      const std::string expected = category + " +" + zt::bytes_in_words(bytes.get<std::int64_t>());
      CAPTURE(expected, plan.out);
      CHECK(std::regex_search(plan.out, std::regex(expected)));
    }
    std::smatch match;
    REQUIRE(std::regex_search(plan.out, match, std::regex("communication of a rank: ([0-9,]+) elements a step")));
    std::string elements = match[1];
    elements.erase(std::remove(elements.begin(), elements.end(), ','), elements.end());
    CHECK(std::stoll(elements) * 4 == summary.at("communication").at("elements").get<std::int64_t>());
  }
}
