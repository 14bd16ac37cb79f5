#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "comm/node_windows.h"
#include "core/errors.h"

namespace zt {
namespace {

class HeapWindowMemory final : public WindowMemory {
 public:
  std::shared_ptr<std::byte> create(std::int64_t bytes, Descriptor& descriptor) override {
    const auto rounded = (static_cast<std::size_t>(bytes) + 63) / 64 * 64;
    auto* memory = static_cast<std::byte*>(std::aligned_alloc(64, rounded));
    if (memory == nullptr) throw std::bad_alloc();
    std::memset(memory, 0, rounded);
    std::shared_ptr<std::byte> owner(memory, [](std::byte* p) { std::free(p); });
    // The peers copy the shared pointer while it lies here.
    descriptor.words[0] = reinterpret_cast<std::uintptr_t>(new std::shared_ptr<std::byte>(owner));
    return owner;
  }
  std::shared_ptr<std::byte> open(std::int64_t, const Descriptor& descriptor) override { return *lent(descriptor); }
  void opened(const Descriptor& descriptor) noexcept override { delete lent(descriptor); }
  bool maps_other_processes() const override { return false; }

 private:
  static std::shared_ptr<std::byte>* lent(const Descriptor& descriptor) {
    return reinterpret_cast<std::shared_ptr<std::byte>*>(static_cast<std::uintptr_t>(descriptor.words[0]));
  }
};

std::shared_ptr<std::byte> map_shared(int fd, std::int64_t bytes) {
  const auto length = static_cast<std::size_t>(bytes);
  void* memory = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return nullptr;
  // Large pages where the system allows them for shared memory; no harm where it does not.
  if (bytes >= (std::int64_t{4} << 20)) madvise(memory, length, MADV_HUGEPAGE);
  return {static_cast<std::byte*>(memory), [length](std::byte* p) { munmap(p, length); }};
}

class MemfdWindowMemory final : public WindowMemory {
 public:
  std::shared_ptr<std::byte> create(std::int64_t bytes, Descriptor& descriptor) override {
    const Memfd made = create_memfd(bytes);
    descriptor.words[0] = static_cast<std::uint64_t>(getpid());
    descriptor.words[1] = static_cast<std::uint64_t>(made.fd);
    return made.memory;
  }
  std::shared_ptr<std::byte> open(std::int64_t bytes, const Descriptor& descriptor) override {
    const int process = static_cast<int>(descriptor.words[0]);
    auto memory = open_memfd(process, static_cast<int>(descriptor.words[1]), bytes);
    if (!memory) {
      throw RunError("the memory of process " + std::to_string(process) + " on this machine (" + std::to_string(bytes) +
                     " bytes) could not be mapped: " + std::strerror(errno));
    }
    return memory;
  }
  void opened(const Descriptor& descriptor) noexcept override { close(static_cast<int>(descriptor.words[1])); }
  bool maps_other_processes() const override { return true; }
};

}  // namespace

Memfd create_memfd(std::int64_t bytes) {
  const int fd = memfd_create("zerotrain", MFD_CLOEXEC);
  if (fd < 0) throw RunError(std::string("shared memory could not be made (memfd_create): ") + std::strerror(errno));
  if (ftruncate(fd, bytes) != 0) {
    const int error = errno;
    close(fd);
    throw RunError("shared memory of " + std::to_string(bytes) + " bytes could not be made: " + std::strerror(error));
  }
  auto memory = map_shared(fd, bytes);
  if (!memory) {
    close(fd);
    throw std::bad_alloc();
  }
  return {fd, std::move(memory)};
}

std::shared_ptr<std::byte> open_memfd(int process, int fd, std::int64_t bytes) {
  const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(fd);
  const int opened = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (opened < 0) return nullptr;
  // Among processes that do not share their numbering the path may name something else.
  if (lseek(opened, 0, SEEK_END) != bytes) {
    close(opened);
    return nullptr;
  }
  auto memory = map_shared(opened, bytes);
  const int error = errno;
  close(opened);
  errno = error;
  return memory;
}

std::unique_ptr<WindowMemory> heap_window_memory() { return std::make_unique<HeapWindowMemory>(); }
std::unique_ptr<WindowMemory> memfd_window_memory() { return std::make_unique<MemfdWindowMemory>(); }

}  // namespace zt
