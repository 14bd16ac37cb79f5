// A communicator that computes nothing: it counts what a rank of any world would send and allocate. For dry runs.
#pragma once

#include "comm/counted.h"
#include "comm/staging.h"

namespace zt {

// Counts as the communicators that really send do. Buffers are taken from the device that is given (the counting
// device: addresses only), values of other ranks are not there: an all-reduce leaves the values as they are, strings
// of others are empty. ranks_on_node: those that share memory with this rank, itself included (0: all); slices of the
// others need staging memory.
class CountingCommunicator final : public CountedCommunicator {
 public:
  CountingCommunicator(int rank, int size, int ranks_on_node = 0);

  int ranks_on_node() const override { return ranks_on_node_; }
  std::string description() const override;
  void reserve(Device& device, std::int64_t largest_slice_bytes) override;
  SharedBufferPtr allocate(Device& device, std::int64_t bytes, MemoryCategory category,
                           const std::string& name) override;
  Ticket all_gather(Device& device, Stream stream, const Region& from, TensorView to) override;
  Ticket reduce_scatter(Device& device, Stream stream, const Region& from, DType dtype, TensorView acc,
                        bool first) override;
  Ticket all_to_all(Device& device, Stream stream, const Region& from, const OwnerBlocks& blocks,
                    TensorView to) override;
  void wait_until_read(Ticket) override {}
  void all_reduce_sum(std::span<std::int64_t> values) override;
  void broadcast(std::span<std::byte> bytes, int root) override;
  std::vector<std::string> all_gather_strings(const std::string& mine) override;
  void abort(int, const std::string&) noexcept override {}
  std::int64_t peers_shared_bytes() const override { return 0; }

 private:
  int ranks_on_node_;
  Staging staging_;
};

}  // namespace zt
