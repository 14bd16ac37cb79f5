// What the tests of the program from the outside share: configs, a place to run it, and looks at what it left.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "catch_compat.h"
#include "core/json.h"
#include "run_program.h"

namespace zt::test {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

using Arguments = std::vector<std::string>;

inline const char* const tiny_gpt = R"({
  "train_batch_size": 6, "train_micro_batch_size_per_gpu": 1, "gradient_clipping": 1.0,
  "optimizer": { "type": "AdamW", "params": { "lr": 2e-3, "weight_decay": 0.1 } },
  "data_types": { "grad_accum_dtype": "fp32" },
  "model": { "type": "gpt", "n_layer": 2, "n_head": 2, "n_embd": 16, "n_positions": 8, "vocab_size": 31,
             "resid_pdrop": 0.1 },
  "data": { "type": "synthetic", "task": "tokens", "samples": 100 },
  "training": { "max_steps": 4, "eval_interval": 2, "eval_steps": 1 },
  "device": { "threads": 1 }
})";

inline const char* const tiny_mlp = R"({
  "train_batch_size": 4,
  "optimizer": { "type": "SGD", "params": { "lr": 0.01 } },
  "model": { "type": "mlp", "layers": [8, 9, 3], "activation": "relu", "loss": "cross_entropy" },
  "data": { "type": "synthetic", "task": "regression", "samples": 100 },
  "training": { "max_steps": 3, "eval_interval": 0 },
  "device": { "threads": 1 }
})";

// fp16 that skips its first steps and applies others.
inline const Arguments fp16 = {"--set", "fp16.enabled=true", "--set", "fp16.initial_scale_power=20",
                               "--set", "fp16.hysteresis=1", "--set", "training.max_steps=6"};

inline const Arguments endless = {"--set", "training.max_steps=100000000", "--set", "training.eval_interval=0"};

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

inline Arguments operator+(Arguments left, const Arguments& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

inline Json json_of(const fs::path& path) {
  INFO(path);
  const Json json = Json::parse(contents_of(path), nullptr, false);
  REQUIRE_FALSE(json.is_discarded());
  return json;
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

inline std::vector<Json> metrics_of(const fs::path& run) {
  std::vector<Json> records;
  for (const std::string& line : lines_of(contents_of(run / "metrics.jsonl"))) {
    INFO(line);
    records.push_back(Json::parse(line, nullptr, false));
    REQUIRE_FALSE(records.back().is_discarded());
  }
  return records;
}

inline std::size_t metrics_lines(const fs::path& run) { return lines_of(contents_of(run / "metrics.jsonl")).size(); }

inline int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// What a run computed, as text: loss, gradient norm and scale of each line of metrics.jsonl, and the checksum.
inline std::string curve_of(const fs::path& run) {
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

inline Arguments stage(int number) { return {"--set", "zero_optimization.stage=" + std::to_string(number)}; }
inline Arguments ranks(int number) { return {"--ranks", std::to_string(number)}; }

// The command that starts `number` ranks over MPI; empty where that is not possible.
inline Arguments mpirun(int number) {
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

inline bool can_use_mpi() {
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
inline void compare(const Json& shape, const Json& value, const std::string& place,
                    std::vector<std::string>& differences) {
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

inline std::vector<std::string> differences(const std::string& shape, const Json& value) {
  std::vector<std::string> found;
  compare(Json::parse(shape), value, "", found);
  return found;
}

inline const std::vector<std::string> none;

// `evaluated`: there was a validation loss.
inline std::string summary_shape(const std::string& rate, bool evaluated) {
  const std::string memory = R"("parameters": "whole", "gradients": "whole", "optimizer": "whole",
    "activations": "whole", "communication": "whole", "data": "whole", "workspace": "whole", "padding": "whole")";
  const std::string collective = R"({"calls": "whole", "bytes": "whole", "seconds": "float"})";
  const std::string best = evaluated ? R"({"step": "whole", "validation_loss": "float"})" : R"("null")";
  return R"({"status": "completed", "stop_reason": "text",
    "steps": {"attempted": "whole", "applied": "whole", "skipped": "whole"},
    "skipped_for": {"gradient_overflow": "whole", "loss_not_finite": "whole", "loss_spike": "whole",
                    "grad_norm_spike": "whole"},
    "retries": "whole",
    "final": {"loss": "float", "validation_loss": "float or null", "loss_scale": "float"},
    "best": )" +
         best + R"(,
    "model": {"type": "text", "parameters": "whole", "trained": "whole"},
    "weights_checksum": "text",
    "run": {"world_size": "whole", "stage": "whole", "precision": "text", "device": "cpu", "instruction_set": "text",
            "threads_per_rank": "whole", "micro_batch": "whole", "accumulation": "whole", "accumulation_order": "text"},
    "memory": {"formula_bytes_per_parameter": "float", "planned": {)" +
         memory + R"(}, "ranks": [{"rank": "whole", "peak_resident": "whole", "peers_shared": "whole", )" + memory +
         R"(}]},
    "communication": {"elements_per_parameter_and_step": "float", "planned": "float", "paper": "float",
      "elements": "whole", "planned_elements": "whole", "all_reduce": )" +
         collective + R"(, "reduce_scatter": )" + collective + R"(, "all_gather": )" + collective +
         R"(, "broadcast": )" + collective + R"(, "all_to_all": )" + collective + R"(},
    "throughput": {")" +
         rate + R"(": "float", "model_flops_per_second": "float", "matmul_flops_per_second": "float",
      "utilization": "float"},
    "checkpoints": {"written": "whole", "seconds_waited": "float"},
    "seconds": {"startup": "float", "train": "float", "forward": "float", "backward": "float", "optimizer": "float",
      "communication_exposed": "float", "data_wait": "float"}})";
}

// Numbers with a point or an exponent that have more than nine significant digits.
inline std::vector<std::string> too_precise(const std::string& text) {
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

inline void check_memory_and_communication(const fs::path& run) {
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
inline void check_fails(const ProgramResult& result, int code, const std::string& part) {
  INFO(result.err);
  CHECK_FALSE(result.timed_out);
  CHECK(result.signal == 0);
  CHECK(result.code == code);
  CHECK(result.out.empty());
  CHECK(count_of(result.err, "zerotrain: ") == 1);
  CHECK(result.err.find(part) != std::string::npos);
  CHECK_FALSE(result.left_processes);
}

inline void check_completes(const ProgramResult& result) {
  INFO(result.err);
  CHECK_FALSE(result.timed_out);
  CHECK(result.signal == 0);
  REQUIRE(result.code == 0);
  CHECK(count_of(result.err, "zerotrain: ") == 0);
  CHECK_FALSE(result.left_processes);
}

}  // namespace zt::test
