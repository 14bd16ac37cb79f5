#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "app/doctor/probes.h"

namespace zt::probes {

namespace {

const std::string cpus = "/sys/devices/system/cpu/";

std::set<int> online_cores(const Machine& machine) { return cores_of_list(machine.line(cpus + "online").value_or("")); }

std::string number_text(double value) {
  std::ostringstream text;
  text << std::round(value * 100.0) / 100.0;
  return text.str();
}

// The allowed logical cores by the physical core that they are of.
std::map<std::string, int> physical_cores(const Machine& machine) {
  std::map<std::string, int> counts;
  for (const int core : allowed_cores(machine)) {
    const std::string topology = cpus + "cpu" + std::to_string(core) + "/topology/";
    const auto siblings = machine.line(topology + "thread_siblings_list");
    if (siblings) ++counts[*siblings];
  }
  return counts;
}

// Of "flags : fpu vme ...": the words; on ARM they are called Features.
std::set<std::string> processor_flags(const Machine& machine) {
  for (const std::string& line : machine.lines("/proc/cpuinfo")) {
    if (!line.starts_with("flags") && !line.starts_with("Features")) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    std::set<std::string> flags;
    for (std::string word; words >> word;) flags.insert(word);
    return flags;
  }
  return {};
}

std::string processor_name(const Machine& machine) {
  for (const std::string& line : machine.lines("/proc/cpuinfo")) {
    if (line.starts_with("model name")) return line.substr(std::min(line.size(), line.find(':') + 2));
  }
  return "a processor without a name";
}

struct LevelFlags {
  cpu::InstructionLevel level;
  std::vector<std::string> flags;  // as Linux calls them
};
const std::vector<LevelFlags>& level_flags() {
  static const std::vector<LevelFlags> rows = {
      {cpu::InstructionLevel::avx2, {"avx2", "fma", "f16c"}},
      {cpu::InstructionLevel::avx512, {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}},
      {cpu::InstructionLevel::avx512_bf16, {"avx512_bf16"}}};
  return rows;
}

std::string missing_flags(const LevelFlags& row, const std::set<std::string>& flags) {
  std::string missing;
  for (const std::string& flag : row.flags) {
    if (!flags.contains(flag)) missing += (missing.empty() ? "" : ", ") + flag;
  }
  return missing;
}

}  // namespace

std::set<int> allowed_cores(const Machine& machine) {
  for (const std::string& line : machine.lines("/proc/self/status")) {
    if (line.starts_with("Cpus_allowed_list:")) return cores_of_list(line.substr(18));
  }
  return online_cores(machine);
}

Finding probe_cores(const Machine& machine) {
  Finding finding{.subject = "cores", .found = "", .advice = ""};
  const std::set<int> allowed = allowed_cores(machine);
  const std::size_t online = std::max(online_cores(machine).size(), allowed.size());
  if (allowed.empty()) {
    finding.verdict = Verdict::note;
    finding.found = "how many there are cannot be read (/proc/self/status, /sys/devices/system/cpu)";
    finding.advice = "mount /proc and /sys; until then say how many threads a rank has: --set device.threads=N";
    return finding;
  }
  finding.found = count_text(static_cast<std::int64_t>(allowed.size()), "core") + " to run on";
  if (const std::size_t physical = physical_cores(machine).size(); physical > 0 && physical < allowed.size())
    finding.found += ", " + std::to_string(physical) + " of them physical";
  if (allowed.size() == online) return finding;
  finding.found += ", of " + std::to_string(online) + " of the machine";
  if (machine.world.size > 1) return finding;  // the launcher's binding, which has a line of its own
  finding.verdict = Verdict::note;
  finding.advice =
      "taskset, a container's --cpuset-cpus or a batch system says so; ask it for more if that is not meant";
  return finding;
}

Finding probe_quota(const Machine& machine) {
  Finding finding{.subject = "quota", .found = "no limit on processor time", .advice = ""};
  const std::optional<double> quota = quota_of_cores(machine);
  if (!quota) return finding;
  const auto allowed = static_cast<double>(allowed_cores(machine).size());
  finding.found = "the control group grants the time of " + number_text(*quota) + " cores";
  if (*quota >= allowed) return finding;
  finding.verdict = Verdict::note;
  finding.found += ", but threads are started for " + number_text(allowed);
  const int threads = std::max(1, static_cast<int>(std::floor(*quota)));
  finding.advice =
      "threads are halted by turns, and all wait for the one that is: give the container whole cores "
      "(docker --cpuset-cpus) or set device.threads so that all ranks together have " +
      std::to_string(threads);
  return finding;
}

Finding probe_hyperthreads(const Machine& machine) {
  Finding finding{.subject = "hyperthreads", .found = "none: a thread has a core of its own", .advice = ""};
  const std::map<std::string, int> physical = physical_cores(machine);
  std::size_t logical = 0;
  for (const auto& [siblings, count] : physical) logical += static_cast<std::size_t>(count);
  if (physical.empty()) {
    finding.found = "cannot be read";
    return finding;
  }
  if (logical == physical.size()) return finding;
  finding.verdict = Verdict::note;
  finding.found = std::to_string(logical) + " logical cores are " + std::to_string(physical.size()) + " physical ones";
  finding.advice =
      "matrix products gain little from a second thread on a core: compare the speed with "
      "device.threads so that all ranks together have " +
      std::to_string(physical.size());
  return finding;
}

Finding probe_nodes(const Machine& machine) {
  Finding finding{.subject = "NUMA", .found = "one memory node", .advice = ""};
  const std::set<int> allowed = allowed_cores(machine);
  int nodes = 0;
  for (const std::string& name : machine.entries("/sys/devices/system/node")) {
    if (!name.starts_with("node") || name.find_first_not_of("0123456789", 4) != std::string::npos) continue;
    const std::set<int> cores =
        cores_of_list(machine.line("/sys/devices/system/node/" + name + "/cpulist").value_or(""));
    if (std::any_of(cores.begin(), cores.end(), [&](int core) { return allowed.contains(core); })) ++nodes;
  }
  if (nodes < 2) return finding;
  finding.found = std::to_string(nodes) + " memory nodes have cores that this process may run on";
  if (machine.world.size > 1 || static_cast<int>(allowed.size()) < 2 * nodes) return finding;
  finding.verdict = Verdict::note;
  finding.advice = "start a rank a node, whose memory is then near: zerotrain --ranks " + std::to_string(nodes) +
                   ", or mpirun --map-by ppr:1:numa --bind-to numa";
  return finding;
}

Finding probe_binding(const Machine& machine) {
  Finding finding{.subject = "binding", .found = "not started by mpirun or srun", .advice = ""};
  if (machine.world.size < 2) {
    finding.found += "; mpirun -n N zerotrain doctor looks at its binding";
    return finding;
  }
  const auto allowed = static_cast<int>(allowed_cores(machine).size());
  const auto online = static_cast<int>(std::max<std::size_t>(online_cores(machine).size(), 1));
  finding.found = count_text(machine.ranks_here, "rank") + " on this machine, rank 0 may run on " +
                  std::to_string(allowed) + " of " + count_text(online, "core");
  const bool is_shared = allowed == online;  // nothing is bound: ranks divide the cores
  if (machine.ranks_here > online) {
    finding.verdict = Verdict::note;
    finding.advice = "ranks share cores and wait for each other: start at most " + std::to_string(online);
  } else if (!is_shared && 2 * allowed * machine.ranks_here <= online) {
    finding.verdict = Verdict::note;
    finding.advice = "cores stay idle: mpirun --bind-to none, or with Slurm --cpus-per-task=" +
                     std::to_string(online / machine.ranks_here);
  }
  return finding;
}

Finding probe_load(const Machine& machine) {
  Finding finding{.subject = "load", .found = "cannot be read", .advice = ""};
  std::istringstream words(machine.line("/proc/loadavg").value_or(""));
  double one_minute = 0.0;
  if (!(words >> one_minute)) return finding;
  const auto cores = static_cast<double>(std::max<std::size_t>(online_cores(machine).size(), 1));
  finding.found = number_text(one_minute) + " runnable threads in the last minute, on " + number_text(cores) + " cores";
  if (one_minute < 0.5 * cores) return finding;
  finding.verdict = Verdict::note;
  finding.advice =
      "other programs compute here: ranks wait for the one that is held up; end them, or leave them cores "
      "by device.threads";
  return finding;
}

Finding probe_instructions(const Machine& machine) {
  const std::set<std::string> flags = processor_flags(machine);
  cpu::InstructionLevel level = cpu::InstructionLevel::baseline;
  for (const LevelFlags& row : level_flags()) {
    if (!missing_flags(row, flags).empty()) break;
    level = row.level;
  }
  Finding finding{.subject = "instructions", .found = "", .advice = ""};
  const cpu::InstructionLevel used = machine.level.value_or(level);
  finding.found = processor_name(machine) + ": " + std::string(cpu::name_of(used)) + " is used";
  for (const LevelFlags& row : level_flags()) {
    if (row.level <= used) continue;
    const std::string missing = missing_flags(row, flags);
    finding.found += "; not " + std::string(cpu::name_of(row.level)) + ", for the " +
                     (missing.empty() ? "system does not save its registers" : "processor lacks " + missing);
    break;
  }
  if (flags.contains("amx_bf16")) finding.found += "; its AMX is not: sums would come in another order";
  if (used >= cpu::InstructionLevel::avx2) return finding;
  finding.verdict = Verdict::note;
  finding.advice = flags.contains("hypervisor")
                       ? "products are several times slower without AVX2: let the virtual machine have its host's "
                         "processor (QEMU: -cpu host)"
                       : "products are several times slower without AVX2: take a machine whose processor has it";
  return finding;
}

Finding probe_clock(const Machine& machine) {
  Finding finding{.subject = "clock", .found = "", .advice = ""};
  const std::string folder = cpus + "cpu0/cpufreq/";
  const std::string governor = machine.line(folder + "scaling_governor").value_or("");
  if (governor.empty()) {
    finding.found = "is not this system's to set (a virtual machine, or no cpufreq)";
    return finding;
  }
  const std::string driver = machine.line(folder + "scaling_driver").value_or("");
  const std::string preference = machine.line(folder + "energy_performance_preference").value_or("");
  finding.found = "governor " + governor + (driver.empty() ? "" : " of " + driver) +
                  (preference.empty() ? "" : ", preference " + preference);
  if (const auto most = machine.number(folder + "cpuinfo_max_freq"))
    finding.found += ", up to " + number_text(static_cast<double>(*most) / 1e6) + " GHz";
  // These two choose clocks themselves, and call their usual mode powersave.
  const bool chooses_itself = driver == "intel_pstate" || driver.starts_with("amd-pstate");
  const bool saves = (governor == "powersave" && !chooses_itself) || governor == "conservative" ||
                     preference == "power" || preference == "balance_power";
  if (saves) {
    finding.verdict = Verdict::note;
    finding.advice = "power is saved at the cost of speed: cpupower frequency-set -g performance";
  } else if (machine.number(cpus + "intel_pstate/no_turbo").value_or(0) == 1) {
    finding.verdict = Verdict::note;
    finding.found += ", turbo off";
    finding.advice = "echo 0 > /sys/devices/system/cpu/intel_pstate/no_turbo, as root, if that is not meant";
  }
  return finding;
}

}  // namespace zt::probes
