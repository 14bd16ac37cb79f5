#include "stream.h"

#include <sched.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <vector>

#include "block.h"
#include "device_memory.h"
#include "emulation_state.h"
#include "runtime_tables.h"

namespace zt::emulation {
namespace {

struct Device {
  std::recursive_mutex mutex;  // held while an operation of the device runs
  std::atomic<cudaError_t> broken{cudaSuccess};
  std::shared_ptr<Stream> null_stream = std::make_shared<Stream>();
  std::uint64_t draws = 0;
};

Device& device_state(int device) {
  static std::array<Device, max_devices> devices;
  return devices.at(static_cast<std::size_t>(device));
}

thread_local cudaError_t last_error = cudaSuccess;

// Advances the first operation of a stream; true if it is done with it.
bool advance_first(Stream& stream) {
  if (stream.busy) return false;
  stream.busy = true;
  Operation& first = stream.queue.front();
  bool finished = true;
  if (broken_device(stream.device) == cudaSuccess) {
    const OpenDevice open(stream.device);
    finished = first.advance();
  }
  stream.busy = false;
  if (finished) {
    stream.queue.pop_front();
    ++stream.done;
  }
  return finished;
}

// In lazy_shuffled mode: lets other streams of the device go first, as many as the draw says.
void run_others(const Stream& wanted) {
  const Settings now = settings();
  if (now.streams != Streams::lazy_shuffled) return;
  Device& device = device_state(wanted.device);
  for (const auto& other : streams_of(wanted.device)) {
    if (other.get() == &wanted) continue;
    while (!other->queue.empty() && !other->busy && mix(now.seed + 0x1000003 * ++device.draws) % 2 == 0) {
      if (!advance_first(*other)) break;
    }
  }
}

}  // namespace

cudaError_t noted(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

cudaError_t take_last_error(bool reset) {
  const cudaError_t error = last_error;
  if (reset) last_error = cudaSuccess;
  return error;
}

void break_device(int device, cudaError_t error) { device_state(device).broken = error; }
cudaError_t broken_device(int device) { return device_state(device).broken; }

std::shared_ptr<Stream> null_stream(int device) {
  device_state(device).null_stream->device = device;
  return device_state(device).null_stream;
}

cudaError_t run_until(Stream& stream, std::uint64_t position) {
  const std::lock_guard lock(device_state(stream.device).mutex);
  using Clock = std::chrono::steady_clock;
  auto last_progress = Clock::now();
  int idle_turns = 0;
  while (stream.done < position) {
    run_others(stream);
    if (stream.done >= position) break;
    if (const auto awaited = stream.queue.front().awaited; awaited != nullptr && !stream.busy) {
      run_until(*awaited, stream.queue.front().position);
    }
    if (advance_first(stream)) {
      last_progress = Clock::now();
      idle_turns = 0;
      continue;
    }
    const double waited = std::chrono::duration<double>(Clock::now() - last_progress).count();
    if (waited > settings().patience) {
      const auto& waits_for = stream.queue.front().waits_for;
      report("an operation of a stream of device " + std::to_string(stream.device) +
             " cannot go on: " + (waits_for ? waits_for() : "it waits for itself through events"));
      break_device(stream.device, cudaErrorLaunchTimeout);
    }
    if (++idle_turns < 200) {
      sched_yield();
    } else {
      usleep(100);
    }
  }
  return noted(broken_device(stream.device));
}

void run_a_step(Stream& stream) {
  const std::lock_guard lock(device_state(stream.device).mutex);
  if (stream.queue.empty() || advance_first(stream)) return;
  if (const auto awaited = stream.queue.front().awaited; awaited != nullptr) run_a_step(*awaited);
}

cudaError_t run_all(int device, bool only_blocking) {
  const std::lock_guard lock(device_state(device).mutex);
  for (const auto& stream : streams_of(device)) {
    if (only_blocking && (stream->flags & cudaStreamNonBlocking) != 0) continue;
    run_until(*stream, stream->queued);
  }
  return noted(broken_device(device));
}

namespace {

cudaError_t put_on(cudaStream_t handle, Operation operation, bool run) {
  const std::shared_ptr<Stream> stream = find_stream(handle);
  if (stream == nullptr) return noted(cudaErrorInvalidResourceHandle);
  if (stream->device != current_device()) return noted(cudaErrorInvalidResourceHandle);
  if (broken_device(stream->device) != cudaSuccess) return noted(broken_device(stream->device));
  const std::lock_guard lock(device_state(stream->device).mutex);
  const bool is_null_stream = stream == null_stream(stream->device);
  if (is_null_stream) run_all(stream->device, true);
  stream->queue.push_back(std::move(operation));
  ++stream->queued;
  if (!run || (!is_null_stream && settings().streams != Streams::eager)) return cudaSuccess;
  return run_until(*stream, stream->queued);
}

}  // namespace

cudaError_t queue(cudaStream_t stream, Operation operation) { return put_on(stream, std::move(operation), true); }
cudaError_t queue_only(cudaStream_t stream, Operation operation) { return put_on(stream, std::move(operation), false); }

cudaError_t queue(cudaStream_t stream, std::function<void()> run) {
  return queue(stream, Operation{[run = std::move(run)] {
                                   run();
                                   return true;
                                 },
                                 {},
                                 nullptr,
                                 0});
}

}  // namespace zt::emulation
