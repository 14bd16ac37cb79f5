// What launchers of ranks leave in the environment of a process.
#pragma once

#include <cstdint>
#include <string>

namespace zt {

struct LaunchedWorld {
  enum class Kind : std::uint8_t { none, open_mpi, pmi, slurm };
  Kind kind = Kind::none;
  int size = 1;
  int rank = 0;
  std::string variable;  // that said so
};

// Open MPI's mpirun, and srun with PMIx, which Open MPI understands, are told from Hydra (MPICH, Intel MPI) and from
// srun without; within a batch allocation a program that no srun started is alone.
LaunchedWorld world_of_environment();

}  // namespace zt
