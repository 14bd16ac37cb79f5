// The probes of doctor, each on made-up machines for both of its answers, and on this one.
#include <filesystem>
#include <fstream>

#include "app/doctor/probes.h"
#include "catch_compat.h"
#include "run_program.h"

namespace fs = std::filesystem;
using namespace zt::probes;
using zt::cpu::InstructionLevel;
using zt::test::TemporaryDirectory;

namespace {

constexpr std::int64_t mebibyte = std::int64_t{1} << 20;
constexpr std::int64_t gibibyte = std::int64_t{1} << 30;

const char* const good_flags = "fpu sse4_1 avx2 fma f16c avx512f avx512bw avx512cd avx512dq avx512vl avx512_bf16";

std::string limits(const std::string& files = "20000", const std::string& processes = "96364",
                   const std::string& locked = "unlimited", const std::string& core = "0",
                   const std::string& size = "unlimited", const std::string& space = "unlimited") {
  return "Limit                     Soft Limit           Hard Limit           Units\n"
         "Max file size             " +
         size +
         "            unlimited            bytes\n"
         "Max core file size        " +
         core +
         "                    unlimited            bytes\n"
         "Max processes             " +
         processes +
         "                96364                processes\n"
         "Max open files            " +
         files +
         "                20000                files\n"
         "Max locked memory         " +
         locked +
         "              8388608              bytes\n"
         "Max address space         " +
         space + "            unlimited            bytes\n";
}

// A machine without a fault: four cores, 16 GiB, everything installed but GPUs.
class MadeUp {
 public:
  MadeUp() {
    machine.root = folder_.path();
    machine.mpi_is_built = true;
    machine.mpi_library = "Open MPI v4.1.4";
    machine.space = [](const std::string&) { return Space{100 * gibibyte, 50 * gibibyte}; };
    machine.can_write = [](const std::string&) { return true; };
    machine.try_shared_memory = [] { return std::string(); };
    machine.version_line = [](const std::string& program) { return program + " (Open MPI) 4.1.4"; };
    machine.gpus = [] { return GpuFindings{}; };
    write("proc/self/status", "Name:\tzerotrain\nCpus_allowed:\tf\nCpus_allowed_list:\t0-3\n");
    write("proc/self/limits", limits());
    write("proc/self/cgroup", "0::/\n");
    write("proc/loadavg", "0.10 0.20 0.30 1/100 1234\n");
    write("proc/meminfo", "MemTotal:       16777216 kB\nMemFree:        1 kB\nMemAvailable:   12582912 kB\n");
    processor(good_flags);
    write("sys/devices/system/cpu/online", "0-3\n");
    write("sys/devices/system/node/node0/cpulist", "0-3\n");
    write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    write("sys/kernel/mm/transparent_hugepage/shmem_enabled", "always within_size [advise] never deny force\n");
    for (int core = 0; core < 4; ++core) siblings(core, std::to_string(core));
  }

  void write(const std::string& name, const std::string& text) const {
    const fs::path path = folder_.path() / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  void remove(const std::string& name) const { fs::remove_all(folder_.path() / name); }
  void processor(const std::string& flags) const {
    write("proc/cpuinfo", "processor\t: 0\nmodel name\t: Wonder 9000\nflags\t\t: " + flags + "\n");
  }
  void siblings(int core, const std::string& list) const {
    write("sys/devices/system/cpu/cpu" + std::to_string(core) + "/topology/thread_siblings_list", list + "\n");
  }
  void nvidia_card() const {
    write("sys/bus/pci/devices/0000:3b:00.0/class", "0x030200\n");
    write("sys/bus/pci/devices/0000:3b:00.0/vendor", "0x10de\n");
  }
  void ranks(int count, const std::string& cores) {
    machine.world = {zt::LaunchedWorld::Kind::open_mpi, count, 0, "OMPI_COMM_WORLD_SIZE"};
    machine.ranks_here = count;
    write("proc/self/status", "Cpus_allowed_list:\t" + cores + "\n");
  }

  Machine machine;

 private:
  TemporaryDirectory folder_;
};

void check(const Finding& finding, Verdict verdict, const std::string& part) {
  INFO(finding.subject << ": " << finding.found << " -> " << finding.advice);
  CHECK(finding.verdict == verdict);
  CHECK((finding.found + " -> " + finding.advice).find(part) != std::string::npos);
  CHECK_FALSE(finding.found.empty());
  // Whoever is told that something could be better is told how.
  CHECK((verdict == Verdict::ok || !finding.advice.empty()));
}

Finding named(const std::vector<Finding>& findings, const std::string& subject) {
  for (const Finding& finding : findings) {
    if (finding.subject == subject) return finding;
  }
  FAIL("no finding about " << subject);
  return {};
}

}  // namespace

TEST_CASE("a machine without a fault has neither notes nor problems") {
  const MadeUp made;
  const std::vector<Finding> findings = examine(made.machine);
  CHECK(findings.size() > 18);
  for (const Finding& finding : findings) check(finding, Verdict::ok, "");
}

TEST_CASE("on this machine every probe has an answer") {
  for (const Finding& finding : examine(this_machine())) {
    INFO(finding.subject);
    CHECK_FALSE(finding.found.empty());
    CHECK((finding.verdict == Verdict::ok || !finding.advice.empty()));
  }
  CHECK(probe_shared_memory(this_machine()).verdict == Verdict::ok);  // the tests of ranks need it, too
  const Machine here = this_machine();
  CHECK(static_cast<int>(allowed_cores(here).size()) >= 1);
}

TEST_CASE("on an empty tree every probe says that nothing can be read") {
  MadeUp made;
  for (const char* folder : {"proc", "sys"}) made.remove(folder);
  for (const Finding& finding : examine(made.machine)) {
    INFO(finding.subject << ": " << finding.found);
    CHECK(finding.verdict != Verdict::problem);
    CHECK_FALSE(finding.found.empty());
  }
}

TEST_CASE("cores: those allowed beside those of the machine, and a quota below them") {
  const MadeUp made;
  check(probe_cores(made.machine), Verdict::ok, "4 cores to run on");
  check(probe_quota(made.machine), Verdict::ok, "no limit");
  made.write("sys/devices/system/cpu/online", "0-15\n");
  check(probe_cores(made.machine), Verdict::note, "4 cores to run on, of 16 of the machine");
  // Version 2: the group's own, and one above it.
  made.write("sys/fs/cgroup/cpu.max", "max 100000\n");
  check(probe_quota(made.machine), Verdict::ok, "no limit");
  made.write("sys/fs/cgroup/cpu.max", "800000 100000\n");
  check(probe_quota(made.machine), Verdict::ok, "8 cores");
  made.write("proc/self/cgroup", "0::/jobs/one\n");
  made.write("sys/fs/cgroup/jobs/cpu.max", "150000 100000\n");
  check(probe_quota(made.machine), Verdict::note, "1.5 cores, but threads are started for 4");
  made.remove("sys/fs/cgroup");
  made.write("proc/self/cgroup", "4:cpu,cpuacct:/box\n0::/\n");
  made.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  made.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  check(probe_quota(made.machine), Verdict::ok, "no limit");
  made.write("sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "200000\n");
  made.write("sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n");
  check(probe_quota(made.machine), Verdict::note, "have 2");
  CHECK(cores_of_list("0-2, 5,x,7-6") == std::set<int>{0, 1, 2, 5});
}

TEST_CASE("hyperthreads and memory nodes") {
  MadeUp made;
  check(probe_hyperthreads(made.machine), Verdict::ok, "none");
  check(probe_nodes(made.machine), Verdict::ok, "one memory node");
  for (int core = 0; core < 4; ++core) made.siblings(core, core % 2 == 0 ? "0,2" : "1,3");
  check(probe_hyperthreads(made.machine), Verdict::note, "4 logical cores are 2 physical ones");
  check(probe_cores(made.machine), Verdict::ok, "2 of them physical");
  made.write("sys/devices/system/node/node0/cpulist", "0-1\n");
  made.write("sys/devices/system/node/node1/cpulist", "2-3\n");
  made.write("sys/devices/system/node/node2/cpulist", "4-7\n");  // none of ours
  check(probe_nodes(made.machine), Verdict::note, "--ranks 2");
}

TEST_CASE("binding under a launcher, and load") {
  MadeUp made;
  check(probe_binding(made.machine), Verdict::ok, "not started by mpirun");
  made.ranks(2, "0-3");
  check(probe_binding(made.machine), Verdict::ok, "2 ranks on this machine, rank 0 may run on 4 of 4 cores");
  made.ranks(4, "0");
  check(probe_binding(made.machine), Verdict::ok, "1 of 4");
  check(probe_cores(made.machine), Verdict::ok, "1 core to run on, of 4 of the machine");
  made.ranks(2, "0");
  check(probe_binding(made.machine), Verdict::note, "--bind-to none");
  made.ranks(9, "0-3");
  check(probe_binding(made.machine), Verdict::note, "at most 4");
  check(probe_load(made.machine), Verdict::ok, "0.1 runnable");
  made.write("proc/loadavg", "3.50 0.20 0.30 1/100 1234\n");
  check(probe_load(made.machine), Verdict::note, "other programs");
}

TEST_CASE("instruction sets: what is used and why not more") {
  MadeUp made;
  check(probe_instructions(made.machine), Verdict::ok, "Wonder 9000: avx512_bf16 is used");
  made.processor(std::string(good_flags) + " amx_bf16");
  check(probe_instructions(made.machine), Verdict::ok, "AMX is not");
  made.processor("fpu avx2 fma f16c avx512f");
  check(probe_instructions(made.machine), Verdict::ok,
        "avx2 is used; not avx512, for the processor lacks avx512bw, avx512cd, avx512dq, avx512vl");
  made.processor("fpu sse4_1");
  check(probe_instructions(made.machine), Verdict::note, "baseline is used; not avx2");
  made.processor("fpu hypervisor");
  check(probe_instructions(made.machine), Verdict::note, "-cpu host");
  made.processor(good_flags);
  made.machine.level = InstructionLevel::avx2;  // what the registers' owner says goes first
  check(probe_instructions(made.machine), Verdict::ok, "the system does not save its registers");
}

TEST_CASE("the processor's clock") {
  const MadeUp made;
  check(probe_clock(made.machine), Verdict::ok, "not this system's to set");
  const std::string folder = "sys/devices/system/cpu/cpu0/cpufreq/";
  made.write(folder + "scaling_governor", "performance\n");
  made.write(folder + "scaling_driver", "acpi-cpufreq\n");
  made.write(folder + "cpuinfo_max_freq", "3700000\n");
  check(probe_clock(made.machine), Verdict::ok, "up to 3.7 GHz");
  made.write(folder + "scaling_governor", "powersave\n");
  check(probe_clock(made.machine), Verdict::note, "cpupower");
  made.write(folder + "scaling_driver", "intel_pstate\n");
  check(probe_clock(made.machine), Verdict::ok, "powersave of intel_pstate");
  made.write("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n");
  check(probe_clock(made.machine), Verdict::note, "no_turbo");
  made.write(folder + "energy_performance_preference", "balance_power\n");
  check(probe_clock(made.machine), Verdict::note, "cpupower");
}

TEST_CASE("memory, and a control group's limit on it") {
  const MadeUp made;
  check(probe_memory(made.machine), Verdict::ok, "12.9 GB for a run, of 17.2 GB");
  made.write("sys/fs/cgroup/memory.max", std::to_string(600 * mebibyte) + "\n");
  made.write("sys/fs/cgroup/memory.current", std::to_string(100 * mebibyte) + "\n");
  check(probe_memory(made.machine), Verdict::note, "524 MB for a run, of 17.2 GB; the control group's limit is 629 MB");
  made.write("sys/fs/cgroup/memory.current", std::to_string(590 * mebibyte) + "\n");
  check(probe_memory(made.machine), Verdict::problem, "no training fits");
}

TEST_CASE("huge pages") {
  const MadeUp made;
  const std::string folder = "sys/kernel/mm/transparent_hugepage/";
  check(probe_huge_pages(made.machine), Verdict::ok, "madvise, for shared memory advise");
  made.write(folder + "shmem_enabled", "always within_size advise [never] deny force\n");
  check(probe_huge_pages(made.machine), Verdict::note, "shmem_enabled");
  made.write(folder + "enabled", "always madvise [never]\n");
  check(probe_huge_pages(made.machine), Verdict::note, "echo madvise");
}

TEST_CASE("memory between ranks, and /dev/shm for what needs it") {
  MadeUp made;
  check(probe_shared_memory(made.machine), Verdict::ok, "memfd works");
  made.machine.try_shared_memory = [] { return std::string("Operation not permitted"); };
  check(probe_shared_memory(made.machine), Verdict::problem, "--ranks cannot start");
  check(probe_shm(made.machine), Verdict::ok, "53.7 GB free");
  made.machine.space = [](const std::string&) { return Space{64 * mebibyte, 10 * mebibyte}; };
  check(probe_shm(made.machine), Verdict::note, "Open MPI");
  made.machine.mpi_is_built = false;
  check(probe_shm(made.machine), Verdict::ok, "zerotrain itself needs none");
  made.nvidia_card();
  check(probe_shm(made.machine), Verdict::note, "NCCL");
  made.machine.mpi_is_built = true;
  made.machine.space = [](const std::string&) { return std::optional<Space>(); };
  check(probe_shm(made.machine), Verdict::note, "tmpfs");
}

TEST_CASE("MPI and its launcher") {
  MadeUp made;
  check(probe_mpi(made.machine), Verdict::ok, "Open MPI v4.1.4");
  check(probe_launcher(made.machine), Verdict::ok, "mpirun (Open MPI) 4.1.4");
  made.machine.is_root_user = true;
  check(probe_launcher(made.machine), Verdict::note, "--allow-run-as-root");
  made.machine.allows_root = true;
  check(probe_launcher(made.machine), Verdict::ok, "");
  made.machine.version_line = [](const std::string&) { return std::string("HYDRA build details:"); };
  check(probe_launcher(made.machine), Verdict::note, "another MPI");
  made.ranks(2, "0-3");
  check(probe_launcher(made.machine), Verdict::problem, "another MPI");
  made.machine.version_line = [](const std::string&) { return std::string(); };
  check(probe_launcher(made.machine), Verdict::note, "openmpi-bin");
  made.machine.mpi_is_built = false;
  check(probe_launcher(made.machine), Verdict::ok, "need none");
  check(probe_mpi(made.machine), Verdict::problem, "ZEROTRAIN_MPI=ON");
  made.machine.world = {};
  check(probe_mpi(made.machine), Verdict::note, "need none");
}

TEST_CASE("GPU, driver and NCCL: what is there, and what is missing") {
  MadeUp made;
  check(named(probe_gpus(made.machine), "driver"), Verdict::ok, "no NVIDIA GPU and no driver");
  made.nvidia_card();
  check(named(probe_gpus(made.machine), "driver"), Verdict::note, "install NVIDIA's driver");
  made.write("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06\n");
  check(named(probe_gpus(made.machine), "driver"), Verdict::note, "--gpus all");

  GpuFindings gpus;
  gpus.has_driver = true;
  gpus.backend_problem = "the CUDA backend is not there";
  made.machine.gpus = [&gpus] { return gpus; };
  check(named(probe_gpus(made.machine), "driver"), Verdict::ok, "580.65.06");
  check(named(probe_gpus(made.machine), "GPU"), Verdict::note, "the CUDA backend is not there");
  gpus.backend_problem.clear();
  gpus.problem = "the driver is too old";
  check(named(probe_gpus(made.machine), "GPU"), Verdict::note, "the driver is too old");
  gpus.problem.clear();
  gpus.versions = "CUDA 13.0, driver 13.0";
  gpus.devices = {"NVIDIA H200, 150 GB, sm_90"};
  gpus.nccl_problem = "libnccl.so.2: cannot open";
  check(named(probe_gpus(made.machine), "GPU"), Verdict::ok, "CUDA 13.0, driver 13.0; NVIDIA H200");
  check(named(probe_gpus(made.machine), "NCCL"), Verdict::ok, "libnccl.so.2");
  gpus.devices.push_back(gpus.devices.front());
  check(named(probe_gpus(made.machine), "NCCL"), Verdict::note, "libnccl.so.2");
  gpus.nccl = "2.28.9";
  check(named(probe_gpus(made.machine), "NCCL"), Verdict::ok, "NCCL 2.28.9");
}

TEST_CASE("limits of the process") {
  MadeUp made;
  const auto finding = [&](const std::string& subject) { return named(probe_limits(made.machine), subject); };
  check(finding("open files"), Verdict::ok, "20000");
  check(finding("processes"), Verdict::ok, "96364");
  check(finding("core files"), Verdict::ok, "none are written");
  check(finding("file size"), Verdict::ok, "unlimited");
  check(finding("address space"), Verdict::ok, "unlimited");
  made.write("proc/self/limits", limits("256", "40", "65536", "unlimited", "1073741824", "8589934592"));
  check(finding("open files"), Verdict::note, "ulimit -n");
  check(finding("processes"), Verdict::note, "ulimit -u");
  check(finding("locked memory"), Verdict::ok, "there are none");
  check(finding("core files"), Verdict::note, "ulimit -c 0");
  check(finding("file size"), Verdict::note, "ulimit -f");
  check(finding("address space"), Verdict::note, "ulimit -v");
  made.write("sys/class/infiniband/mlx5_0/node_type", "1: CA\n");
  check(finding("locked memory"), Verdict::note, "memlock=-1");
  made.write("proc/self/limits", limits("5", "5", "unlimited", "0", "4096", "1048576"));
  check(finding("locked memory"), Verdict::ok, "unlimited");
  check(finding("open files"), Verdict::problem, "ulimit -n");
  check(finding("processes"), Verdict::problem, "ulimit -u");
  check(finding("file size"), Verdict::problem, "ulimit -f");
  check(finding("address space"), Verdict::problem, "ulimit -v");
  made.machine.is_root_user = true;  // whom the system does not hold to it
  check(finding("processes"), Verdict::ok, "unlimited");
  made.write("proc/self/limits", limits());
  made.write("sys/fs/cgroup/pids.max", "20\n");
  check(finding("processes"), Verdict::note, "--pids-limit");
}

TEST_CASE("room on the disk") {
  MadeUp made;
  made.machine.directory = "/here";
  check(probe_disk(made.machine), Verdict::ok, "53.7 GB free in /here");
  made.machine.space = [](const std::string&) { return Space{gibibyte, 200 * mebibyte}; };
  check(probe_disk(made.machine), Verdict::note, "checkpoint");
  made.machine.space = [](const std::string&) { return Space{gibibyte, mebibyte}; };
  check(probe_disk(made.machine), Verdict::problem, "make room");
  made.machine.space = [](const std::string&) { return Space{gibibyte, gibibyte}; };
  made.machine.can_write = [](const std::string&) { return false; };
  check(probe_disk(made.machine), Verdict::problem, "cannot be written");
}
