#include "ceilings.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "device/cpu/cpu_device.h"
#include "device/cpu/product.h"
#include "device/cpu/thread_pool.h"
#include "timing.h"

namespace zt::bench {

namespace {

// Part `index` of `count` elements cut into `parts`, at multiples of 16 elements.
std::pair<std::int64_t, std::int64_t> part_of(std::int64_t count, int parts, std::int64_t index) {
  const std::int64_t step = cpu::round_up((count + parts - 1) / parts, 16);
  return {std::min(count, index * step), std::min(count, (index + 1) * step)};
}

}  // namespace

double copy_rate(int threads, std::int64_t bytes, double seconds) {
  cpu::ThreadPool pool(threads);
  const std::int64_t count = std::max<std::int64_t>(bytes, 64);
  std::vector<char> from(static_cast<std::size_t>(count), 1), to(static_cast<std::size_t>(count));
  const double time = time_on_host(seconds, [&] {
    pool.for_each(threads, [&](std::int64_t index, int) {
      const auto [begin, end] = part_of(count, threads, index);
      std::memcpy(to.data() + begin, from.data() + begin, static_cast<std::size_t>(end - begin));
    });
  });
  return 2.0 * static_cast<double>(count) / time;
}

double triad_rate(int threads, std::int64_t bytes, double seconds) {
  cpu::ThreadPool pool(threads);
  const std::int64_t count = std::max<std::int64_t>(bytes / 4, 16);
  const auto size = static_cast<std::size_t>(count);
  std::vector<float> a(size), b(size, 1.0F), c(size, 2.0F);
  const double time = time_on_host(seconds, [&] {
    pool.for_each(threads, [&](std::int64_t index, int) {
      const auto [begin, end] = part_of(count, threads, index);
      float* const out = a.data();
      const float* const left = b.data();
      const float* const right = c.data();
      for (std::int64_t i = begin; i < end; ++i) out[i] = left[i] + 3.0F * right[i];
    });
  });
  return 12.0 * static_cast<double>(count) / time;
}

double plain_product_rate(int threads, const MatMul& op, double seconds) {
  const DType dtype = cpu::multiplies_natively(op.a.dtype) ? op.a.dtype : DType::f32;
  cpu::CpuDevice memory(1);
  const auto allocate = [&](std::int64_t elements, DType format) {
    Buffer buffer = memory.allocate(elements * static_cast<std::int64_t>(size_of(format)), MemoryCategory::workspace,
                                    "operand of a plain product");
    memory.run(Stream::compute, Initialize{.out = buffer.view(format),
                                           .distribution = Distribution::normal,
                                           .scale = 1.0F,
                                           .key = 1,
                                           .first_element = 0});
    return buffer;
  };
  const Buffer a = allocate(op.m * op.k, dtype), b = allocate(op.n * op.k, dtype),
               out = allocate(op.m * op.n, DType::f32);
  struct Part {
    cpu::Product product;
    std::int64_t row = 0;
    Buffer scratch;
  };
  std::vector<Part> parts;
  for (int index = 0; index < threads; ++index) {
    const auto [begin, end] = part_of(op.m, threads, index);
    if (begin == end) continue;
    Part part{.product = {.m = end - begin, .n = op.n, .k = op.k}, .row = begin, .scratch = {}};
    part.product.transpose_a = op.transpose_a, part.product.transpose_b = op.transpose_b;
    part.product.lda = op.transpose_a ? op.m : op.k, part.product.ldb = op.transpose_b ? op.k : op.n;
    part.product.ldc = op.n, part.product.dtype = dtype;
    part.scratch = memory.allocate(std::max<std::int64_t>(cpu::prepare_product(part.product), 64),
                                   MemoryCategory::workspace, "scratch of a plain product");
    parts.push_back(std::move(part));
  }
  cpu::ThreadPool pool(threads);
  const auto size = static_cast<std::int64_t>(size_of(dtype));
  const double time = time_on_host(seconds, [&] {
    pool.for_each(static_cast<std::int64_t>(parts.size()), [&](std::int64_t index, int) {
      const Part& part = parts[static_cast<std::size_t>(index)];
      const std::int64_t first = (op.transpose_a ? part.row : part.row * op.k) * size;
      cpu::run_product(part.product, a.at(first), b.data(), out.as<float>() + part.row * op.n, nullptr,
                       {part.scratch.at(0), part.scratch.bytes()});
    });
  });
  return product_flops(op) / time;
}

}  // namespace zt::bench
