#include "cuda/bits_check.h"
#include "device/cpu/simd.h"

namespace zt::test {
namespace {

// The CPU fuses multiplications and additions where its instructions do; a GPU always does.
bool cpu_fuses() { return cpu::instruction_set() >= cpu::InstructionSet::avx2; }

Initialize initialize(TensorView out, Distribution distribution, std::int64_t first_element) {
  return {.out = out,
          .distribution = distribution,
          .scale = 0.02F,
          .key = 0x123456789abcdefULL,
          .first_element = first_element};
}

}  // namespace

TEST_CASE("initial values on a GPU are the CPU's to the bit, from any element on") {
  for (const DType dtype : all_dtypes) {
    for (const Distribution distribution : {Distribution::normal, Distribution::uniform, Distribution::constant}) {
      for (const std::int64_t first :
           {std::int64_t{0}, std::int64_t{1}, std::int64_t{6}, (std::int64_t{1} << 34) + 3}) {
        for (const std::int64_t offset : {0, 1}) {
          INFO(name_of(dtype) << ", distribution " << static_cast<int>(distribution) << " from " << first << ", offset "
                              << offset);
          if (distribution == Distribution::normal && !cpu_fuses()) continue;
          check_same_bits([&](Workbench& bench) -> std::vector<TensorView> {
            const Operand out = operand(bench, random_values(1030, 1), dtype, offset);
            bench.run(initialize(out.view, distribution, first));
            return {out.whole};
          });
        }
      }
    }
  }
}

TEST_CASE("normal initial values on a GPU are near those of a CPU without fused arithmetic") {
  // Logarithm and cosine then differ by about an ulp each: 1e-6 of the largest values, which are below 6 scales.
  const auto before = cpu::instruction_set();
  cpu::use_instruction_set(cpu::InstructionSet::baseline);
  const BothResults both = on_both([](Workbench& bench) {
    const TensorView out = bench.output(5000, DType::f32);
    bench.run(initialize(out, Distribution::normal, 0));
    return bench.read(out);
  });
  cpu::use_instruction_set(before);
  check_close(both.gpu, both.cpu, 1e-6, 6 * 0.02 * 1e-6);
}

TEST_CASE("initial values do not depend on how a tensor is cut") {
  const auto gpu = open_gpu();
  Workbench bench(*gpu);
  const TensorView whole = bench.output(100, DType::f32);
  const TensorView pieces = bench.output(100, DType::f32);
  for (const Distribution distribution : {Distribution::normal, Distribution::uniform}) {
    bench.run(initialize(whole, distribution, 40));
    bench.run(initialize(pieces.part(0, 33), distribution, 40));
    bench.run(initialize(pieces.part(33, 67), distribution, 73));
    check_equal(bench.read(pieces), bench.read(whole));
  }
}

TEST_CASE("dropout on a GPU keeps the CPU's elements and bits") {
  for (const DType dtype : all_dtypes) {
    for (const float probability : {0.0F, 0.1F, 0.5F}) {
      // Samples of 96 elements begin at a Philox block; those of 97 anywhere.
      for (const std::int64_t per_sample : {96, 97}) {
        for (const std::int64_t offset : {0, 1}) {
          INFO(name_of(dtype) << ", probability " << probability << ", " << per_sample << " elements a sample, offset "
                              << offset);
          check_same_bits([&](Workbench& bench) -> std::vector<TensorView> {
            const Operand in = operand(bench, random_values(13 * per_sample, 2), dtype, offset);
            const Operand out = operand(bench, random_values(13 * per_sample, 3), dtype, offset);
            const Dropout dropout{
                .probability = probability, .key = 99, .first_sample = 5, .elements_per_sample = per_sample};
            bench.run(DropoutForward{.in = in.view, .out = out.view, .dropout = dropout});
            bench.run(DropoutForward{.in = in.view, .out = in.view, .dropout = dropout});
            return {in.whole, out.whole};
          });
        }
      }
    }
  }
}

TEST_CASE("dropout of nothing and of one element") {
  for (const std::int64_t count : {0, 1}) {
    check_same_bits([&](Workbench& bench) -> std::vector<TensorView> {
      const Operand in = operand(bench, random_values(count, 2), DType::bf16, 0);
      bench.run(
          DropoutForward{.in = in.view,
                         .out = in.view,
                         .dropout = {.probability = 0.3F, .key = 4, .first_sample = 3, .elements_per_sample = 1}});
      return {in.whole};
    });
  }
}

}  // namespace zt::test
