#include "app/output_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>

#include "core/errors.h"
#include "core/json.h"

namespace zt {

namespace fs = std::filesystem;

OutputLock::OutputLock(const std::string& directory)
    : file_(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  // Ranks of a run that was killed take a moment to die.
  constexpr std::chrono::milliseconds patience(3000), pause(20);
  const auto end = std::chrono::steady_clock::now() + patience;
  while (file_ >= 0 && ::flock(file_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(pause);
      continue;
    }
    const bool taken = errno == EWOULDBLOCK;
    ::close(std::exchange(file_, -1));
    if (taken) {
      throw UserError("training.output_dir: " + directory +
                      " is in use: a run that is still going writes there; wait for its end or stop it, or choose "
                      "another with --output DIR");
    }
  }
}

OutputLock::~OutputLock() {
  if (file_ >= 0) ::close(file_);
}

void claim_output_directory(const std::string& path, bool resume, bool overwrite, OutputLock& lock) {
  static constexpr std::array files_of_a_run = {"metrics.jsonl", "summary.json", "config.resolved.json",
                                                "train.log",     "trace.json",   "trace.json.set-aside",
                                                "checkpoints",   "csv_monitor",  "tensorboard"};
  const auto refuse = [&](const std::string& why) { throw UserError("training.output_dir: " + path + " " + why); };
  std::error_code error;
  if (fs::exists(path, error) && !fs::is_directory(path, error))
    refuse("is a file, not a directory; choose another with --output DIR");
  fs::create_directories(path, error);
  if (error) refuse("cannot be created: " + error.message() + "; choose another with --output DIR");
  if (::access(path.c_str(), W_OK | X_OK) != 0) refuse("cannot be written to; choose another with --output DIR");
  if (!lock.held()) lock = OutputLock(path);
  for (const char* name : files_of_a_run) {
    const fs::path file = fs::path(path) / name;
    if (!fs::exists(file, error) || resume) continue;
    if (!overwrite) refuse("holds a run already; remove it with --overwrite, or choose another with --output DIR");
    fs::remove_all(file, error);
    if (error) refuse("holds a run that cannot be removed: " + error.message());
  }
}

std::optional<FinishedRun> finished_run(const std::string& path) {
  std::ifstream file(fs::path(path) / "summary.json");
  const nlohmann::json summary = nlohmann::json::parse(file, nullptr, false);
  if (!summary.is_object() || summary.value("status", "") != "completed") return std::nullopt;
  const nlohmann::json steps = summary.value("steps", nlohmann::json::object());
  if (!steps.is_object()) return std::nullopt;
  return FinishedRun{steps.value("attempted", std::int64_t{0}), summary.value("stop_reason", "")};
}

nlohmann::ordered_json last_config_of(const std::string& path) {
  std::ifstream file(fs::path(path) / "config.resolved.json");
  return nlohmann::ordered_json::parse(file, nullptr, false);
}

}  // namespace zt
