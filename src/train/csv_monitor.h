// The curves of a run as DeepSpeed's csv_monitor lays them out: a file for each, Train_Samples_train_loss.csv with the
// header "step,train_loss" and so on, where step counts the samples seen so far.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/files.h"
#include "train/monitor.h"

namespace zt {

class CsvMonitor final : public Monitor {
 public:
  // Makes the folder (UserError); files that are there are added to, under one header.
  explicit CsvMonitor(const std::string& folder);

  void add(std::string_view tag, std::int64_t samples, double value) override;
  void write() override;

 private:
  struct Curve {
    std::unique_ptr<LineFile> file;  // null: not opened yet
    std::string lines;
  };
  MonitorFolder folder_;
  std::map<std::string, Curve, std::less<>> curves_;  // by tag
};

}  // namespace zt
