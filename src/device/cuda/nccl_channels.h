// The two NCCL communicators of a rank, from their ids to their end, and what ends them early.
//
// Why two. Gathers run ahead of the computation while reductions follow it, and NCCL runs the calls on one
// communicator one after another: a gather that the next layer waits for would queue behind the reduction of the layer
// before. Two communicators run at once, each from a stream of its own. That alone could deadlock: if the kernels of
// two collectives are started in different orders on two GPUs, and each GPU has room for one, each waits for the other.
// NCCL_LAUNCH_ORDER_IMPLICIT=1 excludes it: NCCL makes the kernel of each call wait until that of the call before, on
// whichever communicator, has been started on this GPU. The host's calls have one order on all ranks (the order of
// the program: the number of micro-batches, units and decisions to skip are common), so at any time the first
// collective that is not over everywhere has been started on all ranks, or nothing but work that needs no peer is in
// front of it; it comes to its end, and by induction all do. The price: a gather starts after the reductions called
// before it have started (not: have ended).
//
// Why not blocking (`blocking = 0`). A call of a blocking communicator may wait for a peer (connections are made at
// first use) that has died, for ever, and a blocking communicator cannot safely be aborted while another thread is in
// a call. Here every call returns at once and its outcome is asked for, between looks at the peers, by the thread that
// made it. The price is a thread that NCCL starts for each group of calls, some tens of microseconds on the host, which
// is ahead of the GPU.
//
// What ends a run. While the host waits for the GPU or for NCCL, it looks every 50 ms whether NCCL has met an error and
// whether a peer has failed or is gone (the host communicator knows), and throws. Since CUDA also waits in calls that
// launch (its queue is full) or free memory, a thread looks as well, and frees the host if it does not come back:
// aborted communicators leave their kernels, so that streams flow to their end and CUDA's calls return.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "comm/communicator.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/nccl_functions.h"

namespace zt::cuda {

struct NcclOptions {
  bool fast = false;                                        // sums by NCCL, in an order of its own
  std::int64_t largest_message = std::int64_t{1} << 30;     // elements of one NCCL call; larger ones are cut
  std::int64_t smallest_enrolled = std::int64_t{32} << 20;  // bytes of a buffer that NCCL allocates and enrols
  // How long the host waits for collectives that make no progress, before it gives up. 0: for ever.
  std::chrono::seconds patience{1800};
  // For news of a peer's failure when NCCL has failed, and for the host to notice what the watching thread has seen.
  std::chrono::milliseconds grace{2000};
};

class NcclChannels {
 public:
  enum Channel : std::uint8_t { gathers, reductions };

  // All ranks alike. Errors: UserError where ranks share a GPU or NCCL cannot be had; RunError, PeerFailed.
  NcclChannels(Communicator& host, CudaDevice& device, const NcclOptions& options);
  ~NcclChannels();
  NcclChannels(const NcclChannels&) = delete;
  NcclChannels& operator=(const NcclChannels&) = delete;

  // Makes the NCCL calls of one collective, as one group; on return they are on their stream. `calls` returns the
  // first result that is not ncclSuccess. `what` is for messages: "all_gather of 4096 bytes a slice".
  using Calls = std::function<ncclResult_t(ncclComm_t comm)>;
  void group(Channel channel, const std::string& what, const Calls& calls);

  // Throws what has ended the communicators, if something has. To be called before results are relied on.
  void check();
  // check(), and whether the peers live.
  void look();

  // The normal end, on all ranks: what is queued runs to its end. Throws as look() does.
  void finish();
  // The end of a rank that fails: does not wait for peers. If the GPU does not come to rest, it is left as it is.
  void abandon() noexcept;

  // Memory of NCCL's allocator, known to both communicators; null handles where it is not worth it.
  struct Enrolled {
    std::array<void*, 2> handles{};
  };
  Enrolled enrol(void* memory, std::int64_t bytes);
  void strike_off(const Enrolled& enrolled) noexcept;

  const NcclFunctions& nccl() const { return nccl_; }
  std::string version() const;

 private:
  using Clock = std::chrono::steady_clock;
  void refuse_shared_gpus();
  void connect();
  ncclResult_t state_of(ncclComm_t comm) const;
  void settle(ncclComm_t comm, ncclResult_t result, std::unique_lock<std::mutex>& lock);
  [[noreturn]] void fail(ncclResult_t result, const std::string& where, std::unique_lock<std::mutex>& lock);
  [[noreturn]] void end(std::exception_ptr why, std::unique_lock<std::mutex>& lock);
  void throw_if_ended(std::unique_lock<std::mutex>& lock);
  void look(std::unique_lock<std::mutex>& lock);
  void look_at_patience(std::unique_lock<std::mutex>& lock);
  void abort_all(std::unique_lock<std::mutex>& lock) noexcept;
  std::string text_of(ncclResult_t result, const std::string& where) const;
  void watch();

  const NcclFunctions& nccl_;
  Communicator& host_;
  CudaDevice& device_;
  NcclOptions options_;

  std::mutex mutex_;  // of all below; held through NCCL's calls, none of which waits
  std::array<ncclComm_t, 2> comms_{};
  std::exception_ptr ended_;  // why
  bool told_ = false;         // the host's thread has thrown it
  std::int64_t number_ = 0;   // of collectives so far
  std::string last_ = "none yet";
  // Of the wait that the host is in, for options_.patience.
  Clock::time_point waits_since_{}, looked_{};
  std::int64_t waits_at_number_ = -1;

  std::mutex watch_mutex_;
  std::condition_variable stop_watching_;
  bool stopped_ = false;
  std::thread watcher_;
};

}  // namespace zt::cuda
