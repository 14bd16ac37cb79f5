#include "comm/node_windows.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "core/errors.h"

namespace zt {

using Progress = ControlBlock::Progress;

NodeWindows::NodeWindows(std::shared_ptr<ControlBlock> block, std::vector<int> members, int me,
                         std::unique_ptr<WindowMemory> memory)
    : block_(std::move(block)), members_(std::move(members)), me_(me), memory_(std::move(memory)) {}

NodeWindows::~NodeWindows() { block_->leave(members_[static_cast<std::size_t>(me_)]); }

void NodeWindows::signal(Progress what, int lane, std::int64_t number) {
  block_->signal(members_[static_cast<std::size_t>(me_)], what, lane, number);
}

void NodeWindows::wait(int member, Progress what, int lane, std::int64_t number) {
  block_->wait(members_[static_cast<std::size_t>(member)], what, lane, number);
}

void NodeWindows::exchange(std::span<const std::size_t> sizes, std::span<const std::byte> mine, Take take) {
  const auto capacity = static_cast<std::size_t>(ControlBlock::area_bytes);
  const std::size_t longest = *std::max_element(sizes.begin(), sizes.end());
  for (std::size_t offset = 0; offset == 0 || offset < longest; offset += capacity) {
    // The area may be overwritten when all have read what it held in the round before.
    for (int m = 0; m < size(); ++m) wait(m, Progress::finished, host_lane, host_number_);
    ++host_number_;
    const auto piece_of = [&](std::size_t total) { return std::min(capacity, total - std::min(offset, total)); };
    if (const std::size_t bytes = piece_of(mine.size()); bytes > 0) {
      std::memcpy(block_->area(members_[static_cast<std::size_t>(me_)]), mine.data() + offset, bytes);
    }
    signal(Progress::arrived, host_lane, host_number_);
    for (int m = 0; m < size(); ++m) {
      const auto index = static_cast<std::size_t>(m);
      wait(m, Progress::arrived, host_lane, host_number_);
      const std::size_t bytes = piece_of(sizes[index]);
      if (bytes > 0) take(m, offset, {block_->area(members_[index]), bytes});
    }
    signal(Progress::finished, host_lane, host_number_);
  }
}

Window NodeWindows::allocate(std::int64_t bytes) {
  using Descriptor = WindowMemory::Descriptor;
  const auto count = static_cast<std::size_t>(size());
  Window window;
  window.memory_.resize(count);
  Descriptor mine;
  auto own = memory_->create(bytes, mine);
  std::vector<Descriptor> descriptors(count);
  const std::vector<std::size_t> sizes(count, sizeof(Descriptor));
  exchange(sizes, std::as_bytes(std::span(&mine, 1)), [&](int m, std::size_t, std::span<const std::byte> piece) {
    std::memcpy(&descriptors[static_cast<std::size_t>(m)], piece.data(), sizeof(Descriptor));
  });
  for (std::size_t m = 0; m < count; ++m) {
    window.memory_[m] = m == static_cast<std::size_t>(me_) ? own : memory_->open(bytes, descriptors[m]);
  }
  const std::vector<std::size_t> nothing(count, 0);
  exchange(nothing, {}, [](int, std::size_t, std::span<const std::byte>) {});
  memory_->opened(mine);
  if (!memory_->maps_other_processes()) return window;

  const std::scoped_lock lock(peers_->mutex);
  std::vector<std::uintptr_t> addresses;
  for (std::size_t m = 0; m < count; ++m) {
    if (m == static_cast<std::size_t>(me_)) continue;
    addresses.push_back(reinterpret_cast<std::uintptr_t>(window.memory_[m].get()));
    peers_->bytes[addresses.back()] = bytes;
  }
  window.registered_ = std::shared_ptr<void>(nullptr, [peers = peers_, addresses](void*) {
    const std::scoped_lock inner(peers->mutex);
    for (const std::uintptr_t address : addresses) peers->bytes.erase(address);
  });
  return window;
}

std::int64_t NodeWindows::peers_shared_bytes() const {
  const std::scoped_lock lock(peers_->mutex);
  if (peers_->bytes.empty()) return 0;
  std::ifstream maps("/proc/self/smaps");
  std::string line;
  std::int64_t total = 0;
  bool of_peer = false;
  while (std::getline(maps, line)) {
    std::uintptr_t start = 0;
    std::uintptr_t end = 0;
    long long kilobytes = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &start, &end) == 2) {
      const auto next = peers_->bytes.upper_bound(start);
      of_peer = next != peers_->bytes.begin() &&
                start < std::prev(next)->first + static_cast<std::uintptr_t>(std::prev(next)->second);
    } else if (of_peer && std::sscanf(line.c_str(), "Rss: %lld kB", &kilobytes) == 1) {
      total += kilobytes * 1024;
    }
  }
  return total;
}

}  // namespace zt
