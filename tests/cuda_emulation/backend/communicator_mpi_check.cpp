// Run by mpirun: communicator_mpi_check RANKS_PER_NODE bits|fail. With bits it prints nothing and exits 0 if NCCL's and
// the staged communicator give what the one over MPI gives on CPUs; with fail the last rank fails while the others
// wait for their GPUs, and all must end.
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>

#include "collectives_transcript.h"
#include "comm/mpi.h"
#include "comm/staged.h"
#include "core/errors.h"
#include "device/cpu/cpu_device.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/nccl_communicator.h"
#include "device/cuda/nccl_entry.h"

namespace {

using namespace zt;
using namespace zt::test;

void compare_bits(Communicator& host) {
  cpu::CpuDevice cpu(1);
  const auto expected = transcript_of(host, cpu, {0, 1, 150});
  {
    cuda::CudaDevice own(host.rank(), {});
    const auto nccl = cuda::make_nccl_communicator(host, own, false);
    require(transcript_of(*nccl, own, {0, 1, 150}) == expected, "bits over NCCL");
    check_counts_of_dry_run(*nccl, own, 96);
  }
  cuda::CudaDevice device(0, {});
  StagedCommunicator staged(host, {.chunk_bytes = 256, .all_chunks_bytes = 4096});
  require(transcript_of(staged, device, {0, 1, 150}) == expected, "bits through host memory");
  check_counts_of_dry_run(staged, device, 96);
}

void fail_while_others_wait(Communicator& host) {
  cuda::CudaDevice device(host.rank(), {});
  const auto nccl = cuda::make_nccl_communicator(host, device, false);
  const auto own = nccl->allocate(device, 400, MemoryCategory::parameters, "own");
  const Buffer all = device.allocate(1200, MemoryCategory::communication, "all");
  host.barrier();
  if (host.rank() == host.size() - 1) throw RunError("asked to fail");
  nccl->all_gather(device, Stream::gather, {own.get(), 0, 0}, all.view(DType::f32));
  device.synchronize(Stream::gather);
  throw RunError("a gather without the last rank has come to an end");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: mpirun -n N communicator_mpi_check RANKS_PER_NODE bits|fail\n";
    return 2;
  }
  try {
    auto host = mpi_communicator(std::atoi(argv[1]), true);
    try {
      std::string(argv[2]) == "bits" ? compare_bits(*host) : fail_while_others_wait(*host);
    } catch (const PeerFailed&) {
      return 1;
    } catch (const std::exception& error) {
      host->abort(1, error.what());
      return 1;
    }
    host.reset();
    mpi_finalize();
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
  return 0;
}
