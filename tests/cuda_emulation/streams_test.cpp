// Streams and events: a program that orders its streams gives the same in every mode; a missing event shows.
#include <algorithm>
#include <cstring>

#include "device_array.h"
#include "emulation.h"
#include "kernels/kernels.h"

using namespace zt::emulation;

namespace {

enum class Missing { nothing, first_event, second_event };

// Two rounds of: one stream fills a buffer from pinned memory, another one adds 1 to it, and the first may overwrite it
// only then. Returns both results.
std::vector<float> run(Streams mode, std::uint64_t seed, Missing missing) {
  constexpr std::size_t count = 128;
  constexpr std::size_t bytes = count * sizeof(float);
  Settings wanted = settings();
  wanted.streams = mode;
  wanted.seed = seed;
  const Configured configured(wanted);
  void* pinned = nullptr;
  REQUIRE(cudaMallocHost(&pinned, 2 * bytes) == cudaSuccess);
  auto* values = static_cast<float*>(pinned);
  std::fill(values, values + count, 10.0F);
  std::fill(values + count, values + 2 * count, 20.0F);
  const DeviceArray<float> buffer(count);
  const DeviceArray<float> results(std::vector<float>(2 * count, 0.0F));
  cudaStream_t copying = nullptr;
  cudaStream_t computing = nullptr;
  cudaEvent_t filled = nullptr;
  cudaEvent_t consumed = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&copying, cudaStreamNonBlocking) == cudaSuccess);
  REQUIRE(cudaStreamCreateWithFlags(&computing, cudaStreamNonBlocking) == cudaSuccess);
  REQUIRE(cudaEventCreateWithFlags(&filled, cudaEventDisableTiming) == cudaSuccess);
  REQUIRE(cudaEventCreateWithFlags(&consumed, cudaEventDisableTiming) == cudaSuccess);
  for (std::size_t round = 0; round < 2; ++round) {
    if (missing != Missing::second_event) CHECK(cudaStreamWaitEvent(copying, consumed, 0) == cudaSuccess);
    CHECK(cudaMemcpyAsync(buffer.get(), values + round * count, bytes, cudaMemcpyHostToDevice, copying) == cudaSuccess);
    CHECK(cudaEventRecord(filled, copying) == cudaSuccess);
    if (missing != Missing::first_event) CHECK(cudaStreamWaitEvent(computing, filled, 0) == cudaSuccess);
    CHECK(zt::samples::add_one_async(results.get() + round * count, buffer.get(), count, 512, computing) ==
          cudaSuccess);
    CHECK(cudaEventRecord(consumed, computing) == cudaSuccess);
  }
  CHECK(cudaStreamSynchronize(computing) == cudaSuccess);
  auto result = results.values();
  CHECK(cudaStreamDestroy(copying) == cudaSuccess);
  CHECK(cudaStreamDestroy(computing) == cudaSuccess);
  CHECK(cudaEventDestroy(filled) == cudaSuccess);
  CHECK(cudaEventDestroy(consumed) == cudaSuccess);
  CHECK(cudaFreeHost(pinned) == cudaSuccess);
  return result;
}

bool is_right(const std::vector<float>& result) {
  const std::size_t half = result.size() / 2;
  return std::count(result.begin(), result.begin() + static_cast<std::ptrdiff_t>(half), 11.0F) ==
             static_cast<std::ptrdiff_t>(half) &&
         std::count(result.begin() + static_cast<std::ptrdiff_t>(half), result.end(), 21.0F) ==
             static_cast<std::ptrdiff_t>(half);
}

int right_of_20_seeds(Missing missing) {
  int right = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) right += is_right(run(Streams::lazy_shuffled, seed, missing)) ? 1 : 0;
  return right;
}

}  // namespace

TEST_CASE("a program with all its events is right in every mode") {
  CHECK(is_right(run(Streams::eager, 1, Missing::nothing)));
  CHECK(is_right(run(Streams::lazy, 1, Missing::nothing)));
  CHECK(right_of_20_seeds(Missing::nothing) == 20);
}

TEST_CASE("a missing event does not show in eager mode, but in lazy mode") {
  CHECK(is_right(run(Streams::eager, 1, Missing::first_event)));
  CHECK_FALSE(is_right(run(Streams::lazy, 1, Missing::first_event)));
}

TEST_CASE("a missing event before a buffer is used again shows in shuffled lazy mode") {
  CHECK(is_right(run(Streams::eager, 1, Missing::second_event)));
  CHECK(right_of_20_seeds(Missing::second_event) < 15);
}

TEST_CASE("queries make progress, and an event knows when it was recorded") {
  Settings wanted = settings();
  wanted.streams = Streams::lazy;
  const Configured configured(wanted);
  const DeviceArray<float> x(std::vector<float>(128, 1.0F));
  const DeviceArray<float> y(128);
  cudaStream_t stream = nullptr;
  cudaEvent_t before = nullptr;
  cudaEvent_t after = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  REQUIRE(cudaEventCreate(&before) == cudaSuccess);
  REQUIRE(cudaEventCreate(&after) == cudaSuccess);
  CHECK(cudaEventRecord(before, stream) == cudaSuccess);
  CHECK(zt::samples::add_one_async(y.get(), x.get(), 128, 512, stream) == cudaSuccess);
  CHECK(cudaEventRecord(after, stream) == cudaSuccess);
  float milliseconds = -1;
  CHECK(cudaEventElapsedTime(&milliseconds, before, after) == cudaErrorNotReady);
  CHECK(cudaEventQuery(before) == cudaSuccess);
  CHECK(cudaStreamQuery(stream) == cudaErrorNotReady);
  CHECK(cudaGetLastError() == cudaErrorNotReady);  // it stays for the next who looks, as every other error
  CHECK(cudaStreamQuery(stream) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&milliseconds, before, after) == cudaSuccess);
  CHECK(milliseconds >= 0);
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
  CHECK(cudaEventDestroy(before) == cudaSuccess);
  CHECK(cudaEventDestroy(after) == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaErrorInvalidResourceHandle);
  cudaGetLastError();
}

TEST_CASE("pageable memory is read when the call returns, pinned memory when the stream gets there") {
  Settings wanted = settings();
  wanted.streams = Streams::lazy;
  const Configured configured(wanted);
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  const DeviceArray<float> array(1);
  std::vector<float> host = {1};
  for (const bool pinned : {false, true}) {
    if (pinned) REQUIRE(cudaHostRegister(host.data(), sizeof(float), 0) == cudaSuccess);
    host[0] = 1;
    CHECK(cudaMemcpyAsync(array.get(), host.data(), sizeof(float), cudaMemcpyHostToDevice, stream) == cudaSuccess);
    host[0] = 2;  // too early with pinned memory
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
    CHECK(array.values()[0] == (pinned ? 2.0F : 1.0F));
  }
  CHECK(cudaHostUnregister(host.data()) == cudaSuccess);
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
}
