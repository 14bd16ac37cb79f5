#include "train/csv_monitor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <system_error>

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

CsvMonitor::CsvMonitor(const std::string& folder) : folder_(folder, "csv_monitor.output_path") {}

void CsvMonitor::add(std::string_view tag, std::int64_t samples, double value) {
  auto curve = curves_.find(tag);
  if (curve == curves_.end()) curve = curves_.emplace(std::string(tag), Curve()).first;
  curve->second.lines += std::to_string(samples) + "," + number_text(value) + "\r\n";
}

void CsvMonitor::write() {
  for (auto& [tag, curve] : curves_) {
    if (curve.lines.empty()) continue;
    if (!curve.file) {
      std::string name = tag;
      std::replace(name.begin(), name.end(), '/', '_');
      const std::string path = (folder_.path() / (name + ".csv")).string();
      std::error_code error;
      const bool is_new = !std::filesystem::exists(path, error) || std::filesystem::file_size(path, error) == 0;
      curve.file = std::make_unique<LineFile>(path);
      if (is_new) curve.lines.insert(0, "step," + tag.substr(tag.rfind('/') + 1) + "\r\n");
    }
    curve.file->append_lines(curve.lines);
    curve.lines.clear();
  }
}

}  // namespace zt
