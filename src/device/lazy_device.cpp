#include "device/lazy_device.h"

#include <utility>
#include <variant>
#include <vector>

namespace zt {

LazyDevice::~LazyDevice() = default;

void LazyDevice::put(Stream stream, std::function<void()> function) {
  const bool at_once = order_ == Order::compute_late && stream != Stream::compute;
  if (running_ > 0 || at_once) {
    ++running_;
    function();
    --running_;
    return;
  }
  const auto index = static_cast<std::size_t>(stream);
  queues_.at(index).push_back({++tasks_, std::move(function)});
  last_.at(index) = tasks_;
}

void LazyDevice::run(Stream stream, const Operation& operation) {
  if (const auto* reduce = std::get_if<ReduceOnto>(&operation)) {
    // What it points to may be gone when its turn comes.
    put(stream, [this, stream, op = *reduce,
                 sources = std::vector<const void*>(reduce->sources.begin(), reduce->sources.end())] {
      ReduceOnto with_sources = op;
      with_sources.sources = sources;
      inner().run(stream, with_sources);
    });
    return;
  }
  put(stream, [this, stream, operation] { inner().run(stream, operation); });
}

void LazyDevice::copy(Stream stream, void* to, const void* from, std::int64_t bytes) {
  put(stream, [this, stream, to, from, bytes] { inner().copy(stream, to, from, bytes); });
}

void LazyDevice::host_call(Stream stream, std::function<void()> function) {
  put(stream, [this, stream, function = std::move(function)] { inner().host_call(stream, function); });
}

Event LazyDevice::record(Stream stream) {
  const auto index = static_cast<std::size_t>(stream);
  marks_[++events_] = {index, last_.at(index)};
  return {events_};
}

void LazyDevice::wait(Stream stream, Event event) {
  const auto mark = marks_.find(event.id);
  if (mark == marks_.end()) return;
  const Mark place = mark->second;
  if (place.stream == static_cast<std::size_t>(stream)) return;
  put(stream, [this, place] { run_until(place.stream, place.number); });
}

void LazyDevice::synchronize(Event event) {
  const auto mark = marks_.find(event.id);
  if (mark != marks_.end()) run_until(mark->second.stream, mark->second.number);
}

void LazyDevice::run_until(std::size_t stream, std::int64_t number) {
  auto& queue = queues_.at(stream);
  while (!queue.empty() && queue.front().number <= number) {
    const Task task = std::move(queue.front());
    queue.pop_front();
    ++running_;
    task.function();
    --running_;
  }
}

}  // namespace zt
