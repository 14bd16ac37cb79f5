// Where the curves of a run go besides metrics.jsonl: CSV files, TensorBoard (DeepSpeed's csv_monitor and tensorboard).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zt {

struct StepRecord;

struct EvaluationRecord {
  std::int64_t samples = 0;  // seen in training before
  double loss = 0.0;
  std::optional<double> accuracy;
};

// A folder for a monitor's files: it and those above it are made where they are missing. Of those the destructor
// removes the ones that are empty: a run that does not begin leaves nothing behind.
class MonitorFolder {
 public:
  // UserError, which names `key`, where it cannot be made or written to.
  MonitorFolder(const std::string& path, const std::string& key);
  ~MonitorFolder();
  MonitorFolder(const MonitorFolder&) = delete;
  MonitorFolder& operator=(const MonitorFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::vector<std::filesystem::path> made_;  // from the outside in
};

class Monitor {
 public:
  virtual ~Monitor() = default;
  // Before the first step's points: those that an earlier process has left at `samples` or beyond come anew.
  virtual void begin(std::int64_t /*samples*/) {}
  // A point of the curve `tag` ("Train/Samples/lr"), kept until
  virtual void add(std::string_view tag, std::int64_t samples, double value) = 0;
  virtual void write() = 0;  // RunError; files are made by the first point
};

// All monitors of a run, and which points they get: DeepSpeed's names, and Validation/Samples/loss and accuracy.
class Monitors {
 public:
  explicit Monitors(bool scales_loss = false) : scales_loss_(scales_loss) {}
  void watch(std::unique_ptr<Monitor> monitor) { monitors_.push_back(std::move(monitor)); }
  bool empty() const { return monitors_.empty(); }

  void add(const StepRecord& record);
  void add(const EvaluationRecord& record);
  void write();

 private:
  void add(std::string_view tag, std::int64_t samples, double value);

  std::vector<std::unique_ptr<Monitor>> monitors_;
  bool scales_loss_;
  bool begun_ = false;
};

}  // namespace zt
