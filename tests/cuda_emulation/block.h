// How the threads of a block run: each is a fiber of the calling OS thread, which runs until it waits at a barrier or
// in a collective of its warp. What kernels see of it is in kernel_side.h; run_grid() is called by the stream.
#pragma once

#include <vector_types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <source_location>
#include <string>
#include <type_traits>

namespace zt::emulation {

// The built-in variables of the running thread.
struct Indices {
  uint3 thread;
  uint3 block;
  dim3 block_size;
  dim3 grid_size;
};
extern thread_local constinit Indices indices;

constexpr int warp_size = 32;
constexpr std::size_t plain_shared_bytes = 48 << 10;     // without cudaFuncSetAttribute
constexpr std::size_t largest_shared_bytes = 227 << 10;  // sm_90

// Runs the blocks one after another. False if a finding ended the kernel.
bool run_grid(const std::function<void()>& kernel, dim3 grid, dim3 block, std::size_t shared_bytes);

// True while the calling code belongs to a kernel.
bool in_kernel();

// The running block's dynamic shared memory.
unsigned char* dynamic_shared();

// Ends the running kernel with a finding about the running thread; `what` goes on after "thread (1, 0, 0) ...".
[[noreturn]] void fail_kernel(const std::string& what, const std::source_location& where);

// All threads of the block. Threads that have ended count as arrived. `flag` is counted over the threads that arrive.
int barrier(const char* name, int flag, const std::source_location& where);

// What the lanes of one warp-wide call have brought.
struct Meeting {
  static constexpr std::size_t payload_bytes = 48;
  unsigned mask = 0;
  unsigned arrived = 0;
  unsigned unread = 0;
  const char* name = nullptr;
  std::source_location where;
  std::array<std::array<unsigned char, payload_bytes>, warp_size> payloads;

  template <typename T>
  T of(int lane) const {
    static_assert(sizeof(T) <= payload_bytes && std::is_trivially_copyable_v<T>);
    T value;
    std::memcpy(&value, payloads[static_cast<std::size_t>(lane)].data(), sizeof(T));
    return value;
  }
};

int lane();  // of the running thread in its warp

// The lanes of `mask` meet; each brings a payload. To be followed by leave() once the lane has read what it wants.
Meeting& meet(const char* name, unsigned mask, const void* payload, std::size_t bytes,
              const std::source_location& where);
void leave(Meeting& meeting);

// meet, `read` the meeting, leave.
template <typename T, typename Read>
auto collective(const char* name, unsigned mask, const T& payload, const std::source_location& where, Read read) {
  static_assert(sizeof(T) <= Meeting::payload_bytes && std::is_trivially_copyable_v<T>);
  Meeting& meeting = meet(name, mask, &payload, sizeof(T), where);
  const auto result = read(static_cast<const Meeting&>(meeting));
  leave(meeting);
  return result;
}

// Copies of the running thread that land when it waits for them: gpu.h's cp_async_*.
void queue_copy(void* shared, const void* global, int valid_bytes, const std::source_location& where);
void commit_copies();
void wait_for_copies(int groups_left);

}  // namespace zt::emulation
