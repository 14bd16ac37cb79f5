// The CUDA runtime's streams, events and launches.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "block.h"
#include "device_memory.h"
#include "emulation_state.h"
#include "runtime_tables.h"
#include "stream.h"

namespace zt::emulation {
namespace {

struct Tables {
  std::mutex mutex;
  std::vector<std::shared_ptr<Stream>> streams;
  std::set<Event*> events;
};

Tables& tables() {
  static Tables instance;
  return instance;
}

cudaError_t wait_for(const Event& event) {
  if (event.stream == nullptr) return noted(broken_device(event.device));
  return run_until(*event.stream, event.position);
}

bool is_done(const Event& event) { return event.stream == nullptr || event.stream->done >= event.position; }

}  // namespace

std::vector<std::shared_ptr<Stream>> streams_of(int device) {
  const std::lock_guard lock(tables().mutex);
  std::vector<std::shared_ptr<Stream>> result;
  for (const auto& stream : tables().streams) {
    if (stream->device == device) result.push_back(stream);
  }
  return result;
}

std::shared_ptr<Stream> find_stream(cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy) return null_stream(current_device());
  const std::lock_guard lock(tables().mutex);
  for (const auto& stream : tables().streams) {
    if (static_cast<void*>(stream.get()) == handle) return stream;
  }
  return nullptr;
}

Event* find_event(cudaEvent_t handle) {
  const std::lock_guard lock(tables().mutex);
  auto* event = static_cast<Event*>(static_cast<void*>(handle));
  return tables().events.count(event) != 0 ? event : nullptr;
}

cudaError_t queue_kernel(const void* function, std::function<void()> kernel, dim3 grid, dim3 block,
                         std::size_t shared_bytes, cudaStream_t stream) {
  const auto at_most = [](dim3 size, std::uint64_t x, std::uint64_t yz, std::uint64_t z) {
    return size.x >= 1 && size.y >= 1 && size.z >= 1 && size.x <= x && size.y <= yz && size.z <= z;
  };
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  if (!at_most(grid, 0x7fffffff, 65535, 65535) || !at_most(block, 1024, 1024, 64) || threads > 1024) {
    return noted(cudaErrorInvalidConfiguration);
  }
  if (const auto error = unusable(); error != cudaSuccess) return noted(error);
  if (shared_bytes > shared_limit_of(function)) return noted(cudaErrorInvalidValue);
  if (!settings().kernels) return noted(cudaErrorNoKernelImageForDevice);
  const int device = current_device();
  if (is_to_fail(Call::launch, device)) return noted(cudaErrorLaunchOutOfResources);
  return queue(stream, [kernel = std::move(kernel), grid, block, shared_bytes, device] {
    if (!run_grid(kernel, grid, block, shared_bytes)) break_device(device, cudaErrorLaunchFailure);
  });
}

}  // namespace zt::emulation

using namespace zt::emulation;

extern "C" {

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  if (const auto error = unusable(); error != cudaSuccess) return noted(error);
  auto made = std::make_shared<Stream>();
  made->device = current_device();
  made->flags = flags;
  made->priority = priority;
  const std::lock_guard lock(tables().mutex);
  tables().streams.push_back(made);
  *stream = static_cast<cudaStream_t>(static_cast<void*>(made.get()));
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithPriority(stream, 0, 0); }

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  const auto stream = find_stream(handle);
  if (stream == nullptr || handle == nullptr) return noted(cudaErrorInvalidResourceHandle);
  run_until(*stream, stream->queued);  // CUDA finishes the work that is left
  const std::lock_guard lock(tables().mutex);
  tables().streams.erase(std::remove(tables().streams.begin(), tables().streams.end(), stream), tables().streams.end());
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  const auto stream = find_stream(handle);
  if (stream == nullptr) return noted(cudaErrorInvalidResourceHandle);
  if (stream == null_stream(stream->device)) run_all(stream->device, true);
  return run_until(*stream, stream->queued);
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  const auto stream = find_stream(handle);
  if (stream == nullptr) return noted(cudaErrorInvalidResourceHandle);
  run_a_step(*stream);
  if (broken_device(stream->device) != cudaSuccess) return noted(broken_device(stream->device));
  return noted(stream->done >= stream->queued ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaDeviceSynchronize() { return run_all(current_device(), false); }

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned) {
  const Event* awaited = find_event(event);
  if (awaited == nullptr) return noted(cudaErrorInvalidResourceHandle);
  if (!awaited->recorded || awaited->stream == nullptr) return cudaSuccess;
  // What counts is the recording at this time, not a later one.
  const auto reached = [stream = awaited->stream, position = awaited->position] { return stream->done >= position; };
  return queue(handle, Operation{reached, {}, awaited->stream, awaited->position});
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  auto* made = new Event;
  made->device = current_device();
  made->timed = (flags & cudaEventDisableTiming) == 0;
  const std::lock_guard lock(tables().mutex);
  tables().events.insert(made);
  *event = static_cast<cudaEvent_t>(static_cast<void*>(made));
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  Event* event = find_event(handle);
  if (event == nullptr) return noted(cudaErrorInvalidResourceHandle);
  const std::lock_guard lock(tables().mutex);
  tables().events.erase(event);
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream_handle) {
  Event* event = find_event(handle);
  const auto stream = find_stream(stream_handle);
  if (event == nullptr || stream == nullptr || event->device != stream->device) {
    return noted(cudaErrorInvalidResourceHandle);
  }
  auto time = std::make_shared<std::chrono::steady_clock::time_point>();
  event->recorded = true;
  event->time = time;
  event->stream = stream;
  event->position = stream->queued + 1;
  return queue(stream_handle, [time] { *time = std::chrono::steady_clock::now(); });
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  const Event* event = find_event(handle);
  return event == nullptr ? noted(cudaErrorInvalidResourceHandle) : wait_for(*event);
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  const Event* event = find_event(handle);
  if (event == nullptr) return noted(cudaErrorInvalidResourceHandle);
  if (!is_done(*event)) run_a_step(*event->stream);
  if (broken_device(event->device) != cudaSuccess) return noted(broken_device(event->device));
  return noted(is_done(*event) ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  const Event* first = find_event(start);
  const Event* last = find_event(end);
  if (first == nullptr || last == nullptr || !first->recorded || !last->recorded || !first->timed || !last->timed) {
    return noted(cudaErrorInvalidResourceHandle);
  }
  if (!is_done(*first) || !is_done(*last)) return noted(cudaErrorNotReady);
  *milliseconds = std::chrono::duration<float, std::milli>(*last->time - *first->time).count();
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* argument) {
  const int device = current_device();
  return queue(stream, [function, argument, device] {
    const ClosedDevice closed(device);
    function(argument);
  });
}

}  // extern "C"
