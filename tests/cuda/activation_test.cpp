#include <limits>

#include "cuda/bits_check.h"

namespace zt::test {
namespace {

constexpr Activation activations[] = {Activation::identity, Activation::gelu_new, Activation::gelu,
                                      Activation::relu,     Activation::silu,     Activation::tanh};

// What both devices make of fp32 differs by a few roundings of 2^-24, more where e^-x or e^(-x^2 / 2) has a large
// exponent, in which the rounding of the exponent counts; but there it is small. Rounded to 16 bits, the two may lie
// on either side of a tie: one step, twice the unit roundoff.
void check_activation(const BothResults& both, DType dtype) {
  const double relative = 2e-6 + (dtype == DType::f32 ? 0.0 : 2.0 * unit_roundoff(dtype));
  const double absolute = dtype == DType::f16 ? 0x1p-24 : 1e-8;
  check_close(both.gpu, both.cpu, relative, absolute);
}

std::vector<double> values_and_limits(std::int64_t count) {
  std::vector<double> values = random_values(count, 11, 12.0);
  for (const double special :
       {0.0, -0.0, 1e-5, -0.7517, -1.0, 16.5, -20.0, 90.0, -90.0, 130.0, -130.0, 1e30, -1e30,
        static_cast<double>(INFINITY), -static_cast<double>(INFINITY), std::numeric_limits<double>::quiet_NaN()}) {
    values.push_back(special);
  }
  return values;
}

}  // namespace

TEST_CASE("activations on a GPU have the CPU's values, limits and NaN") {
  for (const DType dtype : all_dtypes) {
    for (const Activation activation : activations) {
      for (const std::int64_t offset : {0, 1}) {
        INFO(name_of(dtype) << " " << name_of(activation) << ", offset " << offset);
        const BothResults both = on_both([&](Workbench& bench) {
          const Operand in = operand(bench, values_and_limits(700), dtype, offset);
          const Operand out = operand(bench, random_values(in.view.count, 3), dtype, offset);
          bench.run(ActivationForward{.in = in.view, .out = out.view, .activation = activation});
          bench.run(ActivationForward{.in = in.view, .out = in.view, .activation = activation});  // in place
          std::vector<double> results = bench.read(out.whole);
          const std::vector<double> in_place = bench.read(in.whole);
          results.insert(results.end(), in_place.begin(), in_place.end());
          return results;
        });
        check_activation(both, dtype);
      }
    }
  }
}

TEST_CASE("gradients of activations on a GPU are the CPU's, also in the memory of d_out") {
  for (const DType dtype : all_dtypes) {
    for (const Activation activation : activations) {
      for (const std::int64_t offset : {0, 1}) {
        INFO(name_of(dtype) << " " << name_of(activation) << ", offset " << offset);
        const BothResults both = on_both([&](Workbench& bench) {
          const Operand in = operand(bench, values_and_limits(700), dtype, offset);
          const Operand d_out = operand(bench, random_values(in.view.count, 12), dtype, offset);
          bench.run(
              ActivationBackward{.in = in.view, .d_out = d_out.view, .d_in = d_out.view, .activation = activation});
          return bench.read(d_out.whole);
        });
        // Slopes cross 0 at points that the devices see a rounding apart.
        check_activation(both, dtype);
      }
    }
  }
}

TEST_CASE("activations of nothing and of one element") {
  for (const std::int64_t count : {0, 1}) {
    const BothResults both = on_both([&](Workbench& bench) {
      const Operand in = operand(bench, random_values(count, 1), DType::bf16, 0);
      bench.run(ActivationForward{.in = in.view, .out = in.view, .activation = Activation::relu});
      bench.run(ActivationBackward{.in = in.view, .d_out = in.view, .d_in = in.view, .activation = Activation::relu});
      return bench.read(in.whole);
    });
    check_equal(both.gpu, both.cpu);
  }
}

}  // namespace zt::test
