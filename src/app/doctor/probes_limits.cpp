#include <algorithm>
#include <cstdlib>
#include <limits>

#include "app/doctor/probes.h"
#include "core/number_text.h"

namespace zt::probes {

namespace {

constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t mebibyte = std::int64_t{1} << 20;

// The soft limit of a line of /proc/self/limits.
std::optional<std::int64_t> limit_named(const Machine& machine, const std::string& name) {
  for (const std::string& line : machine.lines("/proc/self/limits")) {
    if (!line.starts_with(name)) continue;
    const std::size_t at = line.find_first_not_of(' ', name.size());
    if (at == std::string::npos) return std::nullopt;
    return line.compare(at, 9, "unlimited") == 0 ? unlimited : std::atoll(line.c_str() + at);
  }
  return std::nullopt;
}

std::string limit_text(std::int64_t limit) { return limit == unlimited ? "unlimited" : std::to_string(limit); }
std::string size_text(std::int64_t limit) { return limit == unlimited ? "unlimited" : bytes_in_words(limit); }

Finding open_files(std::int64_t limit) {
  Finding finding{.subject = "open files", .found = limit_text(limit), .advice = ""};
  // A rank holds a connection to each other local one, its files, and what libraries open.
  if (limit >= 1024) return finding;
  constexpr std::int64_t least = 8;  // of a run on one rank
  finding.verdict = limit < least ? Verdict::problem : Verdict::note;
  finding.advice = limit < least ? "too few to start: ulimit -n 4096" : "many ranks need more: ulimit -n 4096";
  return finding;
}

Finding processes(const Machine& machine, std::int64_t limit) {
  // The system does not hold root to its limit, only to that of a control group.
  const std::int64_t own = machine.is_root_user ? unlimited : limit;
  const std::int64_t granted = std::min(own, limit_of_processes(machine).value_or(unlimited));
  Finding finding{.subject = "processes", .found = limit_text(granted) + " with their threads", .advice = ""};
  const auto cores = static_cast<std::int64_t>(allowed_cores(machine).size());
  if (granted >= 4 * cores + 64) return finding;
  finding.verdict = granted <= cores + 2 ? Verdict::problem : Verdict::note;
  finding.advice = "a rank has a thread a core, and libraries some more: ulimit -u " +
                   std::to_string(std::max<std::int64_t>(4096, 8 * cores)) + ", docker --pids-limit";
  return finding;
}

Finding locked_memory(const Machine& machine, std::int64_t limit) {
  Finding finding{.subject = "locked memory", .found = size_text(limit), .advice = ""};
  const bool is_used = has_nvidia_card(machine) || !machine.entries("/sys/class/infiniband").empty();
  if (!is_used) {
    finding.found += "; only GPUs and InfiniBand lock memory, and there are none";
  } else if (limit != unlimited) {
    finding.verdict = Verdict::note;
    finding.advice = "GPUs and InfiniBand lock memory: ulimit -l unlimited, docker --ulimit memlock=-1";
  }
  return finding;
}

Finding core_files(std::int64_t limit) {
  Finding finding{.subject = "core files", .found = limit == 0 ? "none are written" : size_text(limit), .advice = ""};
  if (limit < (std::int64_t{1} << 30)) return finding;
  finding.verdict = Verdict::note;
  finding.advice = "a rank that crashes writes a file as large as its memory; if that is not wanted: ulimit -c 0";
  return finding;
}

Finding file_size(std::int64_t limit) {
  Finding finding{.subject = "file size", .found = size_text(limit), .advice = ""};
  if (limit == unlimited) return finding;
  finding.verdict = limit < 64 * 1024 ? Verdict::problem : Verdict::note;
  finding.advice = "larger checkpoints fail: ulimit -f unlimited";
  return finding;
}

Finding address_space(std::int64_t limit) {
  Finding finding{.subject = "address space", .found = size_text(limit), .advice = ""};
  if (limit == unlimited) return finding;
  finding.verdict = limit < 128 * mebibyte ? Verdict::problem : Verdict::note;
  finding.advice = "what ranks share and files that are mapped count, too: ulimit -v unlimited";
  return finding;
}

}  // namespace

std::vector<Finding> probe_limits(const Machine& machine) {
  std::vector<Finding> findings;
  if (const auto limit = limit_named(machine, "Max open files")) findings.push_back(open_files(*limit));
  if (const auto limit = limit_named(machine, "Max processes")) findings.push_back(processes(machine, *limit));
  if (const auto limit = limit_named(machine, "Max locked memory")) findings.push_back(locked_memory(machine, *limit));
  if (const auto limit = limit_named(machine, "Max core file size")) findings.push_back(core_files(*limit));
  if (const auto limit = limit_named(machine, "Max file size")) findings.push_back(file_size(*limit));
  if (const auto limit = limit_named(machine, "Max address space")) findings.push_back(address_space(*limit));
  if (findings.empty()) {
    findings.push_back({.subject = "limits",
                        .verdict = Verdict::note,
                        .found = "cannot be read (/proc/self/limits)",
                        .advice = "mount /proc"});
  }
  return findings;
}

Finding probe_disk(const Machine& machine) {
  Finding finding{.subject = "disk", .found = "", .advice = ""};
  const std::optional<Space> space = machine.space(machine.directory);
  if (!space) {
    finding.verdict = Verdict::note;
    finding.found = "the room in " + machine.directory + " cannot be told";
    finding.advice = "name a directory that can hold a run by --output";
    return finding;
  }
  finding.found = bytes_in_words(space->free) + " free in " + machine.directory;
  if (!machine.can_write(machine.directory)) {
    finding.verdict = Verdict::problem;
    finding.found += ", which cannot be written";
    finding.advice = "go elsewhere, or name a directory by --output: a run's files go to runs/ of the current one";
  } else if (space->free < 16 * mebibyte) {
    finding.verdict = Verdict::problem;
    finding.advice = "no run's files fit: make room, or name a directory by --output";
  } else if (space->free < 1024 * mebibyte) {
    finding.verdict = Verdict::note;
    finding.advice =
        "a checkpoint with Adam takes 12 bytes a parameter and more: make room, or name a directory by "
        "--output";
  }
  return finding;
}

std::vector<Finding> examine(const Machine& machine) {
  std::vector<Finding> findings;
  for (const auto probe :
       {probe_cores, probe_quota, probe_hyperthreads, probe_nodes, probe_binding, probe_load, probe_instructions,
        probe_clock, probe_memory, probe_huge_pages, probe_shared_memory, probe_shm, probe_mpi, probe_launcher})
    findings.push_back(probe(machine));
  for (Finding& finding : probe_gpus(machine)) findings.push_back(std::move(finding));
  for (Finding& finding : probe_limits(machine)) findings.push_back(std::move(finding));
  findings.push_back(probe_disk(machine));
  return findings;
}

}  // namespace zt::probes
