#include "train/csv_monitor.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "core/errors.h"
#include "train/metrics_writer.h"

namespace zt {

namespace {

// As Python writes it, with 9 significant digits.
std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0.0 ? "-inf" : "inf";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.9g", value);
  return text.data();
}

}  // namespace

CsvMonitor::CsvMonitor(const std::string& directory, bool scales_loss) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) throw UserError(directory + ": cannot be made: " + error.message() + " (csv_monitor.output_path)");
  const auto add_curve = [&](const std::string& name, double StepRecord::*value) {
    const std::string path = directory + "/Train_Samples_" + name + ".csv";
    const bool is_new = !std::filesystem::exists(path, error) || std::filesystem::file_size(path, error) == 0;
    curves_.push_back({std::make_unique<LineFile>(path), value, is_new ? "step," + name + "\r\n" : ""});
  };
  add_curve("train_loss", &StepRecord::loss);
  add_curve("lr", &StepRecord::learning_rate);
  if (scales_loss) add_curve("loss_scale", &StepRecord::loss_scale);
}

void CsvMonitor::add(const StepRecord& record) {
  const std::string samples = std::to_string(record.samples);
  for (Curve& curve : curves_) curve.lines += samples + "," + number_text(record.*curve.value) + "\r\n";
}

void CsvMonitor::write() {
  for (Curve& curve : curves_) {
    if (!curve.lines.empty()) curve.file->append_lines(curve.lines);
    curve.lines.clear();
  }
}

}  // namespace zt
