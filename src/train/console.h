// What one rank says while a run goes on: to stderr and to train.log; a progress bar on a terminal, lines elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "core/files.h"

namespace spdlog {
class logger;
}

namespace zt {

struct ProgressLine {
  std::int64_t step = 0, steps = 0;
  double loss = 0.0, scale = 1.0, learning_rate = 0.0;
  bool shows_scale = false;
  double rate = 0.0;  // tokens or samples a second
  const char* rate_unit = "tokens";
};

class Console {
 public:
  // A console that says nothing (ranks other than the first).
  Console() = default;
  // log_path: train.log, which is appended to; a line that cannot be written is a RunError. quiet: errors and warnings
  // only on the screen; verbose: more than usual.
  Console(const std::string& log_path, bool quiet, bool verbose);
  ~Console();
  Console(Console&&) noexcept;
  Console& operator=(Console&&) noexcept;

  void say(const std::string& text);     // lines of the run's report
  void detail(const std::string& text);  // with --verbose, and in the log
  void warn(const std::string& text);
  void note(const std::string& text) noexcept;  // in the log alone, if it can still be written
  // A step is done. Redraws the bar (a terminal), or says a line if `is_due`.
  void progress(const ProgressLine& line, bool is_due);
  void end_progress();

 private:
  void clear_bar();
  void log(const std::string& text);  // a line of train.log, with the time
  std::shared_ptr<spdlog::logger> screen_;
  std::unique_ptr<LineFile> log_;
  bool bar_ = false, bar_drawn_ = false;
  std::chrono::steady_clock::time_point started_, last_drawn_;
  std::int64_t first_step_ = -1;
};

}  // namespace zt
