// The communicator of ranks on a CPU: windows within a node, a transport between nodes.
#pragma once

#include <array>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "comm/counted.h"
#include "comm/node_windows.h"
#include "comm/staging.h"
#include "comm/transport.h"

namespace zt {

class HierarchicalCommunicator final : public CountedCommunicator {
 public:
  struct Place {
    int rank = 0;
    int size = 1;
    std::vector<int> node_ranks;  // global ranks of the node's members, ascending; as many as `node` has
    std::string description;
    // Called by abort() on the first rank of this machine to fail, before the others learn of it.
    std::function<void(const Failure& failure)> on_abort;
    // How long abort() holds back: where ranks that fail alike cannot see each other, one is to come first.
    std::chrono::milliseconds abort_delay{0};
  };

  // `transport` may be null if all ranks are members of the node.
  HierarchicalCommunicator(Place place, std::unique_ptr<NodeWindows> node, std::shared_ptr<Transport> transport);

  int ranks_on_node() const override { return static_cast<int>(place_.node_ranks.size()); }
  std::string description() const override { return place_.description; }
  void reserve(Device& device, std::int64_t largest_slice_bytes) override;
  SharedBufferPtr allocate(Device& device, std::int64_t bytes, MemoryCategory category,
                           const std::string& name) override;
  Ticket all_gather(Device& device, Stream stream, const Region& from, TensorView to) override;
  Ticket reduce_scatter(Device& device, Stream stream, const Region& from, DType dtype, TensorView acc,
                        bool first) override;
  Ticket all_to_all(Device& device, Stream stream, const Region& from, const OwnerBlocks& blocks,
                    TensorView to) override;
  void wait_until_read(Ticket ticket) override;
  void all_reduce_sum(std::span<std::int64_t> values) override;
  void broadcast(std::span<std::byte> bytes, int root) override;
  std::vector<std::string> all_gather_strings(const std::string& mine) override;
  void abort(int exit_code, const std::string& message) noexcept override;
  void check_peers() override;
  std::int64_t peers_shared_bytes() const override { return node_->peers_shared_bytes(); }

 private:
  class WindowBuffer;
  // What has been asked for on a lane but has not run yet (a device that queues).
  struct Pending {
    Device* device = nullptr;
    Event event;
  };
  // A collective that has been asked for.
  struct Collective {
    CollectiveKind kind = CollectiveKind::all_gather;
    Device* device = nullptr;
    CollectiveCount* count = nullptr;
    std::int64_t number = 0;
    Region from;
    DType dtype = DType::f32;  // of what is reduced
    OwnerBlocks blocks{};      // of an all_to_all
    TensorView to;             // what is gathered, the sums, or the blocks received
    bool first = false;
  };
  struct Lane {
    std::int64_t asked = 0;  // number of the last collective asked for
    std::int64_t run = 0;    // number of the last one that has run
    std::int64_t read = 0;   // all peers have finished this one and those before
    std::map<std::int64_t, Pending> pending;
    // Memory for what has not run yet, as many as there ever were at once, and which of it is free.
    std::deque<Collective> collectives;
    std::vector<std::size_t> free;
    std::vector<const void*> sources;  // of a reduce_scatter, by rank
  };

  // Puts a collective on the stream: numbers it, counts its time, and remembers it while it is queued.
  Ticket put(Stream stream, Collective collective);
  void run(int lane, const Collective& collective);
  void run_all_gather(int lane, std::int64_t number, const Region& from, TensorView to);
  void run_reduce_scatter(Device& device, int lane, std::int64_t number, const Region& from, DType dtype,
                          TensorView acc, bool first);
  void run_all_to_all(int lane, std::int64_t number, const Region& from, const OwnerBlocks& blocks, TensorView to);
  // Host values of all ranks: sizes[p] bytes come from rank p.
  using Take = FunctionRef<void(int rank, std::size_t offset, std::span<const std::byte> piece)>;
  void exchange(std::span<const std::size_t> sizes, std::span<const std::byte> mine, Take take);

  Place place_;
  std::vector<int> remote_ranks_;  // ascending
  Staging staging_{0};
  std::shared_ptr<Transport> transport_;
  std::array<Lane, stream_count> lanes_;
  std::unique_ptr<NodeWindows> node_;
  // Memory of the exchanges of host values.
  std::vector<std::size_t> sizes_, node_sizes_;
  std::vector<std::int64_t> mine_;
};

}  // namespace zt
