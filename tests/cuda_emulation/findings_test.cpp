// Mistakes in kernels, each of which the emulation must find: by a message that names the lines, or by wrong values.
#include <cmath>
#include <fstream>
#include <string>

#include "death.h"
#include "device_array.h"
#include "emulation.h"
#include "kernels/kernels.h"
#include "sanitizer.h"

using zt::emulation::Configured;
using zt::emulation::DeviceArray;
using zt::emulation::ending_of;
using zt::emulation::Findings;
using zt::emulation::Order;
using zt::emulation::Settings;
using zt::emulation::settings;
using zt::samples::Fault;

namespace {

constexpr std::size_t count = 256;

// "faulty.cu:N" of the line that ends with this comment.
std::string place(const std::string& comment) {
  std::ifstream file(ZEROTRAIN_FAULTY_KERNELS);
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.ends_with("// " + comment)) return "faulty.cu:" + std::to_string(number);
  }
  FAIL("no line of faulty.cu ends with // " << comment);
  return {};
}

// Runs a fault that must be reported; the message.
std::string finding_of(Fault fault) {
  Settings wanted = settings();
  wanted.order = Order::forward;  // which of two clashing threads is named depends on it
  const Configured configured(wanted);
  const Findings findings;
  const DeviceArray<float> output(std::vector<float>(count, 0.0F));
  CHECK(zt::samples::faulty(fault, output.get(), nullptr) == cudaErrorLaunchFailure);
  CHECK(cudaDeviceSynchronize() == cudaErrorLaunchFailure);  // the device stays broken
  CHECK(cudaDeviceReset() == cudaSuccess);
  REQUIRE(findings.all().size() == 1);
  return findings.all()[0];
}

int wrong_values(Fault fault, Order order) {
  Settings wanted = settings();
  wanted.order = order;
  const Configured configured(wanted);
  const DeviceArray<float> output(std::vector<float>(count, 0.0F));
  REQUIRE(zt::samples::faulty(fault, output.get(), nullptr) == cudaSuccess);
  int wrong = 0;
  const auto values = output.values();
  for (std::size_t i = 0; i < count; ++i) wrong += values[i] != static_cast<float>(255 - i) ? 1 : 0;
  return wrong;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("the kernel without a fault is right in all orders") {
  for (const Order order : {Order::forward, Order::reversed, Order::shuffled}) {
    CHECK(wrong_values(Fault::none, order) == 0);
  }
}

TEST_CASE("a missing barrier gives wrong values in every order") {
  for (const Order order : {Order::forward, Order::reversed, Order::shuffled}) {
    CHECK(wrong_values(Fault::missing_barrier, order) > 50);
  }
}

TEST_CASE("a missing __syncwarp gives wrong values in some order") {
  CHECK(wrong_values(Fault::missing_warp_barrier, Order::forward) > 200);
  CHECK(wrong_values(Fault::missing_warp_barrier, Order::reversed) == 0);  // why one order is not enough
}

TEST_CASE("cp.async without a wait gives values that are not there yet") {
  CHECK(wrong_values(Fault::missing_copy_wait, Order::forward) == 256);
}

TEST_CASE("a divergent barrier is named with both lines") {
  const std::string text = finding_of(Fault::divergent_barrier);
  CHECK(contains(text, "divergent barrier"));
  CHECK(contains(text, "threads 0-127 wait in __syncthreads at " + place("first barrier")));
  CHECK(contains(text, "threads 128-255 wait in __syncthreads at " + place("second barrier")));
}

TEST_CASE("wrong masks are named") {
  CHECK(contains(finding_of(Fault::lane_outside_mask), "thread 5 is not in the mask that it gives to __shfl_xor_sync"));
  CHECK(contains(finding_of(Fault::different_masks), "with mask 4294901761, other lanes of its warp wait in"));
  CHECK(contains(finding_of(Fault::reads_outside_mask), "reads a lane that is not in the mask"));
  CHECK(contains(finding_of(Fault::reads_outside_mask), place("outside read")));
}

TEST_CASE("different calls within a warp are named with both lines") {
  const std::string text = finding_of(Fault::different_calls);
  CHECK(contains(text, "__shfl_xor_sync at " + place("shuffle")));
  CHECK(contains(text, "__ballot_sync at " + place("vote")));
}

TEST_CASE("where no thread can go on, all are listed") {
  const std::string missing = finding_of(Fault::lane_missing);
  CHECK(contains(missing, "no thread can go on"));
  CHECK(contains(missing, "threads 32-39, 41-63 wait in __shfl_xor_sync at " + place("incomplete shuffle")));
  CHECK(contains(missing, "threads 40 have ended"));
  const std::string mixed = finding_of(Fault::barrier_within_warp);
  CHECK(contains(mixed, "no thread can go on"));
  CHECK(contains(mixed, place("barrier of four lanes")));
}

TEST_CASE("a misaligned row of ldmatrix is named") {
  CHECK(contains(finding_of(Fault::misaligned_row),
                 "gives ldmatrix a row that is no multiple of 16 at " + place("misaligned row")));
}

TEST_CASE("__trap is named") {
  CHECK(contains(finding_of(Fault::trap), "thread (3, 0, 0) calls __trap at " + place("trap")));
}

TEST_CASE("a write beyond dynamic shared memory is found") {
  if (zt::emulation::has_address_sanitizer) {
    const DeviceArray<float> output(count);
    const auto ending = ending_of([&] { zt::samples::faulty(Fault::beyond_shared_memory, output.get(), nullptr); });
    CHECK(contains(ending.text, place("beyond the end")));
  } else {
    CHECK(
        contains(finding_of(Fault::beyond_shared_memory), "wrote beyond the 1024 bytes of its dynamic shared memory"));
  }
}

TEST_CASE("what a kernel leaves unwritten is NaN") {
  const DeviceArray<float> untouched(count);
  for (const float value : untouched.values()) CHECK(std::isnan(value));
}
