// Rates of the products that training a GPT needs: matmul_bench [threads]. With one thread the rate of tiles is shown
// as a part of the rate of one library call for the whole product.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "device/cpu/cpu_device.h"
#include "device/cpu/matmul.h"
#include "device/cpu/product.h"

using namespace zt;

namespace {

template <typename F>
double seconds(const F& run) {
  run();
  double best = 1e30;
  for (int repetition = 0; repetition < 4; ++repetition) {
    const auto start = std::chrono::steady_clock::now();
    run();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

}  // namespace

int main(int argument_count, char** arguments) {
  const int threads = argument_count > 1 ? std::atoi(arguments[1]) : 1;
  cpu::CpuDevice device(threads);
  // Tokens, outputs and inputs of a layer.
  constexpr std::array<std::array<std::int64_t, 3>, 12> layers = {{{4096, 1152, 384},
                                                                   {4096, 384, 384},
                                                                   {4096, 1536, 384},
                                                                   {4096, 384, 1536},
                                                                   {4096, 65, 384},
                                                                   {4096, 72, 384},
                                                                   {4096, 256, 384},
                                                                   {1024, 2304, 768},
                                                                   {1024, 768, 768},
                                                                   {1024, 3072, 768},
                                                                   {1024, 768, 3072},
                                                                   {1024, 50304, 768}}};
  constexpr std::int64_t largest = std::int64_t{50304} * 1024;
  const Buffer a = device.allocate(largest * 4, MemoryCategory::activations, "a");
  const Buffer b = device.allocate(largest * 4, MemoryCategory::activations, "b");
  const Buffer out = device.allocate(largest * 4, MemoryCategory::activations, "out");
  std::printf("%s\n", device.description().c_str());
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const auto& [tokens, outputs, inputs] : layers) {
      for (int form = 0; form < 3; ++form) {
        MatMul op;
        op.a = a.view(dtype), op.b = b.view(dtype), op.out = out.view(dtype);
        op.m = form == 2 ? outputs : tokens;
        op.n = form == 0 ? outputs : inputs;
        op.k = form == 0 ? inputs : form == 1 ? outputs : tokens;
        op.transpose_a = form == 2, op.transpose_b = form == 0;
        op.lda = op.transpose_a ? op.m : op.k, op.ldb = op.transpose_b ? op.k : op.n, op.ldc = op.n;
        device.prepare(op);
        device.reserve_workspace();
        const double flops = product_flops(op);
        const double tiled = seconds([&] { device.run(Stream::compute, op); });
        const cpu::MatMulTiles tiles = cpu::matmul_tiles(op);
        std::printf("%s %-10s %5ld x %5ld x %5ld, tiles %3ld x %3ld: %5.0f GF/s", std::string(name_of(dtype)).c_str(),
                    std::array{"y = x Wt", "dx = dy W", "dW = dyt x"}.at(static_cast<std::size_t>(form)),
                    static_cast<long>(op.m), static_cast<long>(op.n), static_cast<long>(op.k),
                    static_cast<long>(tiles.rows), static_cast<long>(tiles.columns), flops / tiled * 1e-9);
        if (threads == 1 && cpu::multiplies_natively(dtype)) {
          cpu::Product whole{.m = op.m, .n = op.n, .k = op.k, .lda = op.lda, .ldb = op.ldb, .ldc = op.ldc};
          whole.transpose_a = op.transpose_a, whole.transpose_b = op.transpose_b, whole.dtype = dtype;
          const std::int64_t bytes = cpu::prepare_product(whole);
          const Buffer scratch = device.allocate(bytes, MemoryCategory::workspace, "whole product");
          const double single = seconds([&] {
            cpu::run_product(whole, a.data(), b.data(), out.as<float>(), nullptr, {scratch.at(0), bytes});
          });
          std::printf(", %.2f of one call", single / tiled);
        }
        std::printf("\n");
      }
    }
  }
}
