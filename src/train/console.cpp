#include "train/console.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <utility>

#include "train/words.h"

namespace zt {

Console::Console(const std::string& log_path, bool quiet, bool verbose) {
  screen_ = std::make_shared<spdlog::logger>("screen", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  screen_->set_pattern("%v");
  screen_->set_level(quiet ? spdlog::level::warn : verbose ? spdlog::level::debug : spdlog::level::info);
  log_ = std::make_unique<LineFile>(log_path);
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

void Console::log(const std::string& text) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  std::array<char, 32> time{};
  std::strftime(time.data(), time.size(), "%Y-%m-%d %H:%M:%S ", &local);
  log_->append(time.data() + text);
}

void Console::say(const std::string& text) {
  if (!screen_) return;
  clear_bar();
  screen_->info(text);
  log(text);
}

void Console::detail(const std::string& text) {
  if (!screen_) return;
  clear_bar();
  screen_->debug(text);
  log(text);
}

void Console::note(const std::string& text) noexcept {
  try {
    if (log_) log(text);
  } catch (const std::exception&) {  // the disk may be what failed
  }
}

void Console::warn(const std::string& text) {
  if (!screen_) return;
  clear_bar();
  screen_->warn("warning: " + text);
  log("warning: " + text);
}

void Console::progress(const ProgressLine& line, bool is_due) {
  if (!screen_) return;
  const auto now = std::chrono::steady_clock::now();
  if (first_step_ < 0) {
    first_step_ = line.step;
    started_ = now;
  }
  const bool draws = bar_ && (!bar_drawn_ || line.step >= line.steps ||
                              std::chrono::duration<double>(now - last_drawn_).count() >= 0.1);
  if (!is_due && !draws) return;
  std::string text =
      "step " + std::to_string(line.step) + "/" + std::to_string(line.steps) + "  loss " + fixed(line.loss, 4);
  if (line.shows_scale)
    text +=
        "  scale 2^" + fixed(std::log2(line.scale), line.scale == std::exp2(std::round(std::log2(line.scale))) ? 0 : 2);
  text += "  lr " + significant(line.learning_rate, 4);
  if (line.rate > 0.0) text += "  " + count_in_words(line.rate) + " " + line.rate_unit + "/s";
  const double elapsed = std::chrono::duration<double>(now - started_).count();
  if (line.step > first_step_) {
    const double remaining =
        elapsed / static_cast<double>(line.step - first_step_) * static_cast<double>(line.steps - line.step);
    text += "  " + seconds_in_words(remaining) + " left";
  }
  if (!bar_) {
    if (is_due) say(text);
    return;
  }
  if (is_due) log(text);
  if (!draws) return;
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
