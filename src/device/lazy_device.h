// A device that runs nothing before somebody waits for it: operations queue on their streams and are executed, in
// dependency order, when an event is synchronized. Code that forgets to wait for an event reads old values here, on
// a CPU too. Two orders: every stream as late as possible, which shows who reads too early; and computing as late as
// possible with the other streams at once, which shows who overwrites too early. For tests.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>

#include "device/device_decorator.h"

namespace zt {

class LazyDevice final : public DeviceDecorator {
 public:
  enum class Order : std::uint8_t { all_late, compute_late };
  explicit LazyDevice(Device& inner, Order order = Order::all_late) : DeviceDecorator(inner), order_(order) {}
  ~LazyDevice() override;

  void run(Stream stream, const Operation& operation) override;
  void copy(Stream stream, void* to, const void* from, std::int64_t bytes) override;
  void host_call(Stream stream, std::function<void()> function) override;
  Event record(Stream stream) override;
  void wait(Stream stream, Event event) override;
  using Device::synchronize;
  void synchronize(Event event) override;

 private:
  struct Task {
    std::int64_t number = 0;  // over all streams, in order of arrival
    std::function<void()> function;
  };
  // Marks are events: the place in a stream up to which it has to run.
  struct Mark {
    std::size_t stream = 0;
    std::int64_t number = 0;  // of the last task before it on that stream
  };
  void put(Stream stream, std::function<void()> function);
  void run_until(std::size_t stream, std::int64_t number);

  Order order_;
  std::array<std::deque<Task>, stream_count> queues_;
  std::array<std::int64_t, stream_count> last_{};
  std::map<std::int64_t, Mark> marks_;
  std::int64_t tasks_ = 0, events_ = 0;
  int running_ = 0;  // depth: operations of a task execute at once
};

}  // namespace zt
