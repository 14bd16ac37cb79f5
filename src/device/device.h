// What a rank computes on. Operations and copies are put on streams; those of one stream run in order, those
// of different streams are ordered by events alone. The CPU runs an operation at once and its events are
// numbers; code must wait for the right events all the same (the lazy device of the tests runs nothing early).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "core/memory.h"
#include "device/activity.h"
#include "device/operations.h"

namespace zt {

enum class Stream : std::uint8_t { compute, gather, reduce, copy };
constexpr int stream_count = 4;

struct Event {
  std::int64_t id = 0;  // 0: nothing to wait for
};

// A moment on a stream: when everything put on it before is over.
struct TimeMark {
  std::int64_t number = -1;
};

class Device;

// Memory of a device, zeroed, aligned to 64 bytes or more; given back (and taken off the ledger) on destruction.
class Buffer {
 public:
  Buffer() = default;
  Buffer(void* data, std::int64_t bytes, std::function<void()> give_back)
      : data_(data), bytes_(bytes), give_back_(std::move(give_back)) {}
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    if (this != &other) {
      release();
      data_ = std::exchange(other.data_, nullptr);
      bytes_ = std::exchange(other.bytes_, 0);
      give_back_ = std::exchange(other.give_back_, nullptr);
    }
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { release(); }

  void* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }
  std::byte* at(std::int64_t byte_offset) const { return static_cast<std::byte*>(data_) + byte_offset; }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  TensorView view(DType dtype) const { return {data_, bytes_ / static_cast<std::int64_t>(size_of(dtype)), dtype}; }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  void release() {
    if (give_back_) give_back_();
    give_back_ = nullptr;
    data_ = nullptr;
  }
  void* data_ = nullptr;
  std::int64_t bytes_ = 0;
  std::function<void()> give_back_;
};

class Device {
 public:
  virtual ~Device() = default;

  // Errors: UserError naming the category when memory does not suffice.
  virtual Buffer allocate(std::int64_t bytes, MemoryCategory category, const std::string& name) = 0;
  virtual MemoryLedger& ledger() = 0;
  // Memory of the host that copies run from and to while the host goes on (pinned, where that matters). Not on the
  // ledger, which is about the device's memory. Before it is written again, copies from it must be over.
  virtual Buffer allocate_host(std::int64_t bytes, const std::string& name) = 0;
  // Makes memory of the host that came from elsewhere as good for copies as allocate_host()'s, as far as that can be
  // had, for as long as the returned buffer lives; the memory must live longer.
  virtual Buffer pin(void* memory, std::int64_t bytes) { return {memory, bytes, {}}; }

  // Tells the device an operation that will be run, with its shapes (pointers are ignored), so that it can make
  // its kernels and find the scratch memory they need. After the last call reserve_workspace() allocates it.
  // Running an operation whose scratch is larger than what was reserved is an error.
  virtual void prepare(const Operation& operation) = 0;
  virtual void reserve_workspace() = 0;

  virtual void run(Stream stream, const Operation& operation) = 0;
  virtual void copy(Stream stream, void* to, const void* from,
                    std::int64_t bytes) = 0;  // either side may be host memory
  // A function of the host that takes part in a stream's order (collectives between ranks of a CPU). Operations
  // that it runs on this device execute at once.
  virtual void host_call(Stream stream, std::function<void()> function) = 0;

  virtual Event record(Stream stream) = 0;
  virtual void wait(Stream stream, Event event) = 0;  // what is put on the stream later starts after the event
  virtual void synchronize(Event event) = 0;          // the host waits
  void synchronize(Stream stream) { synchronize(record(stream)); }

  // Time where the work is done. Both marks of seconds_between must be over (the host has waited for something behind
  // them); it gives them back to the device, so a mark is read once.
  virtual TimeMark mark(Stream stream) = 0;
  virtual double seconds_between(TimeMark from, TimeMark to) = 0;
  // The same, but `from` is kept, for other marks to be told from.
  virtual double seconds_after(TimeMark from, TimeMark to) = 0;

  // Between the two calls operations are put on streams for this. `number`: of a unit; of a step or micro-step.
  virtual void begin_activity(Activity activity, std::int64_t number) {
    static_cast<void>(activity);
    static_cast<void>(number);
  }
  virtual void end_activity(Activity activity, std::int64_t number) {
    static_cast<void>(activity);
    static_cast<void>(number);
  }

  // False where memory has addresses only (the counting device): values must not be read.
  virtual bool computes() const { return true; }
  virtual std::string description() const = 0;
};

class ActivitySpan {
 public:
  ActivitySpan(Device& device, Activity activity, std::int64_t number)
      : device_(device), activity_(activity), number_(number) {
    device.begin_activity(activity, number);
  }
  ~ActivitySpan() { device_.end_activity(activity_, number_); }
  ActivitySpan(const ActivitySpan&) = delete;
  ActivitySpan& operator=(const ActivitySpan&) = delete;

 private:
  Device& device_;
  Activity activity_;
  std::int64_t number_;
};

}  // namespace zt
