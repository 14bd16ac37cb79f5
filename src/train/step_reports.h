// What DeepSpeed's keys wall_clock_breakdown, memory_breakdown, dump_state and those of its monitors ask to be told of
// a run.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "train/monitor.h"
#include "train/session.h"

namespace zt {

class StepReports {
 public:
  explicit StepReports(const nlohmann::ordered_json& config);  // resolved

  // dump_state: the config, a line each. Nothing where it is not asked for, as below.
  std::vector<std::string> at_start(const nlohmann::ordered_json& config) const;
  // After a step with steps_per_print: where this rank's time went since the last call, a step, and what memory it has.
  std::vector<std::string> after_step(Session& session, const MemoryLedger& ledger);
  // Those that are asked for. UserError where a folder cannot be made.
  Monitors monitors(bool scales_loss) const;

 private:
  std::string seconds_line(Session& session);
  static std::string memory_line(const MemoryLedger& ledger);

  bool seconds_ = false, memory_ = false, dumps_ = false;
  std::string csv_folder_, tensorboard_folder_;  // empty: none
  std::int64_t told_steps_ = 0;
  PhaseSeconds told_;
  double told_communication_ = 0.0;
};

}  // namespace zt
