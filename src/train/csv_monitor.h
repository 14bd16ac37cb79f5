// The curves of a run as DeepSpeed's csv_monitor lays them out: a file for each, Train_Samples_train_loss.csv with the
// header "step,train_loss" and so on, where step counts the samples seen so far.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/files.h"

namespace zt {

struct StepRecord;

class CsvMonitor {
 public:
  // Makes the directory (UserError); files that are there are added to, under one header (RunError).
  CsvMonitor(const std::string& directory, bool scales_loss);

  void add(const StepRecord& record);  // kept until
  void write();                        // RunError

 private:
  struct Curve {
    std::unique_ptr<LineFile> file;
    double StepRecord::*value;
    std::string lines;
  };
  std::vector<Curve> curves_;
};

}  // namespace zt
