#include "device/cuda/cuda_device.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <type_traits>

#include "device/cuda/errors.h"
#include "device/cuda/kernels.h"
#include "device/gpu/workspace.h"

namespace zt::cuda {
namespace {

// What makes this category smaller.
std::string remedy(MemoryCategory category) {
  switch (category) {
    case MemoryCategory::parameters: return "raise zero_optimization.stage to 3 or use more GPUs, or train in 16 bits";
    case MemoryCategory::gradients: return "raise zero_optimization.stage to 2 or more, with more GPUs";
    case MemoryCategory::optimizer: return "raise zero_optimization.stage to 1 or more, with more GPUs";
    case MemoryCategory::activations:
      return "lower train_micro_batch_size_per_gpu, or recompute blocks with activation_checkpointing.every 1";
    case MemoryCategory::communication:
      return "lower zero_optimization.stage3_prefetch_bucket_size and stage3_max_live_parameters";
    case MemoryCategory::data: return "lower train_micro_batch_size_per_gpu";
    case MemoryCategory::workspace: break;
  }
  return "lower train_micro_batch_size_per_gpu or raise zero_optimization.stage";
}

// Memory that has run out names what it was for and what is held already.
[[noreturn]] void throw_out_of_memory(const MemoryLedger& ledger, std::int64_t bytes, MemoryCategory category,
                                      const std::string& name) {
  std::size_t free = 0;
  std::size_t total = 0;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess) free = 0;
  throw UserError("not enough memory on the GPU: " + std::to_string(bytes) + " bytes for " +
                  std::string(name_of(category)) + " (" + name + "), with " + std::to_string(ledger.total()) +
                  " bytes of this rank allocated before and " + std::to_string(free) + " of " + std::to_string(total) +
                  " bytes free. Other programs may use this GPU (nvidia-smi lists them); else " + remedy(category));
}

// What has not happened yet is an error to CUDA, which the next launch would find if it were not taken here.
bool is_over(cudaEvent_t event) {
  const cudaError_t status = cudaEventQuery(event);
  if (status == cudaErrorNotReady) {
    static_cast<void>(cudaGetLastError());
    return false;
  }
  check(status, "cudaEventQuery");
  return true;
}

// An event's number tells its stream.
Event make_event(std::int64_t number, Stream stream) {
  return {number * stream_count + static_cast<std::int64_t>(stream)};
}

}  // namespace

CudaDevice::CudaDevice(int index, const GpuOptions& options)
    : index_(index),
      options_(options),
      ledger_(std::make_shared<MemoryLedger>()),
      left_(std::make_shared<std::atomic<bool>>(false)) {
  make_current();
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
  name_ = properties.name;
  // Transfers between ranks go first: what waits for them is on the critical path.
  int least = 0;
  int greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
  for (int stream = 0; stream < stream_count; ++stream) {
    const int priority = static_cast<Stream>(stream) == Stream::compute ? least : greatest;
    cudaStream_t made = nullptr;
    check(cudaStreamCreateWithPriority(&made, cudaStreamNonBlocking, priority), "cudaStreamCreateWithPriority");
    streams_.at(static_cast<std::size_t>(stream)).reset(made);
  }
  products_ = std::make_unique<Products>(options_);
}

CudaDevice::~CudaDevice() {
  // Errors have been told by the calls before; a device that failed is left as it is.
  if (*left_) {
    static_cast<void>(products_.release());
    for (OwnedStream& stream : streams_) static_cast<void>(stream.release());
  }
  if (*left_ || cudaSetDevice(index_) != cudaSuccess) return;
  for (const OwnedStream& stream : streams_) static_cast<void>(cudaStreamSynchronize(stream.get()));
  for (Line& line : lines_) {
    for (const Recorded& recorded : line.recorded) static_cast<void>(cudaEventDestroy(recorded.event));
  }
  for (const cudaEvent_t event : marks_) static_cast<void>(cudaEventDestroy(event));
  for (const cudaEvent_t event : free_events_) static_cast<void>(cudaEventDestroy(event));
  products_.reset();
  workspace_ = {};
  for (OwnedStream& stream : streams_) stream.reset();
}

void CudaDevice::make_current() const { check(cudaSetDevice(index_), "cudaSetDevice"); }

Buffer CudaDevice::allocate(std::int64_t bytes, MemoryCategory category, const std::string& name) {
  return allocate(bytes, category, name,
                  {[](void** memory, std::size_t size) { return cudaMalloc(memory, size); },
                   [](void* memory) { static_cast<void>(cudaFree(memory)); }});
}

Buffer CudaDevice::allocate(std::int64_t bytes, MemoryCategory category, const std::string& name,
                            const DeviceAllocator& allocator) {
  if (bytes < 0) throw std::logic_error("a buffer of negative size: " + name);
  make_current();
  void* data = nullptr;
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
  const cudaError_t status = allocator.take(&data, size);
  if (status == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    throw_out_of_memory(*ledger_, bytes, category, name);
  }
  check(status, "allocating device memory");
  ledger_->add(category, name, bytes);
  Buffer buffer(
      data, bytes,
      [ledger = ledger_, left = left_, index = index_, give_back = allocator.give_back, data, bytes, category, name] {
        if (!*left && cudaSetDevice(index) == cudaSuccess) give_back(data);
        ledger->remove(category, name, bytes);
      });
  check(cudaMemset(data, 0, size), "cudaMemset");
  // The streams do not wait for the default one, on which the memory was zeroed.
  check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
  return buffer;
}

Buffer CudaDevice::pin(void* memory, std::int64_t bytes) {
  make_current();
  if (cudaHostRegister(memory, static_cast<std::size_t>(bytes), cudaHostRegisterDefault) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());  // copies work all the same, slower
    return Device::pin(memory, bytes);
  }
  return {memory, bytes, [left = left_, index = index_, memory] {
            if (!*left && cudaSetDevice(index) == cudaSuccess) static_cast<void>(cudaHostUnregister(memory));
          }};
}

Buffer CudaDevice::allocate_host(std::int64_t bytes, const std::string& name) {
  make_current();
  void* data = nullptr;
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
  const cudaError_t status = cudaMallocHost(&data, size);
  if (status == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    throw UserError("not enough memory on the host: " + std::to_string(bytes) + " bytes, pinned, for " + name);
  }
  check(status, "cudaMallocHost");
  std::fill_n(static_cast<std::byte*>(data), size, std::byte{0});
  return {data, bytes, [left = left_, index = index_, data] {
            if (!*left && cudaSetDevice(index) == cudaSuccess) static_cast<void>(cudaFreeHost(data));
          }};
}

void CudaDevice::prepare(const Operation& operation) {
  prepared_ = std::max(prepared_, gpu::workspace_of(operation));
  make_current();
  if (const auto* product = std::get_if<MatMul>(&operation)) products_->prepare(*product);
}

void CudaDevice::reserve_workspace() {
  if (prepared_ <= workspace_.bytes()) return;
  workspace_ = {};
  workspace_ = allocate(prepared_, MemoryCategory::workspace, "kernels");
}

void CudaDevice::run(Stream stream, const Operation& operation) {
  make_current();
  const std::int64_t need = gpu::workspace_of(operation);
  if (need > workspace_.bytes()) {
    throw std::logic_error(std::string(zt::name_of(operation)) +
                           " was run that needs more scratch memory than was reserved");
  }
  if (need > 0 && stream != Stream::compute) {
    throw std::logic_error(std::string(zt::name_of(operation)) +
                           " needs scratch memory: only the compute stream has it");
  }
  std::visit(
      [&]<typename T>(const T& op) {
        if constexpr (std::is_same_v<T, MatMul>) {
          products_->run(op, native(stream), workspace_.as<std::byte>());
        } else {
          cuda::run(op, {native(stream), workspace_.as<std::byte>()});
        }
      },
      operation);
}

void CudaDevice::copy(Stream stream, void* to, const void* from, std::int64_t bytes) {
  if (bytes == 0) return;
  make_current();
  check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, native(stream)),
        "cudaMemcpyAsync");
}

void CudaDevice::host_call(Stream stream, std::function<void()> function) {
  synchronize(stream);
  function();
}

cudaEvent_t CudaDevice::take_event() {
  if (!free_events_.empty()) {
    const cudaEvent_t event = free_events_.back();
    free_events_.pop_back();
    return event;
  }
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  return event;
}

Event CudaDevice::record(Stream stream) {
  make_current();
  Line& line = lines_[static_cast<std::size_t>(stream)];
  while (line.recorded.size() >= kept_events) {
    const Recorded oldest = line.recorded.front();
    if (!is_over(oldest.event)) break;
    line.passed = oldest.id;
    free_events_.push_back(oldest.event);
    line.recorded.pop_front();
  }
  const cudaEvent_t event = take_event();
  if (const cudaError_t status = cudaEventRecord(event, native(stream)); status != cudaSuccess) {
    free_events_.push_back(event);
    check(status, "cudaEventRecord");
  }
  const Event recorded = make_event(++last_event_, stream);
  line.recorded.push_back({recorded.id, event});
  return recorded;
}

cudaEvent_t CudaDevice::find(Event event) {
  if (event.id == 0) return nullptr;
  if (event.id < 0) throw std::logic_error("waiting for an event that was never recorded");
  const Line& line = lines_.at(static_cast<std::size_t>(event.id % stream_count));
  if (event.id <= line.passed) return nullptr;
  const auto found = std::lower_bound(line.recorded.begin(), line.recorded.end(), event.id,
                                      [](const Recorded& recorded, std::int64_t id) { return recorded.id < id; });
  if (found == line.recorded.end() || found->id != event.id) {
    throw std::logic_error("waiting for an event that was never recorded");
  }
  return found->event;
}

void CudaDevice::wait(Stream stream, Event event) {
  const cudaEvent_t native_event = find(event);
  if (native_event == nullptr || event.id % stream_count == static_cast<std::int64_t>(stream)) return;
  make_current();
  check(cudaStreamWaitEvent(native(stream), native_event, 0), "cudaStreamWaitEvent");
}

void CudaDevice::synchronize(Event event) {
  const cudaEvent_t native_event = find(event);
  if (native_event == nullptr) return;
  make_current();
  if (!watch_) {
    check(cudaEventSynchronize(native_event), "cudaEventSynchronize");
  } else {
    wait_watching(native_event);
  }
}

// A stream that waits for a dead peer never comes to its end: the host looks around while it waits.
void CudaDevice::wait_watching(cudaEvent_t event) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  auto next_look = start + std::chrono::milliseconds(50);
  while (true) {
    if (is_over(event)) return watch_();  // what has been given up also comes to an end
    const auto now = Clock::now();
    if (now > next_look) {
      watch_();
      next_look = now + std::chrono::milliseconds(50);
    }
    if (now - start > std::chrono::milliseconds(1)) std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

TimeMark CudaDevice::mark(Stream stream) {
  make_current();
  if (free_marks_.empty()) {
    cudaEvent_t event = nullptr;
    check(cudaEventCreate(&event), "cudaEventCreate");
    free_marks_.push_back(static_cast<std::int64_t>(marks_.size()));
    marks_.push_back(event);
  }
  const std::int64_t number = free_marks_.back();
  free_marks_.pop_back();
  check(cudaEventRecord(marks_[static_cast<std::size_t>(number)], native(stream)), "cudaEventRecord");
  return {number};
}

double CudaDevice::seconds_between(TimeMark from, TimeMark to) {
  const double seconds = seconds_after(from, to);
  free_marks_.push_back(from.number);
  return seconds;
}

double CudaDevice::seconds_after(TimeMark from, TimeMark to) {
  make_current();
  float milliseconds = 0.0F;
  check(cudaEventElapsedTime(&milliseconds, marks_.at(static_cast<std::size_t>(from.number)),
                             marks_.at(static_cast<std::size_t>(to.number))),
        "cudaEventElapsedTime");
  free_marks_.push_back(to.number);
  return static_cast<double>(milliseconds) * 1e-3;
}

std::string CudaDevice::description() const { return "GPU " + std::to_string(index_) + " (" + name_ + ")"; }

}  // namespace zt::cuda
