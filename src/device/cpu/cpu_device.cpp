#include "device/cpu/cpu_device.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <type_traits>

#include "core/errors.h"
#include "device/cpu/attention.h"
#include "device/cpu/instruction_set.h"
#include "device/cpu/matmul.h"
#include "device/cpu/product.h"
#include "device/cpu/simd.h"

namespace zt::cpu {
namespace {

constexpr std::int64_t alignment = 64;
// From here on memory comes from the operating system directly: zeroed without being touched, given back at once, in
// large pages where they are to be had.
constexpr std::int64_t large_allocation = std::int64_t{1} << 20;

template <typename T>
constexpr bool is_attention = std::is_same_v<T, AttentionForward> || std::is_same_v<T, AttentionBackward>;

void* allocate_zeroed(std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  if (bytes < large_allocation) {
    void* const data = std::aligned_alloc(alignment, size);
    if (data != nullptr) std::memset(data, 0, size);
    return data;
  }
  void* const data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return nullptr;
#ifdef MADV_HUGEPAGE
  madvise(data, size, MADV_HUGEPAGE);  // a hint: refusal is no error
#endif
  return data;
}

void free_memory(void* data, std::int64_t bytes) {
  if (bytes < large_allocation) {
    std::free(data);
  } else {
    munmap(data, static_cast<std::size_t>(bytes));
  }
}

}  // namespace

WorkspaceNeed workspace_need(const Operation& operation) {
  return std::visit(
      []<typename T>(const T& op) -> WorkspaceNeed {
        if constexpr (std::is_same_v<T, MatMul>) {
          return matmul_workspace(op);
        } else if constexpr (is_attention<T>) {
          return attention_workspace(op);
        } else {
          return workspace_of(op);
        }
      },
      operation);
}

WorkspaceNeed larger_of(WorkspaceNeed a, WorkspaceNeed b) {
  return {.per_worker = std::max(a.per_worker, b.per_worker), .shared = std::max(a.shared, b.shared)};
}

std::int64_t workspace_bytes(WorkspaceNeed maxima, int threads) {
  return round_up(maxima.per_worker, alignment) * threads + round_up(maxima.shared, alignment);
}

CpuDevice::CpuDevice(int threads, const CpuDeviceOptions* options)
    : options_(options == nullptr ? CpuDeviceOptions{} : *options),
      ledger_(std::make_shared<MemoryLedger>()),
      pool_(threads, options_.sharing_cores) {}

CpuDevice::~CpuDevice() = default;

Buffer CpuDevice::allocate(std::int64_t bytes, MemoryCategory category, const std::string& name) {
  if (bytes < 0) throw std::logic_error("a buffer of negative size: " + name);
  const std::int64_t misalignment = category == MemoryCategory::workspace ? 0 : options_.misalignment;
  const std::int64_t whole = round_up(std::max<std::int64_t>(bytes, 1) + misalignment, alignment);
  void* const data = allocate_zeroed(whole);
  if (data == nullptr) {
    throw UserError("not enough memory: " + std::to_string(bytes) + " bytes for " + std::string(zt::name_of(category)) +
                    " (" + name + "), with " + std::to_string(ledger_->total()) + " bytes allocated before");
  }
  ledger_->add(category, name, bytes);
  return {static_cast<std::byte*>(data) + misalignment, bytes, [ledger = ledger_, data, whole, bytes, category, name] {
            free_memory(data, whole);
            ledger->remove(category, name, bytes);
          }};
}

Buffer CpuDevice::allocate_host(std::int64_t bytes, const std::string& name) {
  const std::int64_t whole = round_up(std::max<std::int64_t>(bytes, 1), alignment);
  void* const data = allocate_zeroed(whole);
  if (data == nullptr) throw UserError("not enough memory: " + std::to_string(bytes) + " bytes for " + name);
  return {data, bytes, [data, whole] { free_memory(data, whole); }};
}

void CpuDevice::prepare(const Operation& operation) { prepared_ = larger_of(prepared_, workspace_need(operation)); }

void CpuDevice::reserve_workspace() {
  const std::int64_t bytes = workspace_bytes(prepared_, threads());
  if (bytes > workspace_bytes(reserved_, threads())) {
    workspace_ = {};
    workspace_ = allocate(bytes, MemoryCategory::workspace, "kernels");
  }
  reserved_ = prepared_;
  pool_.on_every_thread([](int) { prepare_thread_for_products(); });
}

void CpuDevice::run(Stream, const Operation& operation) {
  Context context{.pool = pool_};
  context.per_worker = round_up(reserved_.per_worker, alignment);
  context.workers = workspace_.as<std::byte>();
  context.shared = context.workers + context.per_worker * threads();
  context.shared_bytes = round_up(reserved_.shared, alignment);
  std::visit(
      [&]<typename T>(const T& op) {
        if constexpr (std::is_same_v<T, MatMul>) {
          run_matmul(op, context);  // this and attention see for themselves that their scratch is there
        } else if constexpr (is_attention<T>) {
          run_attention(op, context);
        } else {
          const WorkspaceNeed need = workspace_of(op);
          if (need.per_worker > context.per_worker || need.shared > context.shared_bytes) {
            throw std::logic_error(std::string(zt::name_of(operation)) +
                                   " was run that needs more scratch memory than was reserved");
          }
          cpu::run(op, context);
        }
      },
      operation);
}

void CpuDevice::copy(Stream, void* to, const void* from, std::int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

void CpuDevice::host_call(Stream, std::function<void()> function) { function(); }

Event CpuDevice::record(Stream) { return {++last_event_}; }

void CpuDevice::wait(Stream, Event event) { synchronize(event); }

void CpuDevice::synchronize(Event event) {
  if (event.id < 0 || event.id > last_event_) throw std::logic_error("waiting for an event that was never recorded");
}

std::string CpuDevice::description() const {
  return "CPU, " + std::string(name_of(instruction_level())) + ", " + std::to_string(threads()) +
         (threads() == 1 ? " thread" : " threads");
}

}  // namespace zt::cpu
