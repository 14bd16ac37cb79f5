// A device that passes everything on to another one; the base of those that look at operations on their way.
#pragma once

#include <utility>

#include "device/device.h"

namespace zt {

class DeviceDecorator : public Device {
 public:
  explicit DeviceDecorator(Device& inner) : inner_(inner) {}
  Buffer allocate(std::int64_t bytes, MemoryCategory category, const std::string& name) override {
    return inner_.allocate(bytes, category, name);
  }
  Buffer allocate_host(std::int64_t bytes, const std::string& name) override {
    return inner_.allocate_host(bytes, name);
  }
  Buffer pin(void* memory, std::int64_t bytes) override { return inner_.pin(memory, bytes); }
  MemoryLedger& ledger() override { return inner_.ledger(); }
  void prepare(const Operation& operation) override { inner_.prepare(operation); }
  void reserve_workspace() override { inner_.reserve_workspace(); }
  void run(Stream stream, const Operation& operation) override { inner_.run(stream, operation); }
  void copy(Stream stream, void* to, const void* from, std::int64_t bytes) override {
    inner_.copy(stream, to, from, bytes);
  }
  void host_call(Stream stream, std::function<void()> function) override {
    inner_.host_call(stream, std::move(function));
  }
  Event record(Stream stream) override { return inner_.record(stream); }
  void wait(Stream stream, Event event) override { inner_.wait(stream, event); }
  using Device::synchronize;
  void synchronize(Event event) override { inner_.synchronize(event); }
  TimeMark mark(Stream stream) override { return inner_.mark(stream); }
  double seconds_between(TimeMark from, TimeMark to) override { return inner_.seconds_between(from, to); }
  double seconds_after(TimeMark from, TimeMark to) override { return inner_.seconds_after(from, to); }
  void begin_activity(Activity activity, std::int64_t number) override { inner_.begin_activity(activity, number); }
  void end_activity(Activity activity, std::int64_t number) override { inner_.end_activity(activity, number); }
  bool computes() const override { return inner_.computes(); }
  std::string description() const override { return inner_.description(); }

 protected:
  Device& inner() { return inner_; }

 private:
  Device& inner_;
};

}  // namespace zt
