// A device that computes nothing and holds nothing: it counts what the real code would allocate and run. The plan
// of a run is made by running that code on it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "device/device.h"

namespace zt {

class CountingDevice final : public Device {
 public:
  // `scratch` gives the bytes of workspace that the device planned for would reserve for these operations.
  using Scratch = std::function<std::int64_t(const std::vector<Operation>& operations)>;
  explicit CountingDevice(Scratch scratch, std::string description);

  Buffer allocate(std::int64_t bytes, MemoryCategory category, const std::string& name) override;
  Buffer allocate_host(std::int64_t bytes, const std::string& name) override;
  MemoryLedger& ledger() override { return ledger_; }
  void prepare(const Operation& operation) override { operations_.push_back(operation); }
  void reserve_workspace() override;
  void run(Stream stream, const Operation& operation) override;
  void copy(Stream, void*, const void*, std::int64_t) override {}
  void host_call(Stream, std::function<void()>) override {}
  Event record(Stream) override { return {1}; }
  void wait(Stream, Event) override {}
  void synchronize(Event) override {}
  TimeMark mark(Stream) override { return {}; }
  double seconds_between(TimeMark, TimeMark) override { return 0.0; }
  double seconds_after(TimeMark, TimeMark) override { return 0.0; }
  void begin_activity(Activity activity, std::int64_t number) override;
  void end_activity(Activity activity, std::int64_t number) override;
  bool computes() const override { return false; }
  std::string description() const override { return description_; }

  // Every operation that was run, in order. Their addresses mean nothing.
  const std::vector<Operation>& operations() const { return operations_; }
  // Those that were run for this, in order.
  std::vector<Operation> operations_of(Activity activity) const;

 private:
  Scratch scratch_;
  std::string description_;
  MemoryLedger ledger_;
  std::vector<Operation> operations_;
  struct Span {
    Activity activity;
    std::size_t begin, end;  // of its operations
  };
  std::vector<Span> spans_;
  Buffer workspace_;
  std::uintptr_t next_address_;
};

}  // namespace zt
