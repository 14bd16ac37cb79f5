// The smallest device: memory from calloc, operations at once, only ReduceOnto known. For tests of communicators.
#pragma once

#include <algorithm>
#include <array>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/host_marks.h"

namespace zt::test {

class PlainDevice : public Device {
 public:
  Buffer allocate(std::int64_t bytes, MemoryCategory category, const std::string& name) override {
    const auto rounded = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 64) + 63) / 64 * 64;
    void* memory = std::aligned_alloc(64, rounded);
    if (memory == nullptr) throw std::bad_alloc();
    std::fill_n(static_cast<char*>(memory), rounded, '\0');
    ledger_.add(category, name, bytes);
    return {memory, bytes, [this, memory, category, name, bytes] {
              std::free(memory);
              ledger_.remove(category, name, bytes);
            }};
  }
  Buffer allocate_host(std::int64_t bytes, const std::string& name) override {
    return allocate(bytes, MemoryCategory::data, name);
  }
  MemoryLedger& ledger() override { return ledger_; }

  void prepare(const Operation&) override {}
  void reserve_workspace() override {}

  void run(Stream, const Operation& operation) override {
    const auto* reduce = std::get_if<ReduceOnto>(&operation);
    if (reduce == nullptr) throw std::logic_error("PlainDevice runs ReduceOnto only");
    dispatch(reduce->acc.dtype,
             [&]<typename A>(A*) { dispatch(reduce->source_dtype, [&]<typename S>(S*) { fold<A, S>(*reduce); }); });
  }
  void copy(Stream, void* to, const void* from, std::int64_t bytes) override {
    std::copy_n(static_cast<const char*>(from), bytes, static_cast<char*>(to));
  }
  void host_call(Stream, std::function<void()> function) override { function(); }

  Event record(Stream) override { return {++events_}; }
  void wait(Stream, Event) override {}
  using Device::synchronize;
  void synchronize(Event) override {}
  TimeMark mark(Stream) override { return marks_.take(); }
  double seconds_between(TimeMark from, TimeMark to) override { return marks_.give_back(from, to); }
  double seconds_after(TimeMark from, TimeMark to) override { return marks_.give_back_last(from, to); }
  std::string description() const override { return "plain"; }

 private:
  template <typename A, typename S>
  static void fold(const ReduceOnto& op) {
    constexpr std::int64_t block = 1024;
    std::array<float, block> sums;
    auto* acc = static_cast<A*>(op.acc.data);
    for (std::int64_t start = 0; start < op.acc.count; start += block) {
      const std::int64_t count = std::min(block, op.acc.count - start);
      std::size_t next = 0;
      if (op.first) {
        const auto* source = static_cast<const S*>(op.sources[next++]) + start;
        for (std::int64_t i = 0; i < count; ++i) sums[static_cast<std::size_t>(i)] = to_float(source[i]);
      } else {
        for (std::int64_t i = 0; i < count; ++i) sums[static_cast<std::size_t>(i)] = to_float(acc[start + i]);
      }
      for (; next < op.sources.size(); ++next) {
        const auto* source = static_cast<const S*>(op.sources[next]) + start;
        for (std::int64_t i = 0; i < count; ++i) sums[static_cast<std::size_t>(i)] += to_float(source[i]);
      }
      for (std::int64_t i = 0; i < count; ++i) acc[start + i] = from_float<A>(sums[static_cast<std::size_t>(i)]);
    }
  }

  MemoryLedger ledger_;
  HostMarks marks_;
  std::int64_t events_ = 0;
};

// Queues what is put on a stream until the host waits for an event of that stream, as real streams may.
class QueueingDevice : public PlainDevice {
 public:
  void run(Stream stream, const Operation& operation) override {
    if (running_) return PlainDevice::run(stream, operation);
    throw std::logic_error("QueueingDevice runs operations within host_call only");
  }
  void host_call(Stream stream, std::function<void()> function) override {
    queues_[static_cast<std::size_t>(stream)].push_back(std::move(function));
  }
  Event record(Stream stream) override { return {static_cast<std::int64_t>(stream) + 1}; }
  using Device::synchronize;
  void synchronize(Event event) override {
    if (event.id == 0) return;
    auto& queue = queues_[static_cast<std::size_t>(event.id - 1)];
    running_ = true;
    for (auto& function : std::exchange(queue, {})) function();
    running_ = false;
  }

 private:
  std::array<std::vector<std::function<void()>>, stream_count> queues_;
  bool running_ = false;
};

}  // namespace zt::test
