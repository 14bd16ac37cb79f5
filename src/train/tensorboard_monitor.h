// The curves of a run for TensorBoard: an event file of each process that has taken steps, with DeepSpeed's tags over
// the samples seen so far (train/event_file.h).
#pragma once

#include <memory>
#include <string>

#include "core/files.h"
#include "train/monitor.h"

namespace zt {

class TensorboardMonitor final : public Monitor {
 public:
  // Makes the folder (UserError). A run that goes on does so in a new file there, behind those of before.
  explicit TensorboardMonitor(const std::string& folder);

  void begin(std::int64_t samples) override;
  void add(std::string_view tag, std::int64_t samples, double value) override;
  void write() override;

 private:
  MonitorFolder folder_;
  std::unique_ptr<LineFile> file_;  // null: nothing was written yet
  std::string records_;
};

}  // namespace zt
