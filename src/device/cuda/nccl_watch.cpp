// How the two communicators of a rank end when the rank or a peer has failed.
#include <memory>
#include <utility>

#include "core/errors.h"
#include "device/cuda/nccl_channels.h"

namespace zt::cuda {
namespace {

using namespace std::chrono_literals;

constexpr auto between_looks = 100ms;
constexpr auto patience_of_an_end = 5s;

// Runs `work`, which holds all it uses, on a thread; false if it has not returned in time, and then goes on alone.
bool returns_in_time(std::function<void()> work) {
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
  };
  const auto shared = std::make_shared<Shared>();
  std::thread thread([shared, work = std::move(work)] {
    work();
    const std::scoped_lock lock(shared->mutex);
    shared->done = true;
    shared->changed.notify_all();
  });
  bool done = false;
  {
    std::unique_lock lock(shared->mutex);
    done = shared->changed.wait_for(lock, patience_of_an_end, [&] { return shared->done; });
  }
  if (done) {
    thread.join();
  } else {
    thread.detach();
  }
  return done;
}

bool comes_to_rest(const CudaDevice& device) {
  const auto until = std::chrono::steady_clock::now() + patience_of_an_end;
  for (int stream = 0; stream < stream_count; ++stream) {
    // Any other state is an error, after which nothing runs.
    while (cudaStreamQuery(device.native(static_cast<Stream>(stream))) == cudaErrorNotReady) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::sleep_for(100us);
    }
  }
  return true;
}

}  // namespace

// Both calls may wait for what a dead peer left behind, so neither is waited for without end.
void NcclChannels::abort_all(std::unique_lock<std::mutex>&) noexcept {
  const std::array<ncclComm_t, 2> comms = std::exchange(comms_, {});
  if (comms[0] == nullptr && comms[1] == nullptr) return;
  try {
    const bool aborted = returns_in_time([comms, &nccl = nccl_, index = device_.index()] {
      static_cast<void>(cudaSetDevice(index));
      for (const ncclComm_t comm : comms) {
        if (comm != nullptr) static_cast<void>(nccl.abort(comm));
      }
    });
    if (aborted && cudaSetDevice(device_.index()) == cudaSuccess && comes_to_rest(device_)) return;
  } catch (const std::exception&) {  // the system gives no more threads
  }
  device_.leave();
}

void NcclChannels::abandon() noexcept {
  {
    const std::scoped_lock lock(watch_mutex_);
    stopped_ = true;
  }
  stop_watching_.notify_all();
  if (watcher_.joinable()) watcher_.join();
  std::unique_lock lock(mutex_);
  if (!ended_) ended_ = std::make_exception_ptr(RunError("the communicator has been given up"));
  abort_all(lock);
}

// The watching thread. It acts for the host's thread when that does not come back from a call of CUDA; while that is
// in a call of NCCL (and holds the mutex), it looks for itself.
void NcclChannels::watch() {
  std::optional<Clock::time_point> seen;
  std::unique_lock watching(watch_mutex_);
  while (!stop_watching_.wait_for(watching, between_looks, [&] { return stopped_; })) {
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || told_ || comms_[0] == nullptr) continue;
    std::exception_ptr why = ended_;
    if (!why) {
      try {
        host_.check_peers();
      } catch (const std::exception&) {
        why = std::current_exception();
      }
    }
    for (const ncclComm_t comm : comms_) {
      const ncclResult_t state = why || comm == nullptr ? ncclSuccess : state_of(comm);
      if (state != ncclSuccess && state != ncclInProgress)
        why = std::make_exception_ptr(RunError(text_of(state, "or before " + last_)));
    }
    if (!why) continue;
    const auto now = Clock::now();
    if (!seen) seen = now;
    if (now - *seen < options_.grace) continue;
    ended_ = why;
    abort_all(lock);
    return;
  }
}

}  // namespace zt::cuda
