// The communicator that goes through host memory, with devices whose memory is the host's. On GPUs:
// tests/cuda/staged_communicator_gpu_test.cpp.
#include <mutex>

#include "catch_compat.h"
#include "collectives_transcript.h"
#include "comm/staged.h"
#include "comm/threads.h"
#include "core/errors.h"
#include "device/cpu/cpu_device.h"
#include "device/lazy_device.h"

using namespace zt;
using namespace zt::test;

namespace {

constexpr StagedOptions small_chunks{.chunk_bytes = 256, .all_chunks_bytes = 1000};

}  // namespace

TEST_CASE("staged collectives gather and reduce in rank order, in one chunk and in many") {
  for (const int ranks : {1, 2, 3, 4}) {
    for (const int ranks_per_node : {0, 1}) {
      CAPTURE(ranks, ranks_per_node);
      REQUIRE_NOTHROW(run_ranks_as_threads(ranks, ranks_per_node, [&](Communicator& host) {
        PlainDevice device;
        StagedCommunicator whole(host);
        check_communicator(whole, device, {0, 1, 5, 3000});
        StagedCommunicator cut(host, small_chunks);
        check_communicator(cut, device, {0, 1, 64, 1001});
        require(device.ledger().total() == 0, "all given back");
      }));
    }
  }
}

TEST_CASE("staged collectives keep a stream's order on devices that run late") {
  for (const int ranks : {1, 3}) {
    CAPTURE(ranks);
    REQUIRE_NOTHROW(run_ranks_as_threads(ranks, 0, [&](Communicator& host) {
      cpu::CpuDevice cpu(1);
      const auto expected = transcript_of(host, cpu, {1, 100});
      for (const LazyDevice::Order order : {LazyDevice::Order::all_late, LazyDevice::Order::compute_late}) {
        LazyDevice lazy(cpu, order);
        StagedCommunicator staged(host, small_chunks);
        require(transcript_of(staged, lazy, {1, 100}) == expected, "the same bits as without staging");
      }
    }));
  }
}

TEST_CASE("staged collectives are counted once, as the dry run counts them") {
  for (const int ranks : {1, 2, 4}) {
    CAPTURE(ranks);
    REQUIRE_NOTHROW(run_ranks_as_threads(ranks, 0, [&](Communicator& host) {
      StagedCommunicator staged(host, small_chunks);
      check_counts(staged, 96);
      check_counts_of_dry_run(staged, 96);
    }));
  }
}

TEST_CASE("staging takes host memory within its bound, and none of the device") {
  run_ranks_as_threads(2, 0, [](Communicator& host) {
    StagedCommunicator staged(host);
    require(staged.host_bytes() == 0, "nothing before there is a buffer");
    cpu::CpuDevice device(1);
    {
      auto small = staged.allocate(device, 1000, MemoryCategory::parameters, "small");
      require(staged.host_bytes() == 4 * 2 * 1024 + 128, "no more than the buffers need");
      auto large = staged.allocate(device, 100 << 20, MemoryCategory::parameters, "large");
      require(staged.host_bytes() == staged.largest_host_bytes(), "grown to the bound");
      require(staged.largest_host_bytes() == 4 * 2 * (8 << 20) + 128, "8 MiB a chunk");
      require(device.ledger().total() == 1000 + (100 << 20), "the ledger has the buffers alone");
      require(small->bytes() == 1000, "bytes");
    }
    require(device.ledger().total() == 0, "given back");
    require(staged.description() == "2 ranks, staged through host memory (at most 64 MiB a rank; 2 ranks as threads)",
            "description");
  });
}

TEST_CASE("ranks that call different staged collectives all end with a message") {
  std::mutex mutex;
  std::vector<std::string> heard;
  std::string message;
  try {
    run_ranks_as_threads(3, 0, [&](Communicator& host) {
      StagedCommunicator staged(host);
      PlainDevice device;
      auto buffer = staged.allocate(device, 300, MemoryCategory::parameters, "p");
      const Buffer out = device.allocate(300, MemoryCategory::parameters, "out");
      const std::int64_t slice = host.rank() == 2 ? 6 : 5;
      try {
        staged.all_gather(device, Stream::gather, {buffer.get(), 0, 0}, {out.data(), 3 * slice, DType::f32});
      } catch (const PeerFailed& error) {
        const std::scoped_lock lock(mutex);
        heard.emplace_back(error.what());
        throw;
      }
    });
  } catch (const RunError& error) {
    message = error.what();
  }
  CHECK(message ==
        "ranks call different collectives (no. 1): rank 0 calls all_gather of 5 fp32 elements a slice; rank 2 calls "
        "all_gather of 6 fp32 elements a slice");
  CHECK(heard == std::vector<std::string>(2, message));
}

TEST_CASE("ranks that count blocks otherwise all end with a message") {
  std::string message;
  try {
    run_ranks_as_threads(3, 0, [](Communicator& host) {
      StagedCommunicator staged(host);
      PlainDevice device;
      auto source = staged.allocate(device, 300, MemoryCategory::optimizer, "blocks");
      const Buffer out = device.allocate(300, MemoryCategory::optimizer, "out");
      // The largest and the sum are the same.
      const std::vector<std::int64_t> counts =
          host.rank() == 1 ? std::vector<std::int64_t>{9, 4, 0} : std::vector<std::int64_t>{9, 0, 4};
      staged.all_to_all(device, Stream::reduce, {source.get(), 0, 40}, {counts, true}, out.view(DType::f32));
    });
  } catch (const RunError& error) {
    message = error.what();
  }
  CHECK(message.find("ranks call different collectives (no. 1): rank 0 calls all_to_all to owners of at most 9 fp32 "
                     "elements a block (digest of the counts: ") == 0);
  CHECK(message.find("; rank 1 calls all_to_all to owners of at most 9 fp32") != std::string::npos);
  CHECK(message.find("; rank 2") == std::string::npos);
}

TEST_CASE("peers are asked for without waiting: a rank that failed, a rank that left") {
  std::string message;
  try {
    run_ranks_as_threads(3, 0, [&](Communicator& host) {
      StagedCommunicator staged(host);
      staged.check_peers();
      host.barrier();
      if (host.rank() == 1) throw RunError("disk is full");
      for (;;) staged.check_peers();
    });
  } catch (const RunError& error) {
    message = error.what();
  }
  CHECK(message == "disk is full");
  int lost = -1;
  try {
    run_ranks_as_threads(2, 1, [&](Communicator& host) {
      host.barrier();
      while (host.rank() == 0) host.check_peers();
    });
  } catch (const PeerFailed& error) {
    lost = error.rank;
  }
  CHECK(lost == 1);
}
