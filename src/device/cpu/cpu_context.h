// What an operation on the CPU runs with: the rank's threads and scratch memory reserved beforehand.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/cpu/thread_pool.h"

namespace zt::cpu {

// Scratch bytes that an operation needs: for each thread that works on it, and once.
struct WorkspaceNeed {
  std::int64_t per_worker = 0;
  std::int64_t shared = 0;
};

struct Context {
  ThreadPool& pool;
  std::byte* workers = nullptr;  // 64-byte aligned; worker w's scratch starts at workers + w * per_worker
  std::int64_t per_worker = 0;   // a multiple of 64
  std::byte* shared = nullptr;   // 64-byte aligned
  std::int64_t shared_bytes = 0;

  std::byte* of(int worker) const { return workers + worker * per_worker; }
};

}  // namespace zt::cpu
