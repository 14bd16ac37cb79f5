// Where two runs, or two checkpoints, part.
#include "checkpoint/compare.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>

#include "app/verbs.h"
#include "checkpoint/checksum.h"
#include "checkpoint/directory.h"
#include "config/difference.h"
#include "core/errors.h"
#include "core/json.h"
#include "core/json_text.h"
#include "data/message_text.h"
#include "train/metrics_file.h"

namespace zt {

namespace {

namespace fs = std::filesystem;

bool is_run(const std::string& path) { return fs::exists(fs::path(path) / "metrics.jsonl"); }

std::string digits(double value) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.9g", value);
  return text.data();
}

// The records of training steps, with the fingerprints of those that have some. Where the run went on from a step, what
// it had recorded behind that belongs to another branch than its end.
std::map<std::int64_t, Json> steps_of(const std::string& run) {
  std::map<std::int64_t, Json> steps;
  const auto add = [&](Json&& record) {
    const auto step = record.find("step");
    if (step == record.end() || !step->is_number_integer()) return;
    const auto step_number = step->get<std::int64_t>();
    const std::string kind = record.contains("kind") && record["kind"].is_string() ? record["kind"] : "";
    if (kind == "resume") {
      steps.erase(steps.upper_bound(step_number), steps.end());
    } else if (kind == "train") {
      steps[step_number] = std::move(record);
    } else if (kind == "digest" && steps.contains(step_number)) {
      for (const char* key : {"weights", "moments"}) steps[step_number][key] = record.value(key, "");
    }
  };
  const std::string notice = read_metrics((fs::path(run) / "metrics.jsonl").string(), add);
  if (!notice.empty()) std::fprintf(stderr, "notice: %s\n", notice.c_str());
  return steps;
}

struct Finding {
  Json json = Json::object();
  std::vector<std::string> lines;
  bool differs = false;
};

void compare_steps(const std::string& a, const std::string& b, Finding& finding) {
  const auto of_a = steps_of(a);
  const auto of_b = steps_of(b);
  std::int64_t common = 0;
  for (const auto& [step, record] : of_a) {
    const auto other = of_b.find(step);
    if (other == of_b.end()) continue;
    for (const char* key :
         {"loss", "grad_norm", "loss_scale", "skipped", "learning_rate", "samples", "weights", "moments"}) {
      const Json mine = record.contains(key) ? record.at(key) : Json(nullptr);
      const Json theirs = other->second.contains(key) ? other->second.at(key) : Json(nullptr);
      // Only one of the two may have been asked for fingerprints.
      if (mine == theirs || mine.is_null() != theirs.is_null()) continue;
      finding.differs = true;
      finding.json["first_step"] = step;
      finding.json["key"] = key;
      finding.json["values"] = {mine, theirs};
      finding.lines.push_back("the first step that differs is " + std::to_string(step) + ": " + key + " " +
                              mine.dump() + ", " + theirs.dump() + " (" + std::to_string(common) +
                              " steps before it are the same)");
      return;
    }
    ++common;
  }
  finding.json["first_step"] = nullptr;
  finding.json["common_steps"] = common;
  finding.lines.push_back(std::to_string(common) +
                          " common steps, all the same in loss, gradient norm, scale, learning "
                          "rate and samples");
}

void compare_checkpoints(const std::string& a, const std::string& b, Finding& finding) {
  const NativeCheckpoint first(a);
  const NativeCheckpoint second(b);
  const auto difference = first_difference(first, second);
  if (!difference) {
    finding.lines.push_back(first.directory() + " and " + second.directory() + " hold the same bits");
    finding.json["tensor"] = nullptr;
    return;
  }
  // A damaged file is no difference between trainings.
  first.verify();
  second.verify();
  finding.differs = true;
  finding.json["checkpoints"] = {first.directory(), second.directory()};
  finding.json["kind"] = difference->kind;
  finding.json["tensor"] = difference->tensor;
  finding.json["element"] = difference->element;
  finding.json["differing"] = difference->differing;
  finding.json["largest_difference"] = difference->largest;
  finding.lines.push_back(
      first.directory() + " and " + second.directory() + ": the first tensor that differs is " +
      shown(difference->tensor, 200) + " (" + difference->kind + "): " + std::to_string(difference->differing) +
      " of " + std::to_string(difference->elements) + " elements, from element " + std::to_string(difference->element) +
      " (" + digits(static_cast<double>(difference->first)) + ", " + digits(static_cast<double>(difference->second)) +
      ")" + (difference->largest > 0.0 ? ", by at most " + digits(difference->largest) : ""));
}

// The first step at which both have a checkpoint and these differ.
void compare_checkpoints_of_runs(const std::string& a, const std::string& b, Finding& finding) {
  const auto of_a = list_checkpoints((fs::path(a) / "checkpoints").string()).finished;
  const auto of_b = list_checkpoints((fs::path(b) / "checkpoints").string()).finished;
  std::vector<std::int64_t> common;
  std::set_intersection(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(), std::back_inserter(common));
  if (common.empty()) {
    finding.lines.push_back("no step of which both have a checkpoint");
    return;
  }
  for (const std::int64_t step : common) {
    const auto path = [&](const std::string& run) {
      return (fs::path(run) / "checkpoints" / checkpoint_name(step)).string();
    };
    compare_checkpoints(path(a), path(b), finding);
    if (finding.json.contains("tensor") && !finding.json.at("tensor").is_null()) return;
  }
}

void tell_configs(const std::string& a, const std::string& b, Finding& finding) {
  const auto config_of = [](const std::string& run) {
    std::ifstream file(fs::path(run) / "config.resolved.json");
    return Json::parse(file, nullptr, false);
  };
  const Json first = config_of(a);
  const Json second = config_of(b);
  if (!first.is_object() || !second.is_object()) return;
  finding.json["config"] = Json::array();
  for (const ConfigDifference& difference : config_differences(first, second)) {
    if (difference.path == "training.output_dir") continue;
    const auto text = [](const Json& value) { return value.is_discarded() ? std::string("(missing)") : value.dump(); };
    finding.json["config"].push_back(difference.path);
    finding.lines.push_back("config: " + difference.path + ": " + text(difference.before) + ", " +
                            text(difference.after));
  }
}

}  // namespace

int compare(int argc, const char* const* argv) {
  CLI::App app(
      "Says where two runs or two checkpoints part: the first step, the first tensor. 0: nowhere; 1: they differ.",
      "zerotrain compare");
  app.footer(
      "Examples:\n"
      "  zerotrain compare runs/a runs/b\n"
      "  zerotrain compare runs/a/checkpoints/step-00000010 runs/b/checkpoints/step-00000010\n"
      "  zerotrain compare runs/a runs/b --json\n\n"
      "Of runs it compares the configs, the records of the steps that both have, and the checkpoints of the same step; "
      "the steps of a resumed run are those that it ended with.");
  std::vector<std::string> paths;
  bool json = false;
  app.add_option("paths", paths, "Two directories of runs, or two checkpoints")
      ->type_name("PATH PATH")
      ->required()
      ->expected(2);
  app.add_flag("--json", json, "One object in place of the lines: same, first_step, key, values, config, tensor ...");
  if (!parse_verb(app, argc, argv)) return 0;
  Finding finding;
  if (is_run(paths[0]) && is_run(paths[1])) {
    tell_configs(paths[0], paths[1], finding);
    compare_steps(paths[0], paths[1], finding);
    compare_checkpoints_of_runs(paths[0], paths[1], finding);
  } else {
    compare_checkpoints(find_checkpoint(paths[0]), find_checkpoint(paths[1]), finding);
  }
  finding.json["same"] = !finding.differs;
  if (json) {
    std::puts(json_text(finding.json, 2).c_str());
  } else {
    for (const std::string& line : finding.lines) std::puts(line.c_str());
  }
  return finding.differs ? 1 : 0;
}

}  // namespace zt
