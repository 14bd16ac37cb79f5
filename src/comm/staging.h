// Memory for slices of ranks whose memory is not read directly (other nodes, other GPUs), sized and held alike by
// communicators that send and by the one that counts. It is taken from the device, which may die before the
// communicator; so it belongs to the shared buffers (which die before their device): it comes with the first of them
// and goes with the last.
#pragma once

#include <algorithm>
#include <array>
#include <memory>

#include "device/device.h"

namespace zt {

class Staging {
 public:
  static constexpr std::int64_t stride(std::int64_t slice_bytes) { return (slice_bytes + 63) / 64 * 64; }

  struct Memory {
    std::array<Buffer, stream_count> of_stream;  // collectives of different streams may overlap in time
  };

  explicit Staging(std::int64_t remote_ranks) : remote_ranks_(remote_ranks) {}

  // For slices on Stream::reduce. Taken now, or with the next shared buffer if there is none.
  void reserve(Device& device, std::int64_t slice_bytes) {
    reserved_ = std::max(reserved_, slice_bytes);
    if (!memory_.expired()) grow(device, Stream::reduce, reserved_);
  }

  // What a shared buffer holds on to; null where all ranks are on one node.
  std::shared_ptr<Memory> join(Device& device) {
    if (remote_ranks_ == 0) return nullptr;
    auto memory = memory_.lock();
    if (!memory) {
      memory = std::make_shared<Memory>();
      memory_ = memory;
      grow(device, Stream::reduce, std::exchange(reserved_, 0));
    }
    return memory;
  }

  // At least stride(slice_bytes) for each remote rank. Some shared buffer must live.
  void grow(Device& device, Stream stream, std::int64_t slice_bytes) {
    const std::int64_t needed = remote_ranks_ * stride(slice_bytes);
    const auto memory = memory_.lock();
    if (!memory) return;
    Buffer& buffer = memory->of_stream[static_cast<std::size_t>(stream)];
    if (needed <= buffer.bytes()) return;
    buffer = Buffer();
    buffer = device.allocate(needed, MemoryCategory::communication, "slices received from other ranks");
  }

  std::byte* at(Stream stream, std::int64_t byte_offset) const {
    const auto memory = memory_.lock();
    return memory ? memory->of_stream[static_cast<std::size_t>(stream)].at(byte_offset) : nullptr;
  }

 private:
  std::int64_t remote_ranks_;
  std::int64_t reserved_ = 0;
  std::weak_ptr<Memory> memory_;
};

}  // namespace zt
