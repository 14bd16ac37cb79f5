#include "train/tensorboard_monitor.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>

#include "train/event_file.h"

namespace zt {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view start_of_name = "events.out.tfevents.";

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name.front() == '\0') return "localhost";
  return name.data();
}

// events.out.tfevents.SECONDS.HOST.PROCESS.zerotrain. TensorBoard reads files in the order of their names: these
// seconds are later than those of every file that is there, however quickly, or with whatever clock, the run goes on.
std::string next_name(const fs::path& folder) {
  auto seconds = static_cast<std::int64_t>(now());
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(start_of_name)) continue;
    std::int64_t other = 0;
    const char* const digits = name.data() + start_of_name.size();
    const auto read = std::from_chars(digits, name.data() + name.size(), other);
    constexpr std::int64_t most = 9'999'999'998;  // ten digits, one of which can be added
    if (read.ec == std::errc() && other <= most) seconds = std::max(seconds, other + 1);
  }
  std::array<char, 16> ten_digits{};
  std::snprintf(ten_digits.data(), ten_digits.size(), "%010lld", static_cast<long long>(seconds));
  return std::string(start_of_name) + ten_digits.data() + "." + host_name() + "." + std::to_string(::getpid()) +
         ".zerotrain";
}

}  // namespace

TensorboardMonitor::TensorboardMonitor(const std::string& folder) : folder_(folder, "tensorboard.output_path") {}

void TensorboardMonitor::begin(std::int64_t samples) { append_record(records_, restart_event(now(), samples)); }

void TensorboardMonitor::add(std::string_view tag, std::int64_t samples, double value) {
  append_record(records_, scalar_event(now(), samples, tag, value));
}

void TensorboardMonitor::write() {
  if (records_.empty()) return;
  if (!file_) {
    std::string start;
    append_record(start, version_event(now()));
    records_.insert(0, start);
    file_ = std::make_unique<LineFile>((folder_.path() / next_name(folder_.path())).string());
  }
  file_->append_whole(records_);
  records_.clear();
}

}  // namespace zt
