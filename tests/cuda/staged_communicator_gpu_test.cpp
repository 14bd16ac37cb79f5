// Ranks that share one GPU, through host memory; and NCCL with one rank, which needs no second GPU.
#include "collectives_transcript.h"
#include "comm/staged.h"
#include "comm/threads.h"
#include "cuda/operation_check.h"

namespace zt::test {

TEST_CASE("ranks that share a GPU get the bits of ranks on CPUs") {
  for (const int ranks : {1, 2, 3, 4}) {
    CAPTURE(ranks);
    REQUIRE_NOTHROW(run_ranks_as_threads(ranks, 0, [&](Communicator& host) {
      cpu::CpuDevice cpu(1);
      const auto expected = transcript_of(host, cpu, {0, 1, 300});
      const auto gpu = open_gpu();
      StagedCommunicator staged(host, {.chunk_bytes = 256, .all_chunks_bytes = 1 << 20});
      require(transcript_of(staged, *gpu, {0, 1, 300}) == expected, "bits in many chunks");
      StagedCommunicator whole(host);
      require(transcript_of(whole, *gpu, {300}) == transcript_of(host, cpu, {300}), "bits in one chunk");
    }));
  }
}

TEST_CASE("staged collectives on a GPU are counted once, as the dry run counts them, and so is its memory") {
  REQUIRE_NOTHROW(run_ranks_as_threads(3, 0, [&](Communicator& host) {
    const auto gpu = open_gpu();
    StagedCommunicator staged(host);
    check_counts_of_dry_run(staged, *gpu, 96);
    CountingCommunicator dry(host.rank(), 3, staged.ranks_on_node());
    PlainDevice dry_device;
    const auto real = staged.allocate(*gpu, 999, MemoryCategory::gradients, "g");
    const auto counted = dry.allocate(dry_device, 999, MemoryCategory::gradients, "g");
    require(gpu->ledger().buffers() == dry_device.ledger().buffers(), "memory");
  }));
}

TEST_CASE("one rank over NCCL computes what one rank on a CPU does") {
  if (zerotrain_gpu_backend()->survey().nccl_version.empty()) return;  // no NCCL on this machine
  for (const bool fast : {false, true}) {
    REQUIRE_NOTHROW(run_ranks_as_threads(1, 0, [&](Communicator& host) {
      cpu::CpuDevice cpu(1);
      const auto gpu = open_gpu();
      const auto nccl = zerotrain_gpu_backend()->nccl(host, *gpu, fast);
      require(nccl->description().rfind("1 rank over NCCL 2.", 0) == 0, "description");
      require(transcript_of(*nccl, *gpu, {0, 1, 300}) == transcript_of(host, cpu, {0, 1, 300}), "bits");
      check_counts_of_dry_run(*nccl, *gpu, 96);
    }));
  }
}

}  // namespace zt::test
