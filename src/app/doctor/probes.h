// What `doctor` looks at. Each probe is a function of the machine alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/doctor/machine.h"

namespace zt::probes {

enum class Verdict : std::uint8_t {
  ok,
  note,    // a run works, but could be faster, larger or safer
  problem  // would stop a run
};

struct Finding {
  std::string subject;
  Verdict verdict = Verdict::ok;
  std::string found;   // what there is
  std::string advice;  // what to do; empty: nothing
};

// probes_processor.cpp
Finding probe_cores(const Machine& machine);
Finding probe_quota(const Machine& machine);
Finding probe_hyperthreads(const Machine& machine);
Finding probe_nodes(const Machine& machine);  // NUMA
Finding probe_binding(const Machine& machine);
Finding probe_load(const Machine& machine);
Finding probe_instructions(const Machine& machine);
Finding probe_clock(const Machine& machine);
// probes_memory.cpp
Finding probe_memory(const Machine& machine);
Finding probe_huge_pages(const Machine& machine);
Finding probe_shared_memory(const Machine& machine);
Finding probe_shm(const Machine& machine);  // /dev/shm
// probes_devices.cpp
Finding probe_mpi(const Machine& machine);
Finding probe_launcher(const Machine& machine);           // mpirun
std::vector<Finding> probe_gpus(const Machine& machine);  // driver, GPU, NCCL
// probes_limits.cpp
std::vector<Finding> probe_limits(const Machine& machine);  // open files, processes, locked memory, core, file size
Finding probe_disk(const Machine& machine);

std::vector<Finding> examine(const Machine& machine);  // all of them

// Shared by them.
std::set<int> allowed_cores(const Machine& machine);
bool has_nvidia_card(const Machine& machine);
std::string count_text(std::int64_t count, const std::string& thing);

}  // namespace zt::probes
