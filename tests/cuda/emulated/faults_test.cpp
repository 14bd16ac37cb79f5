// The n-th allocation or launch of a small training step fails: one clean error, nothing left behind, no hang.
#include <cuda_runtime_api.h>

#include <functional>
#include <stdexcept>
#include <string>

#include "core/errors.h"
#include "cuda/operation_check.h"
#include "cuda_emulation/emulation.h"

namespace zt::test {
namespace {

std::size_t free_memory() {
  std::size_t free = 0;
  std::size_t total = 0;
  REQUIRE(cudaMemGetInfo(&free, &total) == cudaSuccess);
  return free;
}

// What a step does with a device, in small: operands from pinned memory, a product with bias and activation on one
// stream, a copy of its result on another, events between them.
void small_step() {
  const auto gpu = open_gpu({.gelu_epilogue = true});
  constexpr std::int64_t size = 16;
  constexpr std::int64_t bytes = size * size * 4;
  const auto buffer = [&](const char* name) { return gpu->allocate(bytes, MemoryCategory::activations, name); };
  const Buffer a = buffer("a");
  const Buffer b = buffer("b");
  const Buffer out = buffer("out");
  const Buffer activated = buffer("activated");
  const Buffer host = gpu->allocate_host(bytes, "batch");
  MatMul op{.a = a.view(DType::f32),
            .b = b.view(DType::f32),
            .out = out.view(DType::f32),
            .bias = ConstTensorView(b.data(), size, DType::f32),
            .m = size,
            .n = size,
            .k = size,
            .lda = size,
            .ldb = size,
            .ldc = size};
  op.activated = activated.view(DType::f32);
  op.activation = Activation::silu;  // a kernel after the product
  gpu->prepare(op);
  gpu->reserve_workspace();
  gpu->copy(Stream::copy, a.data(), host.data(), bytes);
  gpu->wait(Stream::compute, gpu->record(Stream::copy));
  gpu->run(Stream::compute, Fill{.out = b.view(DType::f32), .value = 1.0F});
  gpu->run(Stream::compute, op);
  gpu->wait(Stream::copy, gpu->record(Stream::compute));
  gpu->copy(Stream::copy, host.data(), activated.data(), bytes);
  gpu->synchronize(Stream::copy);
}

// Fails the first, second, ... such call until none is left; the number of those that failed.
int failures(emulation::Call call) {
  for (int n = 1;; ++n) {
    REQUIRE(n < 100);
    INFO("call " << n);
    const std::size_t before = free_memory();
    emulation::fail_nth(call, n);
    std::string error;
    try {
      small_step();
    } catch (const UserError& caught) {
      error = caught.what();
    } catch (const RunError& caught) {
      error = caught.what();
    }
    emulation::fail_nth(call, 0);
    CHECK(free_memory() == before);
    if (error.empty()) return n - 1;
    INFO(error);
    CHECK((error.find("error ") != std::string::npos || error.find("CUBLAS_STATUS_") != std::string::npos ||
           error.find("not enough memory") != std::string::npos));
    // The device is as good as before.
    CHECK(cudaGetLastError() == cudaSuccess);
    small_step();
  }
}

}  // namespace

TEST_CASE("whichever allocation fails, the error is clean and nothing stays behind") {
  // The library's handle, four buffers, the pinned one, the workspace.
  CHECK(failures(emulation::Call::allocation) == 7);
}

TEST_CASE("whichever launch fails, the error is clean and nothing stays behind") {
  // The first kernel of a device, the fill, the product, its activation.
  CHECK(failures(emulation::Call::launch) == 4);
}

TEST_CASE("memory that has run out is named by category and purpose, with what is held and what helps") {
  const auto gpu = open_gpu();
  const Buffer held = gpu->allocate(12345, MemoryCategory::parameters, "weights");
  const auto text_of = [&](MemoryCategory category) {
    try {
      gpu->allocate(std::int64_t{1} << 40, category, "the big one");
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const std::string text = text_of(MemoryCategory::optimizer);
  INFO(text);
  for (const char* part : {"1099511627776 bytes", "optimizer (the big one)", "12345 bytes of this rank", "nvidia-smi",
                           "raise zero_optimization.stage to 1"}) {
    INFO(part);
    CHECK(text.find(part) != std::string::npos);
  }
  CHECK(text_of(MemoryCategory::activations).find("train_micro_batch_size_per_gpu") != std::string::npos);
  CHECK(text_of(MemoryCategory::communication).find("stage3_max_live_parameters") != std::string::npos);
  CHECK(gpu->ledger().total() == 12345);
  // The device goes on.
  CHECK(gpu->allocate(100, MemoryCategory::data, "small").bytes() == 100);
}

}  // namespace zt::test
