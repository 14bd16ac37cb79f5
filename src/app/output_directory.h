// The directory that a run's files go to.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>

namespace zt {

// While a process holds it no other gets it. Processes that are forked hold it, too; it ends with the last of them,
// however that ends.
class OutputLock {
 public:
  OutputLock() = default;
  // UserError where another process holds it. Where the file system knows no locks nothing is held.
  explicit OutputLock(const std::string& directory);
  ~OutputLock();
  OutputLock(OutputLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  OutputLock& operator=(OutputLock&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  bool held() const { return file_ >= 0; }

 private:
  int file_ = -1;
};

// Creates it if needed, checks that it can be written, and locks it with `lock` unless that is held already. One that
// holds a run is refused (UserError) unless `resume` (left as it is) or `overwrite` (the run's files are removed,
// nothing else).
void claim_output_directory(const std::string& path, bool resume, bool overwrite, OutputLock& lock);

// What the summary of a completed run says.
struct FinishedRun {
  std::int64_t steps = 0;   // attempted
  std::string stop_reason;  // max_steps, max_epochs, early_stopping
};
std::optional<FinishedRun> finished_run(const std::string& path);

// The resolved config that a run left last; no object where there is none, or a damaged one.
nlohmann::ordered_json last_config_of(const std::string& path);

}  // namespace zt
