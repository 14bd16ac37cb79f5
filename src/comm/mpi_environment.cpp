#include "comm/mpi_environment.h"

#include <chrono>
#include <cstdlib>
#include <initializer_list>
#include <thread>

#include "comm/mpi.h"

namespace zt {
namespace {

// The first of the variables that is set.
int number_of(std::initializer_list<const char*> names, int otherwise) {
  for (const char* name : names) {
    if (const char* text = std::getenv(name)) return std::atoi(text);
  }
  return otherwise;
}

}  // namespace

LaunchedWorld world_of_environment() {
  using Kind = LaunchedWorld::Kind;
  if (const int size = number_of({"OMPI_COMM_WORLD_SIZE"}, 0); size > 0) {
    return {Kind::open_mpi, size, number_of({"OMPI_COMM_WORLD_RANK"}, 0), "OMPI_COMM_WORLD_SIZE"};
  }
  const bool in_step = std::getenv("SLURM_PROCID") != nullptr && std::getenv("SLURM_STEP_ID") != nullptr;
  const int step_tasks = in_step ? number_of({"SLURM_STEP_NUM_TASKS"}, 0) : 0;
  const int step_rank = number_of({"SLURM_PROCID"}, 0);
  if (std::getenv("PMIX_RANK") != nullptr && step_tasks > 0) {
    return {Kind::open_mpi, step_tasks, step_rank, "SLURM_STEP_NUM_TASKS"};
  }
  for (const char* name : {"PMI_SIZE", "MPI_LOCALNRANKS"}) {
    if (const int size = number_of({name}, 0); size > 0) {
      return {Kind::pmi, size, number_of({"PMI_RANK", "MPI_LOCALRANKID"}, 0), name};
    }
  }
  if (step_tasks > 0) return {Kind::slurm, step_tasks, step_rank, "SLURM_STEP_NUM_TASKS"};
  return {};
}

bool launched_by_mpi() { return world_of_environment().size > 1; }

int launched_rank() { return world_of_environment().rank; }

bool prints_errors_before_mpi() {
  if (launched_rank() == 0) return true;
  std::this_thread::sleep_for(std::chrono::seconds(1));
  return false;
}

}  // namespace zt
