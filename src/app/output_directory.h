// The directory that a run's files go to.
#pragma once

#include <cstdint>
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
  std::int64_t steps = 0;       // attempted
  bool took_all_steps = false;  // it ended because training.max_steps were attempted
};
std::optional<FinishedRun> finished_run(const std::string& path);

}  // namespace zt
