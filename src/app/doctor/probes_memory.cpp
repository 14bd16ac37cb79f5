#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

#include "app/doctor/probes.h"
#include "core/available_memory.h"
#include "core/number_text.h"

namespace zt::probes {

namespace {

constexpr std::int64_t mebibyte = std::int64_t{1} << 20;
constexpr std::int64_t gibibyte = std::int64_t{1} << 30;

std::int64_t total_memory(const Machine& machine) {
  for (const std::string& line : machine.lines("/proc/meminfo")) {
    if (line.starts_with("MemTotal:")) return std::atoll(line.c_str() + 9) * 1024;
  }
  return 0;
}

// "always [madvise] never": the word in brackets.
std::string chosen_word(const std::string& text) {
  const std::size_t begin = text.find('[');
  const std::size_t end = text.find(']', begin);
  return end == std::string::npos ? "" : text.substr(begin + 1, end - begin - 1);
}

}  // namespace

std::string count_text(std::int64_t count, const std::string& thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

Finding probe_memory(const Machine& machine) {
  Finding finding{.subject = "memory", .found = "", .advice = ""};
  const std::int64_t total = total_memory(machine);
  if (total == 0) {
    finding.verdict = Verdict::note;
    finding.found = "cannot be read (/proc/meminfo)";
    finding.advice = "mount /proc: a run that cannot fit is then refused before it starts";
    return finding;
  }
  const std::int64_t available = available_memory_below(machine.root.string());
  finding.found = bytes_in_words(available) + " for a run, of " + bytes_in_words(total);
  std::int64_t limit = total;
  for (const char* file : {"memory.max", "memory/memory.limit_in_bytes"})
    limit = std::min(limit, machine.number(std::string("/sys/fs/cgroup/") + file).value_or(total));
  if (limit < total) finding.found += "; the control group's limit is " + bytes_in_words(limit);
  if (available < 64 * mebibyte) {
    finding.verdict = Verdict::problem;
    finding.advice = "no training fits: end other programs, or raise the limit (docker --memory)";
  } else if (available < gibibyte) {
    finding.verdict = Verdict::note;
    finding.advice = "enough for small models alone; zerotrain --config FILE --dry-run says what a run takes";
  }
  return finding;
}

Finding probe_huge_pages(const Machine& machine) {
  Finding finding{.subject = "huge pages", .found = "cannot be read", .advice = ""};
  const std::string folder = "/sys/kernel/mm/transparent_hugepage/";
  const auto enabled = machine.line(folder + "enabled");
  if (!enabled) return finding;
  const std::string own = chosen_word(*enabled);
  const std::string shared = chosen_word(machine.line(folder + "shmem_enabled").value_or(""));
  finding.found = own + (shared.empty() ? "" : ", for shared memory " + shared) + " (they are asked for by madvise)";
  if (own == "never") {
    finding.verdict = Verdict::note;
    finding.advice = "large tensors are read faster with them; as root: echo madvise > " + folder + "enabled";
  } else if (shared == "never" || shared == "deny") {
    finding.verdict = Verdict::note;
    finding.advice = "what ranks share has none; as root: echo advise > " + folder + "shmem_enabled";
  }
  return finding;
}

Finding probe_shared_memory(const Machine& machine) {
  Finding finding{
      .subject = "shared memory", .found = "memfd works: ranks of this machine read each other's memory", .advice = ""};
  const std::string reason = machine.try_shared_memory();
  if (reason.empty()) return finding;
  finding.verdict = Verdict::problem;
  finding.found = reason;
  finding.advice =
      "--ranks cannot start: allow memfd_create and /proc/PID/fd to the container (its seccomp profile, "
      "/proc not mounted with hidepid); one rank works, and so does mpirun with "
      "device.communicator \"mpi\"";
  return finding;
}

Finding probe_shm(const Machine& machine) {
  Finding finding{.subject = "/dev/shm", .found = "", .advice = ""};
  const std::optional<Space> space = machine.space("/dev/shm");
  if (!space) {
    finding.found = "is not there; zerotrain itself needs none";
    if (machine.mpi_is_built) {
      finding.verdict = Verdict::note;
      finding.advice = "Open MPI is slower without it: mount a tmpfs there";
    }
    return finding;
  }
  finding.found =
      bytes_in_words(space->free) + " free of " + bytes_in_words(space->total) + "; zerotrain itself needs none";
  // Open MPI makes a file of 4 MiB for each rank, NCCL of up to 10 MB for each channel of each pair of GPUs.
  const auto cores = static_cast<std::int64_t>(allowed_cores(machine).size());
  if (has_nvidia_card(machine) && space->total < gibibyte) {
    finding.verdict = Verdict::note;
    finding.advice = "NCCL may want more where GPUs do not reach each other's memory: docker --shm-size=1g";
  } else if (machine.mpi_is_built && space->free < 4 * mebibyte * cores) {
    finding.verdict = Verdict::note;
    finding.advice =
        "Open MPI keeps up to 4 MiB for each rank there and is slower without: free some, or docker "
        "--shm-size=" +
        std::to_string(std::max<std::int64_t>(64, 4 * cores)) + "m";
  }
  return finding;
}

}  // namespace zt::probes
