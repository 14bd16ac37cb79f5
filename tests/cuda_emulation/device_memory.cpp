#include "device_memory.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <string>

#include "emulation_state.h"
#include "sanitizer.h"

namespace zt::emulation {
namespace {

constexpr std::size_t alignment = 256;
constexpr std::size_t page = 2 << 20;  // huge pages, where the system has them: opening and closing is cheap then
constexpr unsigned char guard_value = 0xa5;

std::size_t rounded(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

// Allocations lie in one reserved range, each followed by a guard of 256 bytes or more.
struct Arena {
  std::mutex mutex;
  void* mapped = nullptr;
  unsigned char* base = nullptr;  // the first whole page of it
  std::size_t reserved = 0;
  std::size_t used_pages_end = 0;  // what has ever been used, to be opened and closed
  std::size_t used_bytes = 0;
  int open = 0;
  std::map<std::size_t, std::size_t> blocks;  // offset, bytes

  void protect(int protection) const {
    if (used_pages_end > 0) mprotect(base, used_pages_end, protection);
  }
  void apply() const { protect(open > 0 || !settings().protect ? PROT_READ | PROT_WRITE : PROT_NONE); }
};

std::array<Arena, max_devices>& arenas() {
  static std::array<Arena, max_devices> instance;
  return instance;
}

Arena& arena(int device) { return arenas().at(static_cast<std::size_t>(device)); }

// Only looks at plain values: it is called by the signal handler, too.
int device_at(std::uintptr_t address) {
  for (int device = 0; device < max_devices; ++device) {
    const Arena& candidate = arena(device);
    const auto base = reinterpret_cast<std::uintptr_t>(candidate.base);
    if (base != 0 && address >= base && address < base + candidate.reserved) return device;
  }
  return -1;
}

void explain_fault(int signal_number, siginfo_t* info, void*) {
  const int device = device_at(reinterpret_cast<std::uintptr_t>(info->si_addr));
  if (device >= 0) {
    std::array<char, 200> text = {};
    const int length = std::snprintf(text.data(), text.size(),
                                     "GPU emulation: address %p is memory of device %d; code that is no operation of "
                                     "that device touched it, or what was never allocated there\n",
                                     info->si_addr, device);
    if (write(STDERR_FILENO, text.data(), static_cast<std::size_t>(length)) < 0) _exit(134);
  }
  signal(signal_number, SIG_DFL);  // the access is tried again, and ends the process as it would have
}

void install_handler() {
  struct sigaction action = {};
  action.sa_sigaction = explain_fault;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
}

void reserve(Arena& arena) {
  arena.reserved = rounded(2 * settings().device_memory, page) + page;  // room for guards and gaps
  arena.mapped = mmap(nullptr, arena.reserved + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (arena.mapped == MAP_FAILED) throw std::bad_alloc();
  arena.base = reinterpret_cast<unsigned char*>(rounded(reinterpret_cast<std::uintptr_t>(arena.mapped), page));
  madvise(arena.base, arena.reserved, MADV_HUGEPAGE);
  install_handler();
}

// First fit.
std::size_t find_gap(const Arena& arena, std::size_t bytes) {
  std::size_t at = 0;
  for (const auto& [offset, size] : arena.blocks) {
    if (at + bytes + alignment <= offset) return at;
    at = rounded(offset + size, alignment) + alignment;
  }
  return at;
}

// The bytes between an allocation and the next multiple of 256, and 256 more.
std::size_t guard_bytes(std::size_t bytes) { return rounded(bytes, alignment) - bytes + alignment; }

}  // namespace

void* allocate_device_memory(int device, std::size_t bytes) {
  Arena& in = arena(device);
  const std::lock_guard lock(in.mutex);
  if (in.base == nullptr) reserve(in);
  if (bytes == 0 || bytes > settings().device_memory - in.used_bytes) return nullptr;
  const std::size_t offset = find_gap(in, bytes);
  const std::size_t end = offset + bytes + guard_bytes(bytes);
  if (end > in.reserved) return nullptr;
  in.used_pages_end = std::max(in.used_pages_end, rounded(end, page));
  in.protect(PROT_READ | PROT_WRITE);
  unpoison(in.base + offset, end - offset);
  std::memset(in.base + offset, 0xff, bytes);
  std::memset(in.base + offset + bytes, guard_value, guard_bytes(bytes));
  poison(in.base + offset + bytes, guard_bytes(bytes));
  in.apply();
  in.blocks[offset] = bytes;
  in.used_bytes += bytes;
  return in.base + offset;
}

bool free_device_memory(int device, void* memory) {
  Arena& in = arena(device);
  const std::lock_guard lock(in.mutex);
  const auto block = in.blocks.find(static_cast<std::size_t>(static_cast<unsigned char*>(memory) - in.base));
  if (in.base == nullptr || block == in.blocks.end()) return false;
  in.protect(PROT_READ | PROT_WRITE);
  auto* bytes = static_cast<unsigned char*>(memory);
  const std::size_t size = block->second;
  const unsigned char* guard = bytes + size;
  if (!has_address_sanitizer &&
      std::any_of(guard, guard + guard_bytes(size), [](unsigned char value) { return value != guard_value; })) {
    report("something wrote beyond the end of an allocation of " + std::to_string(size) + " bytes on device " +
           std::to_string(device) + "; a build with the address sanitizer names the line");
  }
  std::memset(bytes, 0xff, size);
  poison(bytes, size);
  in.apply();
  in.used_bytes -= size;
  in.blocks.erase(block);
  return true;
}

std::size_t free_device_bytes(int device) {
  Arena& in = arena(device);
  const std::lock_guard lock(in.mutex);
  return settings().device_memory - in.used_bytes;
}

void release_all_device_memory() {
  for (Arena& in : arenas()) {
    const std::lock_guard lock(in.mutex);
    if (in.base == nullptr) continue;
    unpoison(in.base, in.used_pages_end);
    munmap(in.mapped, in.reserved + page);
    in.base = nullptr;
    in.used_pages_end = in.used_bytes = 0;
    in.blocks.clear();
  }
}

int device_of(const void* pointer) { return device_at(reinterpret_cast<std::uintptr_t>(pointer)); }

std::size_t bytes_behind(const void* pointer) {
  const int device = device_of(pointer);
  if (device < 0) return 0;
  Arena& in = arena(device);
  const std::lock_guard lock(in.mutex);
  const auto offset = static_cast<std::size_t>(static_cast<const unsigned char*>(pointer) - in.base);
  auto next = in.blocks.upper_bound(offset);
  if (next == in.blocks.begin()) return 0;
  const auto& [start, bytes] = *std::prev(next);
  return offset < start + bytes ? start + bytes - offset : 0;
}

OpenDevice::OpenDevice(int device) : device_(device) {
  Arena& in = arena(device_);
  const std::lock_guard lock(in.mutex);
  if (in.open++ == 0) in.apply();
}

OpenDevice::~OpenDevice() {
  Arena& in = arena(device_);
  const std::lock_guard lock(in.mutex);
  if (--in.open == 0) in.apply();
}

ClosedDevice::ClosedDevice(int device) : device_(device) {
  Arena& in = arena(device_);
  const std::lock_guard lock(in.mutex);
  before_ = in.open;
  in.open = 0;
  in.apply();
}

ClosedDevice::~ClosedDevice() {
  Arena& in = arena(device_);
  const std::lock_guard lock(in.mutex);
  in.open = before_;
  in.apply();
}

}  // namespace zt::emulation
