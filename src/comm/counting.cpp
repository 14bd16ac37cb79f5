#include "comm/counting.h"

namespace zt {
namespace {

class CountedBuffer final : public SharedBuffer {
 public:
  CountedBuffer(std::shared_ptr<Staging::Memory> staging, Buffer memory, std::int64_t bytes)
      : staging_(std::move(staging)), memory_(std::move(memory)), bytes_(bytes) {}
  void* data() const override { return memory_.data(); }
  std::int64_t bytes() const override { return bytes_; }

 private:
  std::shared_ptr<Staging::Memory> staging_;
  Buffer memory_;
  std::int64_t bytes_;
};

}  // namespace

CountingCommunicator::CountingCommunicator(int rank, int size, int ranks_on_node)
    : CountedCommunicator(rank, size),
      ranks_on_node_(ranks_on_node > 0 ? ranks_on_node : size),
      staging_(size - ranks_on_node_) {}

std::string CountingCommunicator::description() const {
  return std::to_string(size()) + (size() == 1 ? " rank" : " ranks") + ", counted only";
}

void CountingCommunicator::reserve(Device& device, std::int64_t largest_slice_bytes) {
  staging_.reserve(device, largest_slice_bytes);
}

SharedBufferPtr CountingCommunicator::allocate(Device& device, std::int64_t bytes, MemoryCategory category,
                                               const std::string& name) {
  return std::make_unique<CountedBuffer>(staging_.join(device), device.allocate(bytes, category, name), bytes);
}

Ticket CountingCommunicator::all_gather(Device&, Stream, const Region&, TensorView to) {
  count_slices(CollectiveKind::all_gather, to.count / size(), to.dtype);
  return {};
}

Ticket CountingCommunicator::reduce_scatter(Device& device, Stream stream, const Region&, DType dtype, TensorView acc,
                                            bool) {
  staging_.grow(device, stream, acc.count * static_cast<std::int64_t>(size_of(dtype)));
  count_slices(CollectiveKind::reduce_scatter, acc.count, dtype);
  return {};
}

Ticket CountingCommunicator::all_to_all(Device&, Stream, const Region&, const OwnerBlocks& blocks, TensorView to) {
  count_blocks(blocks, to);
  return {};
}

void CountingCommunicator::all_reduce_sum(std::span<std::int64_t> values) { count_all_reduce(values.size()); }

void CountingCommunicator::broadcast(std::span<std::byte> bytes, int root) { count_broadcast(bytes.size(), root); }

std::vector<std::string> CountingCommunicator::all_gather_strings(const std::string& mine) {
  count_strings(mine.size());
  std::vector<std::string> all(static_cast<std::size_t>(size()));
  all[static_cast<std::size_t>(rank())] = mine;
  return all;
}

}  // namespace zt
