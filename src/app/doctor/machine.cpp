#include "app/doctor/machine.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "comm/mpi.h"
#include "comm/node_windows.h"
#include "core/errors.h"
#include "core/number_text.h"
#include "device/gpu/backend.h"
#include "device/gpu/driver.h"

namespace zt::probes {

namespace {

namespace fs = std::filesystem;

std::optional<Space> space_of(const std::string& path) {
  struct statvfs room {};
  if (statvfs(path.c_str(), &room) != 0) return std::nullopt;
  const auto block = static_cast<std::int64_t>(room.f_frsize);
  return Space{static_cast<std::int64_t>(room.f_blocks) * block, static_cast<std::int64_t>(room.f_bavail) * block};
}

// As ranks of one machine share memory: made by one, opened by another through /proc.
std::string why_no_shared_memory() {
  constexpr std::int64_t bytes = 1 << 20;
  try {
    const Memfd made = create_memfd(bytes);
    const auto opened = open_memfd(getpid(), made.fd, bytes);
    close(made.fd);
    if (opened == nullptr) return "memory made by memfd_create cannot be opened again through /proc";
    *opened = std::byte{1};
    return *made.memory == std::byte{1} ? "" : "memory opened through /proc is not the memory that was made";
  } catch (const std::exception& error) {
    return error.what();
  }
}

std::string first_line_of_version(const std::string& program) {
  std::string line;
  std::FILE* const pipe = popen((program + " --version 2>/dev/null").c_str(), "re");
  if (pipe == nullptr) return line;
  std::array<char, 256> text{};
  if (std::fgets(text.data(), text.size(), pipe) != nullptr) line = text.data();
  while (std::fgets(text.data(), text.size(), pipe) != nullptr) continue;
  pclose(pipe);
  line.resize(std::min(line.size(), line.find('\n')));
  return line;
}

GpuFindings look_for_gpus() {
  GpuFindings findings;
  findings.has_driver = gpu_driver_is_installed();
  if (!findings.has_driver) return findings;
  GpuBackend* const backend = open_gpu_backend(&findings.backend_problem);
  if (backend == nullptr) return findings;
  const GpuSurvey survey = backend->survey();
  findings.problem = survey.problem;
  findings.versions = survey.versions;
  findings.nccl = survey.nccl_version;
  findings.nccl_problem = survey.nccl_problem;
  for (const GpuInfo& gpu : survey.devices) {
    findings.devices.push_back(gpu.name + ", " + bytes_in_words(gpu.memory) + ", sm_" + std::to_string(gpu.capability));
  }
  return findings;
}

// The folder of this process's group in a hierarchy, and all above it, up to its root. `controller` empty: version 2.
std::vector<std::string> groups_of(const Machine& machine, const std::string& controller) {
  const std::string base = "/sys/fs/cgroup" + (controller.empty() ? "" : "/" + controller);
  std::vector<std::string> groups;
  for (const std::string& line : machine.lines("/proc/self/cgroup")) {  // "4:memory:/a/b", "0::/a/b"
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string names = "," + line.substr(first + 1, second - first - 1) + ",";
    if (controller.empty() ? names != ",," : names.find("," + controller + ",") == std::string::npos) continue;
    for (std::string path = line.substr(second + 1); path.size() > 1; path.resize(path.rfind('/')))
      groups.push_back(base + path);
  }
  groups.push_back(base);  // within a container its own group is the root
  return groups;
}

void take_smaller(std::optional<double>& least, double value) { least = std::min(least.value_or(value), value); }

}  // namespace

std::optional<std::string> Machine::line(const std::string& path) const {
  std::ifstream file(root.string() + "/" + path);
  std::string text;
  if (!std::getline(file, text)) return std::nullopt;
  return text;
}

std::vector<std::string> Machine::lines(const std::string& path) const {
  std::ifstream file(root.string() + "/" + path);
  std::vector<std::string> all;
  for (std::string text; std::getline(file, text);) all.push_back(text);
  return all;
}

std::optional<std::int64_t> Machine::number(const std::string& path) const {
  const std::optional<std::string> text = line(path);
  std::int64_t value = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), value).ec != std::errc()) return std::nullopt;
  return value;
}

std::vector<std::string> Machine::entries(const std::string& folder) const {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root.string() + "/" + folder, error))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

Machine this_machine() {
  Machine machine;
  std::error_code error;
  machine.directory = fs::current_path(error).string();
  machine.is_root_user = geteuid() == 0;
  machine.world = world_of_environment();
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"}) {
    if (const char* text = std::getenv(name)) {
      machine.ranks_here = std::max(1, std::atoi(text));
      break;
    }
  }
  machine.allows_root = std::getenv("OMPI_ALLOW_RUN_AS_ROOT") != nullptr;
  machine.mpi_is_built = mpi_built();
  machine.mpi_library = mpi_library();
  machine.level = cpu::detected_instruction_level();
  machine.space = space_of;
  machine.can_write = [](const std::string& path) { return access(path.c_str(), W_OK) == 0; };
  machine.try_shared_memory = why_no_shared_memory;
  machine.version_line = first_line_of_version;
  machine.gpus = look_for_gpus;
  return machine;
}

std::set<int> cores_of_list(const std::string& text) {
  std::set<int> cores;
  std::istringstream ranges(text);
  for (std::string range; std::getline(ranges, range, ',');) {
    int first = 0, last = 0;
    const char* const end = range.data() + range.size();
    const auto begin = range.find_first_not_of(" \t");
    if (begin == std::string::npos) continue;
    const auto [stop, error] = std::from_chars(range.data() + begin, end, first);
    if (error != std::errc()) continue;
    last = first;
    if (stop != end && *stop == '-') std::from_chars(stop + 1, end, last);
    constexpr int most = 1 << 16;
    for (int core = first; core <= std::min(last, first + most); ++core) cores.insert(core);
  }
  return cores;
}

std::optional<double> quota_of_cores(const Machine& machine) {
  std::optional<double> cores;
  for (const std::string& group : groups_of(machine, "")) {
    std::istringstream words(machine.line(group + "/cpu.max").value_or(""));  // "200000 100000", "max 100000"
    double quota = 0.0, period = 0.0;
    if (words >> quota >> period && period > 0.0) take_smaller(cores, quota / period);
  }
  for (const std::string& group : groups_of(machine, "cpu")) {
    const std::int64_t quota = machine.number(group + "/cpu.cfs_quota_us").value_or(-1);
    const std::int64_t period = machine.number(group + "/cpu.cfs_period_us").value_or(0);
    if (quota > 0 && period > 0) take_smaller(cores, static_cast<double>(quota) / static_cast<double>(period));
  }
  return cores;
}

std::optional<std::int64_t> limit_of_processes(const Machine& machine) {
  std::optional<double> least;
  for (const char* controller : {"", "pids"}) {
    for (const std::string& group : groups_of(machine, controller)) {
      if (const auto limit = machine.number(group + "/pids.max")) take_smaller(least, static_cast<double>(*limit));
    }
  }
  if (!least) return std::nullopt;
  return static_cast<std::int64_t>(*least);
}

}  // namespace zt::probes
