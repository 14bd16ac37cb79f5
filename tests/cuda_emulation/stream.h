// Streams and events: queues of operations, run at once (eager) or when somebody waits (lazy).
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

namespace zt::emulation {

struct Stream;

struct Operation {
  // Does what can be done now; true when all of it is done. Kernels and copies need one call, collectives several.
  std::function<bool()> advance;
  std::function<std::string()> waits_for;  // what a time-out says; may be empty
  // Of cudaStreamWaitEvent: `advance` is true once this stream has done as much.
  std::shared_ptr<Stream> awaited;
  std::uint64_t position = 0;
};

struct Stream {
  int device = 0;
  unsigned flags = 0;
  int priority = 0;
  std::deque<Operation> queue;
  std::uint64_t queued = 0;
  std::uint64_t done = 0;
  bool busy = false;  // its first operation is being advanced further up the call stack
};

struct Event {
  int device = 0;
  bool timed = true;
  bool recorded = false;
  std::shared_ptr<Stream> stream;  // null: recorded where all before was done
  std::uint64_t position = 0;
  std::shared_ptr<std::chrono::steady_clock::time_point> time;
};

int current_device();  // of the calling thread

// Notes the error for cudaGetLastError and returns it.
cudaError_t noted(cudaError_t error);
cudaError_t take_last_error(bool reset);

// An error that an operation met. It stays with the device: every later call returns it.
void break_device(int device, cudaError_t error);
cudaError_t broken_device(int device);

std::shared_ptr<Stream> find_stream(cudaStream_t stream);  // the null stream too; null if there is none such
Event* find_event(cudaEvent_t event);

// Queues on a stream of the current device, and in eager mode runs it.
cudaError_t queue(cudaStream_t stream, Operation operation);
cudaError_t queue(cudaStream_t stream, std::function<void()> run);
// Queues; in eager mode, too, others must run it.
cudaError_t queue_only(cudaStream_t stream, Operation operation);

// Runs until the stream has done `position` operations.
cudaError_t run_until(Stream& stream, std::uint64_t position);
// One attempt at the stream's next operation.
void run_a_step(Stream& stream);
cudaError_t run_all(int device, bool only_blocking);

}  // namespace zt::emulation
