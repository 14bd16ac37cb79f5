// One NVIDIA GPU as a device: four streams, events, memory by category, kernels.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <type_traits>
#include <vector>

#include "device/cuda/products.h"
#include "device/device.h"
#include "device/gpu/backend.h"

namespace zt::cuda {

// Where device memory comes from, if not from cudaMalloc. `take` says cudaErrorMemoryAllocation when there is none.
struct DeviceAllocator {
  std::function<cudaError_t(void** memory, std::size_t bytes)> take;
  std::function<void(void* memory)> give_back;
};

struct DestroyStream {
  void operator()(cudaStream_t stream) const { static_cast<void>(cudaStreamDestroy(stream)); }
};
using OwnedStream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, DestroyStream>;

// Driven by one host thread at a time.
class CudaDevice final : public Device {
 public:
  // Errors: UserError.
  CudaDevice(int index, const GpuOptions& options);
  ~CudaDevice() override;

  Buffer allocate(std::int64_t bytes, MemoryCategory category, const std::string& name) override;
  Buffer allocate(std::int64_t bytes, MemoryCategory category, const std::string& name,
                  const DeviceAllocator& allocator);
  Buffer allocate_host(std::int64_t bytes, const std::string& name) override;
  Buffer pin(void* memory, std::int64_t bytes) override;
  MemoryLedger& ledger() override { return *ledger_; }

  void prepare(const Operation& operation) override;
  void reserve_workspace() override;

  void run(Stream stream, const Operation& operation) override;
  void copy(Stream stream, void* to, const void* from, std::int64_t bytes) override;
  // The host waits for the stream, then calls the function: what is put on the stream later comes after it.
  void host_call(Stream stream, std::function<void()> function) override;

  Event record(Stream stream) override;
  void wait(Stream stream, Event event) override;
  void synchronize(Event event) override;
  using Device::synchronize;
  TimeMark mark(Stream stream) override;
  double seconds_between(TimeMark from, TimeMark to) override;
  double seconds_after(TimeMark from, TimeMark to) override;

  std::string description() const override;

  // For the communicator.
  int index() const { return index_; }
  cudaStream_t native(Stream stream) const { return streams_[static_cast<std::size_t>(stream)].get(); }
  // Called again and again while the host waits for the GPU; it may throw what ends the wait.
  void set_watch(std::function<void()> watch) { watch_ = std::move(watch); }
  void make_current() const;
  // The streams never come to their end, and the process is about to: from now on nothing is waited for or given back
  // by destructors, since CUDA would wait for the streams. Ends nothing by itself; any thread may call it.
  void leave() noexcept { *left_ = true; }

 private:
  // Events recorded on one stream, oldest first.
  struct Recorded {
    std::int64_t id = 0;
    cudaEvent_t event = nullptr;
  };
  struct Line {
    std::deque<Recorded> recorded;
    std::int64_t passed = 0;  // this event and those before it are over
  };
  static constexpr std::size_t kept_events = 64;  // a stream's line is cleared of passed ones when it is longer

  cudaEvent_t find(Event event);  // null if it is over
  cudaEvent_t take_event();
  void wait_watching(cudaEvent_t event);

  int index_;
  GpuOptions options_;
  std::string name_;
  std::shared_ptr<MemoryLedger> ledger_;     // also held by every buffer: they may be given back later than the device
  std::shared_ptr<std::atomic<bool>> left_;  // likewise
  std::array<OwnedStream, stream_count> streams_;
  std::array<Line, stream_count> lines_;
  std::vector<cudaEvent_t> free_events_;
  std::int64_t last_event_ = 0;
  std::vector<cudaEvent_t> marks_;  // with times, by number
  std::vector<std::int64_t> free_marks_;
  std::unique_ptr<Products> products_;
  std::int64_t prepared_ = 0;  // bytes of workspace
  Buffer workspace_;
  std::function<void()> watch_;
};

}  // namespace zt::cuda
