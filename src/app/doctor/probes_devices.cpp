#include "app/doctor/probes.h"

namespace zt::probes {

namespace {

bool is_open_mpi(const std::string& text) {
  return text.find("Open MPI") != std::string::npos || text.find("OpenRTE") != std::string::npos;
}

std::string one_line(std::string text) {
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  return text;
}

}  // namespace

bool has_nvidia_card(const Machine& machine) {
  const std::string folder = "/sys/bus/pci/devices/";
  for (const std::string& name : machine.entries(folder)) {
    const bool is_display = machine.line(folder + name + "/class").value_or("").starts_with("0x03");
    if (is_display && machine.line(folder + name + "/vendor") == "0x10de") return true;
  }
  return false;
}

Finding probe_mpi(const Machine& machine) {
  Finding finding{.subject = "MPI", .found = "", .advice = ""};
  if (machine.mpi_is_built) {
    finding.found = "built in: " + (machine.mpi_library.empty() ? "no version" : machine.mpi_library);
    return finding;
  }
  finding.found = "not built in; local ranks (--ranks N) need none";
  finding.verdict = machine.world.size > 1 ? Verdict::problem : Verdict::note;
  finding.advice =
      "for several hosts install an MPI (Debian: apt-get install libopenmpi-dev openmpi-bin) and build "
      "again with -DZEROTRAIN_MPI=ON";
  return finding;
}

Finding probe_launcher(const Machine& machine) {
  Finding finding{.subject = "mpirun", .found = machine.version_line("mpirun"), .advice = ""};
  if (finding.found.empty()) {
    finding.found = "none in PATH; local ranks (--ranks N) need none";
    if (machine.mpi_is_built) {
      finding.verdict = Verdict::note;
      finding.advice = "for several hosts: apt-get install openmpi-bin";
    }
    return finding;
  }
  if (machine.mpi_is_built && is_open_mpi(machine.mpi_library) != is_open_mpi(finding.found)) {
    finding.verdict = machine.world.size > 1 ? Verdict::problem : Verdict::note;
    finding.found += ", which is of another MPI than zerotrain";
    finding.advice = "take the mpirun of " + machine.mpi_library +
                     " (its folder first in PATH), or build zerotrain with "
                     "the MPI that mpirun is of";
  } else if (machine.is_root_user && !machine.allows_root && is_open_mpi(finding.found) && machine.world.size < 2) {
    finding.verdict = Verdict::note;
    finding.advice = "it refuses root: train as another user, or mpirun --allow-run-as-root";
  }
  return finding;
}

std::vector<Finding> probe_gpus(const Machine& machine) {
  const GpuFindings gpus = machine.gpus();
  const bool has_card = has_nvidia_card(machine);
  std::vector<Finding> findings;
  Finding driver{.subject = "driver", .found = "", .advice = ""};
  const std::string version = machine.line("/proc/driver/nvidia/version").value_or("");
  if (!gpus.has_driver) {
    driver.found = has_card || !version.empty() ? "an NVIDIA GPU is there, but not its driver's library (libcuda.so.1)"
                                                : "no NVIDIA GPU and no driver: runs compute on the CPU";
    if (has_card || !version.empty()) {
      driver.verdict = Verdict::note;
      driver.advice = version.empty() ? "install NVIDIA's driver, release 580 or later, which CUDA 13 needs"
                                      : "this looks like a container: start it with docker --gpus all";
    }
    return {driver};
  }
  driver.found = version.empty() ? "libcuda.so.1 is installed" : version;
  findings.push_back(driver);

  Finding gpu{.subject = "GPU", .found = "", .advice = ""};
  if (!gpus.backend_problem.empty() || !gpus.problem.empty()) {
    gpu.verdict = Verdict::note;
    gpu.found = "cannot be used";
    gpu.advice = one_line(gpus.backend_problem.empty() ? gpus.problem : gpus.backend_problem);
    findings.push_back(gpu);
    return findings;
  }
  gpu.found = gpus.versions;
  for (const std::string& device : gpus.devices) gpu.found += "; " + device;
  findings.push_back(gpu);

  Finding nccl{.subject = "NCCL", .found = "NCCL " + gpus.nccl, .advice = ""};
  if (gpus.nccl.empty()) {
    nccl.verdict = gpus.devices.size() > 1 ? Verdict::note : Verdict::ok;
    nccl.found = "none; ranks on several GPUs go through the host's memory, slowly";
    nccl.advice = one_line(gpus.nccl_problem);
  }
  findings.push_back(nccl);
  return findings;
}

}  // namespace zt::probes
