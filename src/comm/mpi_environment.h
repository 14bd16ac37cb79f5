// What launchers of ranks leave in the environment of a process.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

namespace zt {

struct LaunchedWorld {
  enum class Kind : std::uint8_t { none, open_mpi, pmi, slurm };
  Kind kind = Kind::none;
  int size = 1;
  std::string variable;  // that said so
};

inline int environment_number(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? 0 : std::atoi(text);
}

// Open MPI's mpirun, and srun with PMIx, which Open MPI understands, are told from Hydra (MPICH, Intel MPI) and from
// srun without; within a batch allocation a program that no srun started is alone.
inline LaunchedWorld world_of_environment() {
  using Kind = LaunchedWorld::Kind;
  if (const int size = environment_number("OMPI_COMM_WORLD_SIZE"); size > 0) {
    return {Kind::open_mpi, size, "OMPI_COMM_WORLD_SIZE"};
  }
  const bool in_step = std::getenv("SLURM_PROCID") != nullptr && std::getenv("SLURM_STEP_ID") != nullptr;
  const int step_tasks = in_step ? environment_number("SLURM_STEP_NUM_TASKS") : 0;
  if (std::getenv("PMIX_RANK") != nullptr) return {Kind::open_mpi, step_tasks > 0 ? step_tasks : 1, "PMIX_RANK"};
  for (const char* name : {"PMI_SIZE", "MPI_LOCALNRANKS"}) {
    if (const int size = environment_number(name); size > 0) return {Kind::pmi, size, name};
  }
  if (step_tasks > 0) return {Kind::slurm, step_tasks, "SLURM_STEP_NUM_TASKS"};
  return {};
}

}  // namespace zt
