#include "train/step_reports.h"

#include <algorithm>
#include <sstream>

#include "core/json.h"
#include "core/process.h"
#include "train/csv_monitor.h"
#include "train/tensorboard_monitor.h"
#include "train/words.h"

namespace zt {

namespace {

double communication_seconds(Session& session) {
  double seconds = 0.0;
  for (const CollectiveCount& count : session.communicator().counts().training) seconds += count.seconds;
  return seconds;
}

}  // namespace

StepReports::StepReports(const nlohmann::ordered_json& config)
    : seconds_(config.at("wall_clock_breakdown").get<bool>()),
      memory_(config.at("memory_breakdown").get<bool>()),
      dumps_(config.at("dump_state").get<bool>()) {
  const auto folder = [&](const char* section) -> std::string {
    const auto& monitor = config.at(section);
    if (!monitor.at("enabled").get<bool>()) return "";
    return monitor.at("output_path").get<std::string>() + "/" + monitor.at("job_name").get<std::string>();
  };
  csv_folder_ = folder("csv_monitor");
  tensorboard_folder_ = folder("tensorboard");
}

std::vector<std::string> StepReports::at_start(const nlohmann::ordered_json& config) const {
  std::vector<std::string> lines;
  if (!dumps_) return lines;
  lines.emplace_back("the resolved config (dump_state):");
  std::istringstream text(config.dump(2));
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> StepReports::after_step(Session& session, const MemoryLedger& ledger) {
  std::vector<std::string> lines;
  const std::string step = "step " + std::to_string(session.steps().attempted) + "  ";
  if (seconds_) lines.push_back(step + seconds_line(session));
  if (memory_) lines.push_back(step + memory_line(ledger));
  return lines;
}

// Waits for the device, so that the seconds are whole: who asks for them accepts that.
std::string StepReports::seconds_line(Session& session) {
  session.wait_for_device();
  const PhaseSeconds seconds = session.seconds();
  const double communication = communication_seconds(session);
  const std::int64_t attempted = session.steps_here().attempted;
  const auto steps = static_cast<double>(std::max<std::int64_t>(1, attempted - told_steps_));
  const auto milliseconds = [&](double now, double then) { return fixed(1000.0 * (now - then) / steps, 2) + " ms"; };
  std::string line = "a step: forward " + milliseconds(seconds.forward, told_.forward) + ", backward " +
                     milliseconds(seconds.backward, told_.backward) + ", optimizer " +
                     milliseconds(seconds.optimizer, told_.optimizer) + "; of these in collectives " +
                     milliseconds(communication, told_communication_) + "; waiting for data " +
                     milliseconds(seconds.data_wait, told_.data_wait);
  told_ = seconds;
  told_communication_ = communication;
  told_steps_ = attempted;
  return line;
}

std::string StepReports::memory_line(const MemoryLedger& ledger) {
  std::string line = "memory:";
  const MemoryByCategory bytes = ledger.current();
  for (int category = 0; category < memory_category_count; ++category) {
    line += " " + std::string(name_of(static_cast<MemoryCategory>(category))) + " " +
            bytes_in_words(bytes.at(static_cast<std::size_t>(category))) + ",";
  }
  return line + " resident at most " + bytes_in_words(peak_resident_bytes());
}

Monitors StepReports::monitors(bool scales_loss) const {
  Monitors monitors(scales_loss);
  if (!csv_folder_.empty()) monitors.watch(std::make_unique<CsvMonitor>(csv_folder_));
  if (!tensorboard_folder_.empty()) monitors.watch(std::make_unique<TensorboardMonitor>(tensorboard_folder_));
  return monitors;
}

}  // namespace zt
