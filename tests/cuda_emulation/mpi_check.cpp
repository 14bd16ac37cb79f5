// NCCL's ranks as processes that MPI has started: the unique id goes over MPI, a rank's device is its number on the
// node. Ends with 0 if an all-reduce and a ring of sends give what they must.
#include <cuda_runtime_api.h>
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <nccl.h>

#include <cstdio>
#include <vector>

namespace {

int check(int rank, int ranks, ncclComm_t comm) {
  constexpr std::size_t count = 100000;
  std::vector<float> values(count, static_cast<float>(rank + 1));
  void* memory = nullptr;
  cudaStream_t stream = nullptr;
  if (cudaMalloc(&memory, 2 * count * sizeof(float)) != cudaSuccess || cudaStreamCreate(&stream) != cudaSuccess)
    return 1;
  auto* sums = static_cast<float*>(memory);
  float* from_left = sums + count;
  cudaMemcpy(sums, values.data(), count * sizeof(float), cudaMemcpyHostToDevice);
  ncclGroupStart();
  ncclSend(sums, count, ncclFloat32, (rank + 1) % ranks, comm, stream);
  ncclRecv(from_left, count, ncclFloat32, (rank + ranks - 1) % ranks, comm, stream);
  ncclGroupEnd();
  ncclAllReduce(sums, sums, count, ncclFloat32, ncclSum, comm, stream);
  if (cudaStreamSynchronize(stream) != cudaSuccess) return 1;
  int wrong = 0;
  cudaMemcpy(values.data(), sums, count * sizeof(float), cudaMemcpyDeviceToHost);
  for (const float value : values) wrong += value == static_cast<float>(ranks * (ranks + 1) / 2) ? 0 : 1;
  cudaMemcpy(values.data(), from_left, count * sizeof(float), cudaMemcpyDeviceToHost);
  for (const float value : values) wrong += value == static_cast<float>((rank + ranks - 1) % ranks + 1) ? 0 : 1;
  cudaStreamDestroy(stream);
  cudaFree(memory);
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm node = MPI_COMM_NULL;
  int device = 0;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &device);
  MPI_Comm_free(&node);
  ncclUniqueId id = {};
  if (rank == 0) ncclGetUniqueId(&id);
  MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
  ncclComm_t comm = nullptr;
  const bool ready = cudaSetDevice(device) == cudaSuccess && ncclCommInitRank(&comm, ranks, id, rank) == ncclSuccess;
  int wrong = ready ? check(rank, ranks, comm) : 1;
  if (wrong != 0) std::fprintf(stderr, "rank %d: %d wrong values\n", rank, wrong);
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (ready) ncclCommDestroy(comm);
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
