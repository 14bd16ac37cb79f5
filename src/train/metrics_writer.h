// metrics.jsonl: a line a step, written by a thread, so that the steps do not wait for a disk.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "core/files.h"
#include "core/futex.h"
#include "optim/update_gate.h"
#include "train/monitor.h"

namespace zt {

// What is recorded of a step (names and units: docs/outputs.md).
struct StepRecord {
  std::int64_t step = 0;
  double loss = 0.0, grad_norm = 0.0, learning_rate = 0.0, loss_scale = 1.0;
  SkipReason skip_reason = SkipReason::none;  // none: it was applied
  std::int64_t retries = 0, samples = 0;      // since training began
  std::int64_t positions = 0, positions_per_step = 0;
  bool counts_tokens = false;  // positions are tokens, or else samples
  double seconds = 0.0;
};

// Appends the line, with its newline.
void append_step_line(std::string& out, const StepRecord& record);

class MetricsWriter {
 public:
  // Appended to. RunError if it cannot be opened. `monitors` get the same records.
  explicit MetricsWriter(const std::string& path, Monitors monitors = Monitors());
  ~MetricsWriter();  // writes what is left, if it can be written
  MetricsWriter(const MetricsWriter&) = delete;
  MetricsWriter& operator=(const MetricsWriter&) = delete;

  // Hands over a record: no allocation, lock or system call, unless the disk is `capacity` steps behind. It is in the
  // file within `longest_delay`. A line that could not be written is thrown by one of the calls after it, as the
  // RunError of LineFile; nothing is written then any more.
  void append(const StepRecord& record);
  // A line of another kind, without its newline, behind all before it; it is in the file on return.
  void append_line(const std::string& line);
  // The same of an evaluation, which is the monitors' too.
  void append_evaluation(const std::string& line, const EvaluationRecord& record);
  // Returns when all is in the file.
  void flush();

  static constexpr std::uint64_t capacity = 4096;
  static constexpr std::chrono::milliseconds longest_delay{20};

 private:
  void run();
  void write_pending();
  void throw_if_failed() const;
  void wait_until_written(std::uint64_t count);

  LineFile file_;
  Monitors monitors_;
  std::vector<StepRecord> ring_;  // record number n is at n % capacity
  std::string lines_;             // of the thread
  alignas(64) std::atomic<std::uint64_t> appended_{0};
  alignas(64) std::atomic<std::uint64_t> written_{0};
  SleepWord calls_;     // grows when the thread is to look before its time
  SleepWord progress_;  // grows when it has written, or failed
  std::atomic<bool> stop_{false}, failed_{false};
  std::exception_ptr error_;  // once failed_
  std::thread thread_;
};

}  // namespace zt
