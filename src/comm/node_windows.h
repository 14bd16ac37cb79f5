// The ranks of one node (or of a part of one that is made to look like a node): waiting for each other, and windows:
// memory of each rank that the others read directly.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "comm/control_block.h"
#include "core/function_ref.h"

namespace zt {

// How memory of a rank becomes readable for the others of its node.
class WindowMemory {
 public:
  // What the owner tells the others, within the control block.
  struct Descriptor {
    std::array<std::uint64_t, 4> words{};
  };

  virtual ~WindowMemory() = default;
  // Zeroed memory, aligned to 64; std::bad_alloc or UserError if there is none. The memory lives as long as the
  // owner or any peer holds it.
  virtual std::shared_ptr<std::byte> create(std::int64_t bytes, Descriptor& descriptor) = 0;
  virtual std::shared_ptr<std::byte> open(std::int64_t bytes, const Descriptor& descriptor) = 0;
  // All peers have opened it: what was kept for them can go.
  virtual void opened(const Descriptor& descriptor) noexcept = 0;
  // Whether opening maps a peer's memory into a process that did not have it.
  virtual bool maps_other_processes() const = 0;
};

std::unique_ptr<WindowMemory> heap_window_memory();
// memfd, opened by the peers through /proc/PID/fd: no limit by the size of /dev/shm.
std::unique_ptr<WindowMemory> memfd_window_memory();

// A memfd of its own, for control blocks of processes that did not inherit one. `open_memfd` maps the descriptor
// `fd` of another process of this machine; null if that cannot be done.
struct Memfd {
  int fd = -1;
  std::shared_ptr<std::byte> memory;
};
Memfd create_memfd(std::int64_t bytes);
std::shared_ptr<std::byte> open_memfd(int process, int fd, std::int64_t bytes);

// One buffer of each member of the node.
class Window {
 public:
  std::byte* of(int member) const { return memory_[static_cast<std::size_t>(member)].get(); }

 private:
  friend class NodeWindows;
  std::vector<std::shared_ptr<std::byte>> memory_;
  std::shared_ptr<void> registered_;
};

class NodeWindows {
 public:
  // `members`: slots of the control block, in order of global rank; `me`: index of this rank among them.
  NodeWindows(std::shared_ptr<ControlBlock> block, std::vector<int> members, int me,
              std::unique_ptr<WindowMemory> memory);
  ~NodeWindows();
  NodeWindows(const NodeWindows&) = delete;
  NodeWindows& operator=(const NodeWindows&) = delete;

  int size() const { return static_cast<int>(members_.size()); }
  int me() const { return me_; }
  ControlBlock& block() { return *block_; }

  void signal(ControlBlock::Progress what, int lane, std::int64_t number);
  void wait(int member, ControlBlock::Progress what, int lane, std::int64_t number);

  // Host values: sizes[m] bytes come from member m, mine from here (sizes[me] of them). `take` is called for each
  // piece of each member, own ones included; pieces start at multiples of 8 bytes. All members call it alike.
  using Take = FunctionRef<void(int member, std::size_t offset, std::span<const std::byte> piece)>;
  void exchange(std::span<const std::size_t> sizes, std::span<const std::byte> mine, Take take);

  // All members alike. bytes > 0.
  Window allocate(std::int64_t bytes);

  // Resident bytes of peers' windows in this process, as the kernel accounts them.
  std::int64_t peers_shared_bytes() const;

 private:
  struct PeerMappings {
    std::mutex mutex;
    std::map<std::uintptr_t, std::int64_t> bytes;  // by address
  };

  std::shared_ptr<ControlBlock> block_;
  std::vector<int> members_;
  int me_;
  std::unique_ptr<WindowMemory> memory_;
  std::int64_t host_number_ = 0;
  std::shared_ptr<PeerMappings> peers_ = std::make_shared<PeerMappings>();
};

}  // namespace zt
