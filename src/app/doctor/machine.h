// What the probes of `doctor` ask of a machine: files below a root, and a few questions that files do not answer. Tests
// put made-up trees and answers in their place.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "comm/mpi_environment.h"
#include "device/cpu/instruction_set.h"

namespace zt::probes {

struct Space {
  std::int64_t total = 0, free = 0;  // bytes; free: for this user
};

// What is found of GPUs by those who open them in a run.
struct GpuFindings {
  bool has_driver = false;
  std::string backend_problem;       // why the backend cannot be opened; empty: it was
  std::string problem;               // why no GPU can be used
  std::vector<std::string> devices;  // "NVIDIA H200, 150 GB, sm_90"
  std::string versions;              // "CUDA 13.0, driver 13.0"
  std::string nccl, nccl_problem;    // its version, or why there is none
};

struct Machine {
  std::filesystem::path root = "/";  // of /proc, /sys, /dev
  std::string directory = ".";       // the current one
  bool is_root_user = false;
  LaunchedWorld world;       // what mpirun or srun has told
  int ranks_here = 1;        // of it, on this machine
  bool allows_root = false;  // OMPI_ALLOW_RUN_AS_ROOT
  bool mpi_is_built = false;
  std::string mpi_library;                     // "Open MPI v4.1.4 ..."; empty: none
  std::optional<cpu::InstructionLevel> level;  // what a run takes; none: as the flags of the processor say
  std::function<std::optional<Space>(const std::string& path)> space;
  std::function<bool(const std::string& directory)> can_write;
  std::function<std::string()> try_shared_memory;                       // empty: it works, else why not
  std::function<std::string(const std::string& program)> version_line;  // first line of PROGRAM --version; empty: none
  std::function<GpuFindings()> gpus;

  // Of a file below the root: its first line, all lines; nothing where it cannot be read.
  std::optional<std::string> line(const std::string& path) const;
  std::vector<std::string> lines(const std::string& path) const;
  std::optional<std::int64_t> number(const std::string& path) const;  // "max" and no number: nothing
  std::vector<std::string> entries(const std::string& folder) const;  // names, sorted
};

Machine this_machine();

// "0-3,8" as {0, 1, 2, 3, 8}; what is no such list gives what could be read of it.
std::set<int> cores_of_list(const std::string& text);

// What a control group grants this process, over all groups that it is within; nothing: no limit.
std::optional<double> quota_of_cores(const Machine& machine);
std::optional<std::int64_t> limit_of_processes(const Machine& machine);

}  // namespace zt::probes
