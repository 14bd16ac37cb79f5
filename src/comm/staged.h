// Collectives on buffers of a device by way of host memory: copied to the host, exchanged and added up by a
// communicator of the host, copied back. For several ranks on one GPU, which NCCL refuses, and where there is no NCCL.
//
// A collective takes part in its stream's order, but not by a function that the stream calls: the calling thread waits
// for the stream, exchanges, and puts the copy back on the stream. Functions of the host within streams
// (cudaLaunchHostFunc) would deadlock: CUDA may run them one at a time and in any order between streams, so that on one
// rank a gather may wait for its peers in front of a reduction, while on another the reduction waits in front of the
// gather; nor may such functions call CUDA. Threads wait in the order of the program, which is the same on all ranks.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "comm/counted.h"
#include "device/cpu/cpu_device.h"

namespace zt {

struct StagedOptions {
  // Slices are cut into chunks of at most so many bytes, and of so many in all ranks' slices together.
  std::int64_t chunk_bytes = std::int64_t{8} << 20;
  std::int64_t all_chunks_bytes = std::int64_t{32} << 20;
};

class StagedCommunicator final : public CountedCommunicator {
 public:
  // `host` carries everything and must outlive this one. All ranks alike.
  explicit StagedCommunicator(Communicator& host, const StagedOptions& options = {});
  ~StagedCommunicator() override;

  // The device's buffers are whole on every device: nothing is received into staging memory of the device.
  int ranks_on_node() const override { return size(); }
  std::string description() const override;
  SharedBufferPtr allocate(Device& device, std::int64_t bytes, MemoryCategory category,
                           const std::string& name) override;
  // Their tickets are empty: peers read host memory alone. Ranks that call different collectives all fail: RunError on
  // rank 0, PeerFailed on the others.
  Ticket all_gather(Device& device, Stream stream, const Region& from, TensorView to) override;
  Ticket reduce_scatter(Device& device, Stream stream, const Region& from, DType dtype, TensorView acc,
                        bool first) override;
  Ticket all_to_all(Device& device, Stream stream, const Region& from, const OwnerBlocks& blocks,
                    TensorView to) override;
  void wait_until_read(Ticket) override {}
  void all_reduce_sum(std::span<std::int64_t> values) override;
  void broadcast(std::span<std::byte> bytes, int root) override;
  std::vector<std::string> all_gather_strings(const std::string& mine) override;
  void abort(int exit_code, const std::string& message) noexcept override { host_.abort(exit_code, message); }
  void check_peers() override { host_.check_peers(); }
  std::int64_t peers_shared_bytes() const override { return host_.peers_shared_bytes(); }

  // Bytes of host memory that this rank holds for staging now, and at most. Not on the device's ledger.
  std::int64_t host_bytes() const;
  std::int64_t largest_host_bytes() const;

 private:
  class DeviceBuffer;
  struct Staging;
  // What all ranks must have in common of a collective.
  struct Signature {
    std::int64_t number, kind, slice, dtype, acc_dtype, first;
    std::int64_t to_owners = 0, digest = 0;  // of an all_to_all: which way, and of the counts by owner
    bool operator==(const Signature&) const = default;
  };
  static std::string text_of(const Signature& signature);

  std::int64_t most_chunk_bytes() const;
  void grow(std::int64_t chunk_bytes);
  std::shared_ptr<Staging> join(Device& device);
  void compare(const Signature& mine);
  // Calls stage(half, first element, elements) and exchange(the same) for each chunk, staging one chunk ahead.
  template <typename Stage, typename Exchange>
  void for_each_chunk(Device& device, std::int64_t slice_elements, DType dtype, const Stage& stage,
                      const Exchange& exchange);

  Communicator& host_;
  StagedOptions options_;
  cpu::CpuDevice host_device_{1};  // adds up on the calling thread
  std::int64_t chunk_bytes_ = 0;   // room for a slice's chunk, the same on all ranks
  // Read by peers: two halves, each with a chunk of every rank's slice, and two signatures.
  std::shared_ptr<SharedBuffer> window_;
  std::array<Ticket, 2> window_read_, signature_read_;
  std::weak_ptr<Staging> staging_;
  std::int64_t number_ = 0;
  int half_ = 0;
};

}  // namespace zt
