#include "train/metrics_writer.h"

#include <algorithm>
#include <cmath>

#include "core/json_text.h"

namespace zt {

namespace {

constexpr std::uint64_t records_a_write = 256;
constexpr std::size_t longest_line = 512;  // of a step: reserved, so that the thread need not allocate either

}  // namespace

void append_step_line(std::string& out, const StepRecord& record) {
  JsonLine line(out);
  bool told = false;
  // As put_number() of train/words.h.
  const auto number = [&](std::string_view name, double value) {
    line.number(name, value);
    if (std::isfinite(value) || told) return;
    line.text("not_finite", std::isnan(value) ? "nan" : "inf");
    told = true;
  };
  line.text("kind", "train");
  line.integer("step", record.step);
  number("loss", record.loss);
  line.number("grad_norm", record.grad_norm);
  number("learning_rate", record.learning_rate);
  number("loss_scale", record.loss_scale);
  line.boolean("skipped", record.skip_reason != SkipReason::none);
  if (record.skip_reason != SkipReason::none) line.text("skip_reason", name_of(record.skip_reason));
  if (record.retries > 0) line.integer("retries", record.retries);
  line.integer("samples", record.samples);
  if (record.counts_tokens) line.integer("tokens", record.positions);
  number("step_seconds", record.seconds);
  number(record.counts_tokens ? "tokens_per_second" : "samples_per_second",
         static_cast<double>(record.positions_per_step) / record.seconds);
  line.end();
}

MetricsWriter::MetricsWriter(const std::string& path, Monitors monitors)
    : file_(path), monitors_(std::move(monitors)), ring_(capacity) {
  lines_.reserve(records_a_write * longest_line);
  thread_ = std::thread([this] { run(); });
}

MetricsWriter::~MetricsWriter() {
  stop_.store(true, std::memory_order_release);
  calls_.add(1);
  thread_.join();
}

void MetricsWriter::append(const StepRecord& record) {
  throw_if_failed();
  const std::uint64_t number = appended_.load(std::memory_order_relaxed);
  const std::uint64_t behind = number - written_.load(std::memory_order_acquire);
  if (behind == capacity) {
    calls_.add(1);
    wait_until_written(number - capacity + 1);
  } else if (behind == capacity / 2) {
    calls_.add(1);
  }
  ring_[number % capacity] = record;
  appended_.store(number + 1, std::memory_order_release);
}

void MetricsWriter::append_line(const std::string& line) {
  flush();
  file_.append(line);  // the thread has nothing to write
}

void MetricsWriter::append_evaluation(const std::string& line, const EvaluationRecord& record) {
  append_line(line);
  monitors_.add(record);
  monitors_.write();
}

void MetricsWriter::flush() {
  calls_.add(1);
  wait_until_written(appended_.load(std::memory_order_relaxed));
}

void MetricsWriter::throw_if_failed() const {
  if (failed_.load(std::memory_order_acquire)) std::rethrow_exception(error_);
}

void MetricsWriter::wait_until_written(std::uint64_t count) {
  for (;;) {
    const std::uint32_t seen = progress_.load();
    throw_if_failed();
    if (written_.load(std::memory_order_acquire) >= count) return;
    progress_.sleep_while(seen);
  }
}

void MetricsWriter::write_pending() {
  for (;;) {
    const std::uint64_t first = written_.load(std::memory_order_relaxed);
    const std::uint64_t end = std::min(appended_.load(std::memory_order_acquire), first + records_a_write);
    if (first == end) return;
    lines_.clear();
    for (std::uint64_t number = first; number < end; ++number) append_step_line(lines_, ring_[number % capacity]);
    file_.append_lines(lines_);
    if (!monitors_.empty()) {
      for (std::uint64_t number = first; number < end; ++number) monitors_.add(ring_[number % capacity]);
      monitors_.write();
    }
    written_.store(end, std::memory_order_release);
    progress_.add(1);
  }
}

void MetricsWriter::run() {
  try {
    for (;;) {
      const std::uint32_t seen = calls_.load();
      const bool last = stop_.load(std::memory_order_acquire);
      write_pending();
      if (last) return;
      if (calls_.load() == seen) calls_.sleep_while(seen, longest_delay);
    }
  } catch (...) {
    error_ = std::current_exception();
    failed_.store(true, std::memory_order_release);
    progress_.add(1);
  }
}

}  // namespace zt
