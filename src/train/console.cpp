#include "train/console.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <utility>

#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include "core/errors.h"
#include "train/words.h"

namespace zt {

Console::Console(const std::string& log_path, bool quiet, bool verbose) {
  screen_ = std::make_shared<spdlog::logger>("screen", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  screen_->set_pattern("%v");
  screen_->set_level(quiet ? spdlog::level::warn : verbose ? spdlog::level::debug : spdlog::level::info);
  try {
    log_ = std::make_shared<spdlog::logger>("log", std::make_shared<spdlog::sinks::basic_file_sink_mt>(log_path));
  } catch (const spdlog::spdlog_ex& error) {
    throw UserError(std::string("cannot write the run's log: ") + error.what());
  }
  log_->set_pattern("%Y-%m-%d %H:%M:%S %v");
  log_->set_level(spdlog::level::debug);
  log_->flush_on(spdlog::level::info);
  bar_ = !quiet && ::isatty(STDERR_FILENO) != 0;
}

Console::~Console() {
  if (screen_) clear_bar();
}
Console::Console(Console&&) noexcept = default;
Console& Console::operator=(Console&&) noexcept = default;

void Console::clear_bar() {
  if (!bar_drawn_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  bar_drawn_ = false;
}

void Console::say(const std::string& text) {
  if (!screen_) return;
  clear_bar();
  screen_->info(text);
  log_->info(text);
}

void Console::detail(const std::string& text) {
  if (!screen_) return;
  clear_bar();
  screen_->debug(text);
  log_->debug(text);
}

void Console::warn(const std::string& text) {
  if (!screen_) return;
  clear_bar();
  screen_->warn("warning: " + text);
  log_->warn("warning: " + text);
}

void Console::progress(const ProgressLine& line, bool is_due) {
  if (!screen_) return;
  const auto now = std::chrono::steady_clock::now();
  if (first_step_ < 0) {
    first_step_ = line.step;
    started_ = now;
  }
  std::string text = "step " + std::to_string(line.step) + "/" + std::to_string(line.steps) + "  loss " + fixed(line.loss, 4);
  if (line.shows_scale) text += "  scale 2^" + fixed(std::log2(line.scale), line.scale == std::exp2(std::round(std::log2(line.scale))) ? 0 : 2);
  text += "  lr " + significant(line.learning_rate, 4);
  if (line.rate > 0.0) text += "  " + count_in_words(line.rate) + " " + line.rate_unit + "/s";
  const double elapsed = std::chrono::duration<double>(now - started_).count();
  if (line.step > first_step_) {
    const double remaining = elapsed / static_cast<double>(line.step - first_step_) * static_cast<double>(line.steps - line.step);
    text += "  " + seconds_in_words(remaining) + " left";
  }
  if (!bar_) {
    if (is_due) say(text);
    return;
  }
  if (is_due) log_->info(text);
  if (bar_drawn_ && std::chrono::duration<double>(now - last_drawn_).count() < 0.1 && line.step < line.steps) return;
  constexpr std::int64_t width = 24;
  const std::int64_t filled = line.steps > 0 ? width * line.step / line.steps : width;
  std::string bar = "\r\x1b[K[";
  for (std::int64_t cell = 0; cell < width; ++cell) bar += cell < filled ? '#' : '.';
  std::fputs((bar + "] " + text).c_str(), stderr);
  std::fflush(stderr);
  bar_drawn_ = true;
  last_drawn_ = now;
}

void Console::end_progress() {
  if (!bar_drawn_) return;
  std::fputs("\n", stderr);
  bar_drawn_ = false;
}

}  // namespace zt
