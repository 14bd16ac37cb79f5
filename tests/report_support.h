// What the tests of reports share: runs made of records that are written here, in a folder of their own.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "catch_compat.h"
#include "core/errors.h"
#include "report/contents.h"
#include "report/recorded_run.h"
#include "run_program.h"

namespace zt::testing {

namespace fs = std::filesystem;

// A step's line as a run writes it; `more`: further members, with a comma before them.
inline std::string step_line(int step, const std::string& loss, const std::string& more = "") {
  return R"({"kind": "train", "step": )" + std::to_string(step) + R"(, "loss": )" + loss +
         R"(, "grad_norm": 2.0, "learning_rate": 0.001, "loss_scale": 1.0, "skipped": false, "samples": )" +
         std::to_string(8 * step) + R"(, "step_seconds": 0.5, "tokens_per_second": 1024.0)" + more + "}\n";
}
inline std::string evaluation_line(int step, const std::string& loss) {
  return R"({"kind": "eval", "step": )" + std::to_string(step) + R"(, "loss": )" + loss + "}\n";
}
inline std::string resume_line(int step) {
  return R"({"kind": "resume", "step": )" + std::to_string(step) + R"(, "world_size": 2, "stage": 1})" + "\n";
}

class RunsFolder {
 public:
  // The path of the run.
  std::string run(const std::string& name, const std::string& metrics, const std::string& summary = "",
                  const std::string& config = "") const {
    const fs::path directory = folder_.path() / name;
    fs::create_directories(directory);
    std::ofstream(directory / "metrics.jsonl", std::ios::binary) << metrics;
    if (!summary.empty()) std::ofstream(directory / "summary.json", std::ios::binary) << summary;
    if (!config.empty()) std::ofstream(directory / "config.resolved.json", std::ios::binary) << config;
    return directory.string();
  }
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }

 private:
  test::TemporaryDirectory folder_;
};

template <typename Read>
std::string message_of(Read&& read) {
  try {
    read();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace zt::testing
