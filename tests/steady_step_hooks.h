// Stands in for the allocator and the locks of the C library in one test's executable, and counts what is asked of them
// while counting is on. Calls from within a oneDNN primitive are counted apart: its entry point is stood in for, too.
// For one source file only. glibc: __libc_malloc and its like are the allocator's own names.
#pragma once

#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <string_view>

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);
}

namespace zt::test::hooks {

struct Counts {
  std::int64_t ours = 0, of_library = 0, largest_of_library = 0, largest_of_gemm = 0, locks = 0;
};

inline std::atomic<bool> counting{false};
inline std::atomic<std::int64_t> ours{0}, of_library{0}, largest_of_library{0}, largest_of_gemm{0}, locks{0};
inline std::array<std::atomic<void*>, 8> places{};  // that allocated or locked, of ours
inline thread_local int inside_library = 0;
inline thread_local bool inside_gemm = false;

inline void note_place(std::int64_t number, void* place) {
  if (number < static_cast<std::int64_t>(places.size())) places[static_cast<std::size_t>(number)] = place;
}

inline void note_allocation(std::size_t bytes, void* place) {
  if (!counting.load(std::memory_order_relaxed)) return;
  if (inside_library == 0) {
    note_place(ours.fetch_add(1), place);
    return;
  }
  ++of_library;
  std::atomic<std::int64_t>& maximum = inside_gemm ? largest_of_gemm : largest_of_library;
  std::int64_t largest = maximum;
  while (largest < static_cast<std::int64_t>(bytes) &&
         !maximum.compare_exchange_weak(largest, static_cast<std::int64_t>(bytes)))
    continue;
}

inline void note_lock(void* place) {
  if (!counting.load(std::memory_order_relaxed) || inside_library > 0) return;
  note_place(locks.fetch_add(1), place);
}

inline Counts counts() { return {ours, of_library, largest_of_library, largest_of_gemm, locks}; }

// Where the first ones were, for addr2line.
inline std::string first_places() {
  std::string text;
  for (const auto& place : places) {
    Dl_info info{};
    if (place == nullptr || dladdr(place, &info) == 0) continue;
    text += std::string(info.dli_fname) + " +" +
            std::to_string(static_cast<std::byte*>(place.load()) - static_cast<std::byte*>(info.dli_fbase)) + " " +
            (info.dli_sname == nullptr ? "" : info.dli_sname) + "\n";
  }
  return text;
}

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace zt::test::hooks

#define ZT_NOTE(bytes) zt::test::hooks::note_allocation(bytes, __builtin_return_address(0))

extern "C" {

void* malloc(std::size_t bytes) noexcept {
  ZT_NOTE(bytes);
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) noexcept {
  ZT_NOTE(count * bytes);
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, std::size_t bytes) noexcept {
  ZT_NOTE(bytes);
  return __libc_realloc(memory, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  ZT_NOTE(bytes);
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) noexcept {
  ZT_NOTE(bytes);
  *memory = __libc_memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}
void free(void* memory) noexcept { __libc_free(memory); }

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  static const auto real = zt::test::hooks::next<int (*)(pthread_mutex_t*)>("pthread_mutex_lock");
  zt::test::hooks::note_lock(__builtin_return_address(0));
  return real(mutex);
}
int pthread_rwlock_rdlock(pthread_rwlock_t* lock) noexcept {
  static const auto real = zt::test::hooks::next<int (*)(pthread_rwlock_t*)>("pthread_rwlock_rdlock");
  zt::test::hooks::note_lock(__builtin_return_address(0));
  return real(lock);
}
int pthread_rwlock_wrlock(pthread_rwlock_t* lock) noexcept {
  static const auto real = zt::test::hooks::next<int (*)(pthread_rwlock_t*)>("pthread_rwlock_wrlock");
  zt::test::hooks::note_lock(__builtin_return_address(0));
  return real(lock);
}

dnnl_status_t dnnl_primitive_execute(const_dnnl_primitive_t primitive, dnnl_stream_t stream, int count,
                                     const dnnl_exec_arg_t* arguments) {
  static const auto real = zt::test::hooks::next<decltype(&dnnl_primitive_execute)>("dnnl_primitive_execute");
  const_dnnl_primitive_desc_t description = nullptr;
  const char* implementation = "";
  dnnl_primitive_get_primitive_desc(primitive, &description);
  dnnl_primitive_desc_query(description, dnnl_query_impl_info_str, 0, static_cast<void*>(&implementation));
  ++zt::test::hooks::inside_library;
  zt::test::hooks::inside_gemm = std::string_view(implementation).starts_with("gemm");
  const dnnl_status_t status = real(primitive, stream, count, arguments);
  --zt::test::hooks::inside_library;
  return status;
}

}  // extern "C"

// So that the place is the one that asked, not the C++ library's.
void* operator new(std::size_t bytes) {
  ZT_NOTE(bytes);
  void* const memory = __libc_malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  ZT_NOTE(bytes);
  void* const memory = __libc_memalign(static_cast<std::size_t>(alignment), bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { __libc_free(memory); }
void operator delete(void* memory, std::size_t) noexcept { __libc_free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { __libc_free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { __libc_free(memory); }

#undef ZT_NOTE
