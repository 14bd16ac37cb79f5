// Ranks on GPUs of their own, over NCCL.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/counted.h"
#include "comm/staging.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/nccl_channels.h"

namespace zt::cuda {

// Collectives of Stream::reduce have a communicator of their own, those of the other streams share one (nccl_channels.h
// says why there are two); between streams that share it, events keep the order of the calls.
//
// All is put on streams: nothing waits on the host, and tickets are empty. A source may be overwritten by what waits
// for the stream (Device::wait) after the collective: NCCL's kernel on the source's own GPU ends when the peers have
// what it sends.
//
// Gathers move bytes, and so do blocks between owners and all ranks, by grouped sends and receives. Reductions move the
// slices in the gradients' own format by grouped sends and receives, the bytes of a reduce-scatter, and add them up in
// rank order by ReduceOnto: the bits are those of every other communicator. `fast` leaves the sum to ncclReduceScatter:
// rounded to the gradients' format at each step of an order of NCCL's own, which repeats itself for the same GPUs and
// the same version of NCCL.
class NcclCommunicator final : public CountedCommunicator {
 public:
  // All ranks alike. `host` carries host values, ids and news of failures; both outlive the communicator, and its
  // buffers die before it. Errors: UserError, the same on all ranks: no NCCL, too old, ranks that share a GPU.
  NcclCommunicator(Communicator& host, CudaDevice& device, const NcclOptions& options);
  ~NcclCommunicator() override;

  // Slices of others come through staging memory of the device.
  int ranks_on_node() const override { return 1; }
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
  // Without a wait of the host. Sums of integers are exact in NCCL's order, too.
  void sum_on_device(Device& device, Stream stream, std::int64_t* values, std::int64_t count) override;
  void broadcast(std::span<std::byte> bytes, int root) override;
  std::vector<std::string> all_gather_strings(const std::string& mine) override;
  void abort(int exit_code, const std::string& message) noexcept override { host_.abort(exit_code, message); }
  void check_peers() override { channels_->look(); }
  std::int64_t peers_shared_bytes() const override { return 0; }

 private:
  class NcclBuffer;
  using Channel = NcclChannels::Channel;
  void warm_up();
  NcclChannels::Channel channel_for(Device& device, Stream stream);
  // NCCL's calls of one group each. A block may be empty, and is not sent then; `largest`: bytes of the largest.
  void send_blocks(Channel channel, Stream stream, const std::string& what,
                   const std::function<std::span<const std::byte>(int to)>& source,
                   const std::function<std::span<std::byte>(int from)>& destination, std::int64_t largest);
  void send_to_all(Channel channel, Stream stream, const std::string& what,
                   const std::function<const std::byte*(int to)>& source,
                   const std::function<std::byte*(int from)>& destination, std::int64_t bytes);
  void sum_by_nccl(Channel channel, Stream stream, const std::string& what, const std::byte* slices,
                   std::int64_t stride, DType dtype, void* sum, std::int64_t elements);

  Communicator& host_;
  CudaDevice& device_;
  NcclOptions options_;
  Staging staging_;
  std::shared_ptr<NcclChannels> channels_;  // also held by buffers
  Stream last_on_gathers_ = Stream::gather;
  int exceptions_;
};

}  // namespace zt::cuda
