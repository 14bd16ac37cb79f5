#include "train/monitor.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "core/errors.h"
#include "train/metrics_writer.h"

namespace zt {

namespace fs = std::filesystem;

MonitorFolder::MonitorFolder(const std::string& path, const std::string& key) : path_(path) {
  std::error_code error;
  std::vector<fs::path> missing;
  for (fs::path folder = path_; !folder.empty() && !fs::exists(folder, error); folder = folder.parent_path())
    missing.push_back(folder);
  std::reverse(missing.begin(), missing.end());
  const auto fail = [&](const std::string& why) { throw UserError(path + ": cannot be " + why + " (" + key + ")"); };
  fs::create_directories(path_, error);
  if (error) fail("made: " + error.message());
  if (::access(path.c_str(), W_OK | X_OK) != 0) fail(std::string("written to: ") + std::strerror(errno));
  made_ = std::move(missing);
}

MonitorFolder::~MonitorFolder() {
  std::error_code ignored;  // one that is not empty stays
  for (auto folder = made_.rbegin(); folder != made_.rend(); ++folder) fs::remove(*folder, ignored);
}

void Monitors::add(std::string_view tag, std::int64_t samples, double value) {
  for (const auto& monitor : monitors_) monitor->add(tag, samples, value);
}

void Monitors::add(const StepRecord& record) {
  if (!begun_) {
    for (const auto& monitor : monitors_) monitor->begin(record.samples);
    begun_ = true;
  }
  add("Train/Samples/train_loss", record.samples, record.loss);
  add("Train/Samples/lr", record.samples, record.learning_rate);
  if (scales_loss_) add("Train/Samples/loss_scale", record.samples, record.loss_scale);
}

void Monitors::add(const EvaluationRecord& record) {
  add("Validation/Samples/loss", record.samples, record.loss);
  if (record.accuracy) add("Validation/Samples/accuracy", record.samples, *record.accuracy);
}

void Monitors::write() {
  for (const auto& monitor : monitors_) monitor->write();
}

}  // namespace zt
