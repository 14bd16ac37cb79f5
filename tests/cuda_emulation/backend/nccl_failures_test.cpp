// What happens to ranks over NCCL when something fails: a message on every rank, within seconds, and no hang.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

#include "catch_compat.h"
#include "comm/processes.h"
#include "communicator_checks.h"
#include "core/errors.h"
#include "cuda_emulation/death.h"
#include "nccl_ranks.h"

using namespace zt;
using namespace zt::test;
using zt::emulation::Configured;
using zt::emulation::Findings;
using zt::emulation::Streams;

namespace {

// What each rank was told, and what came out of the world.
struct Outcome {
  std::map<int, std::string> run_errors, peers_failed;  // by rank
  std::map<int, int> lost;
  std::string message;
  double seconds = 0;
};

Outcome outcome_of(int ranks, const std::function<void(NcclRank&)>& body) {
  Outcome outcome;
  std::mutex mutex;
  const Stopwatch watch;
  try {
    run_nccl_ranks(ranks, hasty(), [&](NcclRank& self) {
      const int rank = self.host.rank();
      try {
        body(self);
      } catch (const PeerFailed& error) {
        const std::scoped_lock lock(mutex);
        outcome.peers_failed[rank] = error.what();
        outcome.lost[rank] = error.rank;
        throw;
      } catch (const RunError& error) {
        const std::scoped_lock lock(mutex);
        outcome.run_errors[rank] = error.what();
        throw;
      }
    });
  } catch (const std::exception& error) {
    outcome.message = error.what();
  }
  outcome.seconds = watch.seconds();
  return outcome;
}

// A rank's buffers, and one gather of them.
struct Gathering {
  explicit Gathering(NcclRank& of)
      : self(of),
        own(self.nccl.allocate(self.device, 400, MemoryCategory::parameters, "own")),
        all(self.device.allocate(400 * self.host.size(), MemoryCategory::communication, "all")) {}
  void run(std::int64_t slice = 100, Stream stream = Stream::gather) const {
    self.nccl.all_gather(self.device, stream, {own.get(), 0, 0}, {all.data(), slice * self.host.size(), DType::f32});
  }
  NcclRank& self;
  SharedBufferPtr own;
  Buffer all;
};

constexpr double soon = 8;  // seconds

}  // namespace

TEST_CASE("ranks that call different collectives over NCCL all end with a message") {
  for (const Streams streams : {Streams::eager, Streams::lazy}) {
    CAPTURE(static_cast<int>(streams));
    const Configured configured(gpus(3, streams));
    const Findings findings;
    const Outcome outcome = outcome_of(3, [](NcclRank& self) {
      const Gathering gathering(self);
      gathering.run();
      gathering.run(self.host.rank() == 2 ? 60 : 50);
      self.device.synchronize(Stream::gather);
      self.nccl.barrier();
    });
    INFO(outcome.message);
    CHECK(findings.all().size() == 1);
    CHECK(outcome.run_errors.size() + outcome.peers_failed.size() == 3);
    CHECK(outcome.message.find("ranks call different collectives: rank 0 calls ncclAllGather(count 200, uint8") !=
          std::string::npos);
    CHECK(outcome.message.find("collective no. ") != std::string::npos);
    // Whichever rank is the first to say so.
    CHECK(outcome.message.find(" bytes a slice on the gather stream): invalid usage") != std::string::npos);
    CHECK(outcome.seconds < soon);
  }
}

TEST_CASE("a collective that fails on one rank ends all of them, with rank and number") {
  const Configured configured(gpus(3));
  const Outcome outcome = outcome_of(3, [](NcclRank& self) {
    const Gathering gathering(self);
    if (self.host.rank() == 0) emulation::fail_nth(emulation::Call::collective, 2, 1);
    self.host.barrier();
    for (int i = 0; i < 5; ++i) {
      gathering.run();
      self.device.synchronize(Stream::gather);
    }
  });
  CHECK(outcome.message ==
        "NCCL failed on rank 1 in collective no. 6 (all_gather of 400 bytes a slice on the gather stream): unhandled "
        "cuda error (made to fail by the test). NCCL_DEBUG=WARN makes NCCL say more");
  REQUIRE(outcome.run_errors.size() == 1);
  CHECK(outcome.run_errors.begin()->first == 1);
  REQUIRE(outcome.lost.size() == 2);
  for (const auto& [rank, lost] : outcome.lost) CHECK(lost == 1);
  CHECK(outcome.seconds < soon);
}

TEST_CASE("when a rank fails, those that wait for its part of a collective learn of it") {
  for (const Streams streams : {Streams::eager, Streams::lazy, Streams::lazy_shuffled}) {
    for (const bool all_streams : {false, true}) {
      CAPTURE(static_cast<int>(streams), all_streams);
      const Configured configured(gpus(3, streams));
      const Outcome outcome = outcome_of(3, [&](NcclRank& self) {
        const Gathering gathering(self);
        gathering.run();
        if (self.host.rank() == 2) throw RunError("disk is full");
        gathering.run();
        if (all_streams) gathering.run(50, Stream::reduce);
        self.device.synchronize(Stream::gather);
        for (;;) self.nccl.barrier();
      });
      CHECK(outcome.message == "disk is full");
      REQUIRE(outcome.lost.size() == 2);
      for (const auto& [rank, lost] : outcome.lost) CHECK(lost == 2);
      CHECK(outcome.seconds < soon);
    }
  }
}

TEST_CASE("a wait without progress ends after the patience, with what was called last") {
  const Configured configured(gpus(2, Streams::lazy));
  cuda::NcclOptions options = hasty();
  options.patience = std::chrono::seconds(1);
  std::string message;
  try {
    run_nccl_ranks(2, options, [](NcclRank& self) {
      const Gathering gathering(self);
      if (self.host.rank() == 0) gathering.run();
      if (self.host.rank() == 1) {
        std::this_thread::sleep_for(std::chrono::seconds(2));  // busy with something else
        for (;;) self.host.barrier();
      }
      self.device.synchronize(Stream::gather);
    });
  } catch (const RunError& error) {
    message = error.what();
  }
  CHECK(message.find("rank 0 has waited 1 s for its GPU; it last called collective no. 5 (all_gather of 400 bytes a "
                     "slice on the gather stream)") == 0);
}

TEST_CASE("ranks with one GPU between them are refused with a way out, and all end") {
  const Configured configured(gpus(2));
  std::atomic<int> told = 0;
  std::string message;
  try {
    run_ranks_as_threads(3, 0, [&](Communicator& host) {
      cuda::CudaDevice device(host.rank() == 0 ? 1 : 0, {});
      try {
        cuda::NcclCommunicator nccl(host, device, hasty());
      } catch (const PeerFailed&) {
        ++told;
        throw;
      }
    });
  } catch (const UserError& error) {
    message = error.what();
  }
  CHECK(told == 2);
  CHECK(message.find("ranks 1 and 2 have the same GPU (") == 0);
  CHECK(message.find("set device.communicator to \"staged\"") != std::string::npos);
}

TEST_CASE("a rank that fails while NCCL connects the others does not leave them waiting") {
  const Configured configured(gpus(3));
  std::string message;
  const Stopwatch watch;
  try {
    run_ranks_as_threads(3, 0, [&](Communicator& host) {
      cuda::CudaDevice device(host.rank(), {});
      if (host.rank() != 2) cuda::NcclCommunicator(host, device, hasty());
      // What the others do together before NCCL connects them.
      host.all_gather_strings("");
      host.all_gather_strings("a GPU of its own");
      host.all_gather_strings("");
      std::array<std::byte, 2 * sizeof(ncclUniqueId)> ids{};
      host.broadcast(ids, 0);
      host.barrier();
      throw RunError("this rank has seen enough");
    });
  } catch (const RunError& error) {
    message = error.what();
  }
  CHECK(message == "this rank has seen enough");
  CHECK(watch.seconds() < soon);
}

namespace {

// Three processes, of which the second is killed while the others wait for its part of a gather, by `wait`. How each
// has ended: 0 if it was told that a peer was lost, less for a signal; and which peer the first to notice has lost (for
// the last one it may be the first one, which has ended, too).
struct Endings {
  std::vector<int> of_ranks;
  int lost = -1;
};
Endings endings_of_processes(const std::function<void(NcclRank&)>& wait) {
  ProcessGroup group(3, 0);
  std::vector<pid_t> children;
  for (int rank = 0; rank < 3; ++rank) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      int code = 1;
      try {
        const auto host = group.join(rank);
        cuda::CudaDevice device(rank, {});
        cuda::NcclCommunicator nccl(*host, device, hasty());
        NcclRank self{*host, device, nccl};
        const Gathering gathering(self);
        gathering.run();
        device.synchronize(Stream::gather);
        host->barrier();
        if (rank == 1) raise(SIGKILL);
        gathering.run();
        wait(self);
      } catch (const PeerFailed& error) {
        group.block().record_notice({error.rank, 1, error.what()});
        code = 0;
      } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        code = 3;
      }
      _exit(code);
    }
    children.push_back(child);
  }
  group.forked();
  Endings endings;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    endings.of_ranks.push_back(WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status));
  }
  if (const auto notice = group.block().notice()) endings.lost = notice->rank;
  return endings;
}

}  // namespace

TEST_CASE("a process that is killed is noticed by ranks that wait for their GPUs") {
  for (const Streams streams : {Streams::eager, Streams::lazy}) {
    const Configured configured(gpus(3, streams));
    const Stopwatch watch;
    const auto wait = [](NcclRank& self) { self.device.synchronize(Stream::gather); };
    const Endings endings = endings_of_processes(wait);
    CHECK(endings.of_ranks == std::vector<int>{0, -SIGKILL, 0});
    CHECK(endings.lost == 1);
    CHECK(watch.seconds() < soon);
  }
}

// As a launch waits when its queue is full, or the freeing of memory: nothing looks around there.
TEST_CASE("a host that is stuck in a call of CUDA when a process is killed is let go") {
  const Configured configured(gpus(3, Streams::lazy));
  const Stopwatch watch;
  const auto wait = [](NcclRank& self) {
    cudaStreamSynchronize(self.device.native(Stream::gather));
    self.nccl.check_peers();
  };
  const Endings endings = endings_of_processes(wait);
  CHECK(endings.of_ranks == std::vector<int>{0, -SIGKILL, 0});
  CHECK(endings.lost == 1);
  CHECK(watch.seconds() < soon);
}
