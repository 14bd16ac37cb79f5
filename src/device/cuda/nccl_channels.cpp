#include "device/cuda/nccl_channels.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <span>
#include <utility>

#include "comm/agree.h"
#include "core/errors.h"
#include "device/cuda/errors.h"

namespace zt::cuda {
namespace {

using namespace std::chrono_literals;

constexpr auto between_looks = 50ms;

// Before NCCL reads its environment; what the user has set stays.
void order_launches() {
  static std::once_flag once;
  std::call_once(once, [] { setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 0); });
}

const NcclFunctions& functions_of_all(Communicator& host) {
  all_or_none(host, [] { static_cast<void>(nccl_functions()); });
  return nccl_functions();
}

// The same for processes of one machine, in whichever containers they are.
std::string name_of_machine() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  if (!boot.empty()) return boot;
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0' && std::strcmp(value, "0") != 0;
}

// What others may have caused, of which the cause may still become known.
bool may_be_a_peer(ncclResult_t result) {
  return result == ncclRemoteError || result == ncclSystemError || result == ncclInternalError;
}

}  // namespace

NcclChannels::NcclChannels(Communicator& host, CudaDevice& device, const NcclOptions& options)
    : nccl_(functions_of_all(host)), host_(host), device_(device), options_(options) {
  order_launches();
  refuse_shared_gpus();
  try {
    connect();
  } catch (...) {
    abandon();
    throw;
  }
  watcher_ = std::thread([this] { watch(); });
}

NcclChannels::~NcclChannels() { abandon(); }

std::string NcclChannels::version() const {
  int version = 0;
  static_cast<void>(nccl_.get_version(&version));
  return nccl_version_text(version);
}

// Before NCCL refuses it, in words of its own.
void NcclChannels::refuse_shared_gpus() {
  std::array<char, 32> bus{};
  zt::cuda::check(cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), device_.index()),
                  "cudaDeviceGetPCIBusId");
  const std::vector<std::string> places = host_.all_gather_strings(name_of_machine() + " " + bus.data());
  // Ways around it that NCCL has for tests.
  if (is_set("NCCL_HOSTID") || is_set("NCCL_MULTI_RANK_GPU_ENABLE")) return;
  for (std::size_t b = 0; b < places.size(); ++b) {
    const auto a = static_cast<std::size_t>(std::find(places.begin(), places.end(), places[b]) - places.begin());
    if (a == b) continue;
    const std::string gpu = places[b].substr(places[b].rfind(' ') + 1);
    fail_together<UserError>(host_, "ranks " + std::to_string(a) + " and " + std::to_string(b) +
                                        " have the same GPU (" + gpu + "), and NCCL wants one for each rank: start " +
                                        "no more ranks than there are GPUs, or set device.communicator to " +
                                        "\"staged\", which goes through host memory");
  }
}

void NcclChannels::connect() {
  // An id for each communicator, made by rank 0.
  std::array<ncclUniqueId, 2> ids{};
  all_or_none(host_, [&] {
    if (host_.rank() != 0) return;
    for (ncclUniqueId& id : ids) {
      if (const ncclResult_t result = nccl_.get_unique_id(&id); result != ncclSuccess)
        throw UserError(text_of(result, "ncclGetUniqueId"));
    }
  });
  host_.broadcast(std::as_writable_bytes(std::span(ids)), 0);
  host_.barrier();  // a broadcast may end lazily, and NCCL makes no progress for MPI while it waits
  device_.make_current();
  constexpr std::array names = {"zerotrain gathers", "zerotrain reductions"};
  std::unique_lock lock(mutex_);
  for (std::size_t i = 0; i < comms_.size(); ++i) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    config.commName = names[i];
    last_ = "the connection of the ranks";
    const ncclResult_t result = nccl_.init(&comms_[i], host_.size(), ids[i], host_.rank(), &config);
    if (comms_[i] == nullptr) fail(result, "ncclCommInitRankConfig", lock);
    settle(comms_[i], result, lock);
  }
}

ncclResult_t NcclChannels::state_of(ncclComm_t comm) const {
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = nccl_.async_error(comm, &state);
  return asked == ncclSuccess ? state : asked;
}

// Waits until NCCL has done what was asked of it, which may need the peers.
void NcclChannels::settle(ncclComm_t comm, ncclResult_t result, std::unique_lock<std::mutex>& lock) {
  if (result != ncclSuccess && result != ncclInProgress) fail(result, last_, lock);
  const auto start = Clock::now();
  auto next_look = start + between_looks;
  for (result = state_of(comm); result == ncclInProgress; result = state_of(comm)) {
    const auto now = Clock::now();
    if (now > next_look) {
      look(lock);
      next_look = now + between_looks;
    }
    if (now - start > 200us) std::this_thread::sleep_for(20us);
  }
  if (result != ncclSuccess) fail(result, last_, lock);
}

void NcclChannels::group(Channel channel, const std::string& what, const Calls& calls) {
  std::unique_lock lock(mutex_);
  throw_if_ended(lock);
  const ncclComm_t comm = comms_[channel];
  if (const ncclResult_t before = state_of(comm); before != ncclSuccess) fail(before, last_, lock);
  last_ = "collective no. " + std::to_string(++number_) + " (" + what + ")";
  device_.make_current();
  ncclResult_t result = nccl_.group_start();
  if (result == ncclSuccess) {
    result = calls(comm);
    // The group is closed whatever has happened within.
    const ncclResult_t closed = nccl_.group_end();
    if (result == ncclSuccess || result == ncclInProgress) result = closed;
  }
  settle(comm, result, lock);
}

std::string NcclChannels::text_of(ncclResult_t result, const std::string& where) const {
  std::string text =
      "NCCL failed on rank " + std::to_string(host_.rank()) + " in " + where + ": " + nccl_.error_string(result);
  const char* details = nccl_.last_error(nullptr);
  if (details != nullptr && *details != '\0') text += " (" + std::string(details) + ")";
  return text + ". NCCL_DEBUG=WARN makes NCCL say more";
}

void NcclChannels::fail(ncclResult_t result, const std::string& where, std::unique_lock<std::mutex>& lock) {
  const std::string text = text_of(result, where);
  // A peer that died is often seen first as an error of the network: who it was is the better message.
  for (const auto until = Clock::now() + (may_be_a_peer(result) ? options_.grace : 0ms); Clock::now() < until;) {
    try {
      host_.check_peers();
    } catch (const PeerFailed&) {
      end(std::current_exception(), lock);
    }
    std::this_thread::sleep_for(10ms);
  }
  end(std::make_exception_ptr(RunError(text)), lock);
}

// The GPU must come to rest before anything is destroyed: CUDA waits for it when memory is given back.
void NcclChannels::end(std::exception_ptr why, std::unique_lock<std::mutex>& lock) {
  ended_ = std::move(why);
  abort_all(lock);
  throw_if_ended(lock);
  std::terminate();
}

void NcclChannels::throw_if_ended(std::unique_lock<std::mutex>& lock) {
  if (!ended_) return;
  told_ = true;
  if (comms_[0] != nullptr || comms_[1] != nullptr) abort_all(lock);
  std::rethrow_exception(ended_);
}

void NcclChannels::check() {
  std::unique_lock lock(mutex_);
  throw_if_ended(lock);
  for (const ncclComm_t comm : comms_) {
    if (comm == nullptr) continue;
    if (const ncclResult_t state = state_of(comm); state != ncclSuccess) fail(state, "or before " + last_, lock);
  }
}

void NcclChannels::look() {
  std::unique_lock lock(mutex_);
  look(lock);
}

void NcclChannels::look(std::unique_lock<std::mutex>& lock) {
  throw_if_ended(lock);
  try {
    host_.check_peers();
  } catch (const PeerFailed&) {
    end(std::current_exception(), lock);
  }
  for (const ncclComm_t comm : comms_) {
    if (comm == nullptr) continue;
    const ncclResult_t state = state_of(comm);
    if (state != ncclSuccess && state != ncclInProgress) fail(state, "or before " + last_, lock);
  }
  look_at_patience(lock);
}

// A wait is a sequence of looks without a new collective and without a long pause.
void NcclChannels::look_at_patience(std::unique_lock<std::mutex>& lock) {
  const auto now = Clock::now();
  if (waits_at_number_ != number_ || now - looked_ > 1s) {
    waits_at_number_ = number_;
    waits_since_ = now;
  }
  looked_ = now;
  if (options_.patience.count() == 0 || now - waits_since_ < options_.patience) return;
  end(std::make_exception_ptr(RunError(
          "rank " + std::to_string(host_.rank()) + " has waited " + std::to_string(options_.patience.count()) +
          " s for its GPU; it last called " + last_ +
          ". Either a peer does not take part in it (what the other ranks say tells which collective they are in), or "
          "it takes longer than ZEROTRAIN_NCCL_PATIENCE (seconds; 0: without end) allows")),
      lock);
}

void NcclChannels::finish() {
  for (int stream = 0; stream < stream_count; ++stream) device_.synchronize(static_cast<Stream>(stream));
  check();
  {
    std::unique_lock lock(mutex_);
    last_ = "the end of the connection";
    for (ncclComm_t& comm : comms_) {
      settle(comm, nccl_.finalize(comm), lock);
      const ncclResult_t result = nccl_.destroy(std::exchange(comm, nullptr));
      if (result != ncclSuccess && result != ncclInProgress) fail(result, "ncclCommDestroy", lock);
    }
  }
  host_.barrier();  // nobody leaves while others still look whether all are there
}

NcclChannels::Enrolled NcclChannels::enrol(void* memory, std::int64_t bytes) {
  Enrolled enrolled;
  std::unique_lock lock(mutex_);
  throw_if_ended(lock);
  for (std::size_t i = 0; i < comms_.size(); ++i) {
    const ncclResult_t result = nccl_.enroll(comms_[i], memory, static_cast<std::size_t>(bytes), &enrolled.handles[i]);
    if (result != ncclSuccess) fail(result, "ncclCommRegister", lock);
  }
  return enrolled;
}

void NcclChannels::strike_off(const Enrolled& enrolled) noexcept {
  const std::scoped_lock lock(mutex_);
  for (std::size_t i = 0; i < comms_.size(); ++i) {
    if (comms_[i] != nullptr && enrolled.handles[i] != nullptr)
      static_cast<void>(nccl_.strike_off(comms_[i], enrolled.handles[i]));
  }
}

}  // namespace zt::cuda
