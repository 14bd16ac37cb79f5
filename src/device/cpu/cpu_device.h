// The processor as a device: operations and copies run at once, events are numbers.
#pragma once

#include <memory>

#include "device/cpu/cpu_context.h"
#include "device/device.h"
#include "device/host_marks.h"

namespace zt::cpu {

// Scratch of one operation with these shapes and dtypes; nothing is run and pointers are not followed.
WorkspaceNeed workspace_need(const Operation& operation);

// Both parts at least as large as in either.
WorkspaceNeed larger_of(WorkspaceNeed a, WorkspaceNeed b);

// Bytes of the one buffer that serves operations of at most these needs with so many threads.
std::int64_t workspace_bytes(WorkspaceNeed maxima, int threads);

struct CpuDeviceOptions {
  // Ranks that run on these very cores in processes of their own (ThreadPool).
  int sharing_cores = 1;
  // For tests of the rule that addresses never change a bit: every buffer but workspace, which holds integers of 8
  // bytes, starts so many bytes past a multiple of 64.
  std::int64_t misalignment = 0;
};

class CpuDevice : public Device {
 public:
  explicit CpuDevice(int threads, const CpuDeviceOptions* options = nullptr);
  ~CpuDevice() override;

  Buffer allocate(std::int64_t bytes, MemoryCategory category, const std::string& name) override;
  Buffer allocate_host(std::int64_t bytes, const std::string& name) override;
  MemoryLedger& ledger() override { return *ledger_; }

  void prepare(const Operation& operation) override;
  void reserve_workspace() override;

  void run(Stream stream, const Operation& operation) override;
  void copy(Stream stream, void* to, const void* from, std::int64_t bytes) override;
  void host_call(Stream stream, std::function<void()> function) override;

  Event record(Stream stream) override;
  void wait(Stream stream, Event event) override;
  void synchronize(Event event) override;
  using Device::synchronize;
  TimeMark mark(Stream) override { return marks_.take(); }
  double seconds_between(TimeMark from, TimeMark to) override { return marks_.give_back(from, to); }
  double seconds_after(TimeMark from, TimeMark to) override { return marks_.give_back_last(from, to); }

  std::string description() const override;
  int threads() const { return pool_.threads(); }

 private:
  CpuDeviceOptions options_;
  std::shared_ptr<MemoryLedger> ledger_;  // also held by every buffer: they may be given back later than the device
  ThreadPool pool_;
  WorkspaceNeed prepared_;
  WorkspaceNeed reserved_;
  Buffer workspace_;
  std::int64_t last_event_ = 0;
  HostMarks marks_;
};

}  // namespace zt::cpu
