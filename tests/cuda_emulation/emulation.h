// What a test may ask of the emulated GPUs: how many there are, in which order threads and streams run, which call
// fails, and whether findings end the process or are collected. See docs/gpu.md.
//
// Ranks are threads of one process or processes of one machine. A process has `devices` emulated GPUs; a host thread
// has a current one, as in CUDA, and each device is driven by one host thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace zt::emulation {

enum class Order { forward, reversed, shuffled };
enum class Streams {
  eager,          // an operation runs when it is queued
  lazy,           // it runs when somebody waits for it, and nothing else runs before
  lazy_shuffled,  // as lazy, and operations of other streams, drawn by the seed, run before those that are waited for
};

enum class Driver {
  present,
  missing,
  for_linking,  // the toolkit's library for linking
  too_old,      // made for CUDA 12.2
  not_ready,    // as NVSwitch machines without their fabric manager
};

// Before the first use, the environment may say: ZEROTRAIN_EMULATION_ORDER, _STREAMS (names as above), _SEED, _DEVICES,
// _MEMORY_MB, _PROTECT (0 or 1), _PATIENCE (seconds), _DRIVER (names as above), _CAPABILITY, _KERNELS (0 or 1), and
// _FAIL: "allocation:3", "launch:1" or "collective:2".
struct Settings {
  Order order = Order::forward;  // of the threads of a block, and of the blocks of a grid
  Streams streams = Streams::eager;
  std::uint64_t seed = 1;                            // of all that is shuffled
  int devices = 1;                                   // 0 to 8
  std::size_t device_memory = std::size_t{1} << 30;  // bytes of each device
  bool protect = true;    // host code that touches device memory ends the process with a message
  double patience = 60;   // seconds that a collective waits for other ranks
  bool epilogues = true;  // cuBLASLt finds algorithms with an epilogue
  Driver driver = Driver::present;
  int capability = 90;  // compute capability of the devices
  bool kernels = true;  // the program's kernels were compiled for it
};

Settings settings();

// Takes effect at once. If the number or size of devices changes, all device memory is gone: call it between tests.
void configure(const Settings& settings);

// Settings for the length of a scope.
class Configured {
 public:
  explicit Configured(const Settings& wanted) : before_(settings()) { configure(wanted); }
  ~Configured() { configure(before_); }
  Configured(const Configured&) = delete;
  Configured& operator=(const Configured&) = delete;

 private:
  Settings before_;
};

enum class Call { allocation, launch, collective };

// The n-th call of this kind from now on fails (1: the next), on one device or, with -1, counted over all.
// An allocation gives cudaErrorMemoryAllocation, a launch cudaErrorLaunchOutOfResources (products are launches, too:
// CUBLAS_STATUS_EXECUTION_FAILED), a collective ncclUnhandledCudaError. n = 0 takes the request back.
void fail_nth(Call call, int n, int device = -1);

// While one exists, what the emulation finds wrong (a divergent barrier, a mismatched collective, ...) is kept here and
// the faulty kernel or call is abandoned with an error code; without one, it is printed and the process aborts.
class Findings {
 public:
  Findings();
  ~Findings();
  Findings(const Findings&) = delete;
  Findings& operator=(const Findings&) = delete;
  std::vector<std::string> all() const;
};

}  // namespace zt::emulation
