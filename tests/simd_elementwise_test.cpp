// Activations and sums over sources.
#include <algorithm>
#include <functional>
#include <vector>

#include "simd_support.h"

using namespace zt;
using namespace zt::test;

namespace {

constexpr Activation all_activations[] = {Activation::identity, Activation::gelu_new, Activation::gelu,
                                          Activation::relu,     Activation::silu,     Activation::tanh};
const double pi = std::acos(-1.0);

double activation(Activation kind, double x) {
  switch (kind) {
    case Activation::identity: return x;
    case Activation::relu: return x > 0 ? x : 0.0;
    case Activation::gelu_new: {
      const double u = std::sqrt(2.0 / pi) * (x + 0.044715 * x * x * x);
      return x / (1.0 + std::exp(-2.0 * u));
    }
    case Activation::gelu: return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case Activation::silu: return x / (1.0 + std::exp(-x));
    case Activation::tanh: return std::tanh(x);
  }
  return not_a_number;
}

double activation_slope(Activation kind, double x) {
  switch (kind) {
    case Activation::identity: return 1.0;
    case Activation::relu: return x > 0 ? 1.0 : 0.0;
    case Activation::gelu_new: {
      const double v = 2.0 * std::sqrt(2.0 / pi);
      const double s = 1.0 / (1.0 + std::exp(-v * (x + 0.044715 * x * x * x)));
      return s + x * s * (1.0 - s) * v * (1.0 + 3 * 0.044715 * x * x);
    }
    case Activation::gelu:
      return 0.5 * std::erfc(-x / std::sqrt(2.0)) + x * std::exp(-0.5 * x * x) / std::sqrt(2.0 * pi);
    case Activation::silu: {
      const double s = 1.0 / (1.0 + std::exp(-x));
      return s + x * s * (1.0 - s);
    }
    case Activation::tanh: return 1.0 - std::tanh(x) * std::tanh(x);
  }
  return not_a_number;
}

std::vector<float> activation_inputs(Random& random) {
  std::vector<float> values;
  for (float x = -12.0F; x <= 12.0F; x += 0.0137F) values.push_back(x);
  for (const float x : {0.0F, 1e-20F, 1e-6F, 0.1F, 0.62F, 0.63F, 5.0F, 30.0F, 90.0F, 110.0F}) {
    values.push_back(x);
    values.push_back(-x);
  }
  for (const float x : normals(random, 1000, 3.0F)) values.push_back(x);
  return values;
}

float apply(Activation kind, float x, DType type = DType::f32) {
  const Tensor in(type, std::vector<float>{x});
  Tensor out(type, 1);
  Setup{}.run(ActivationForward{.in = in.view(), .out = out.view(), .activation = kind});
  return out.get(0);
}

float slope(Activation kind, float x, DType type = DType::f32) {
  const Tensor in(type, std::vector<float>{x});
  const Tensor d_out(type, std::vector<float>{1.0F});
  Tensor d_in(type, 1);
  Setup{}.run(ActivationBackward{.in = in.view(), .d_out = d_out.view(), .d_in = d_in.view(), .activation = kind});
  return d_in.get(0);
}

}  // namespace

TEST_CASE("activations equal their formulas in double precision") {
  Random random(1);
  const std::vector<float> inputs = activation_inputs(random);
  const auto count = static_cast<std::int64_t>(inputs.size());
  for_instruction_sets([&] {
    for (const DType type : all_dtypes) {
      for (const Activation kind : all_activations) {
        INFO("dtype " << name_of(type) << ", activation " << static_cast<int>(kind));
        const Tensor in(type, inputs, 1);
        Tensor out(type, count, 3);
        Setup{2, 0}.run(ActivationForward{.in = in.view(), .out = out.view(), .activation = kind});
        for (std::int64_t i = 0; i < count; ++i) {
          const double x = in.get(i);
          INFO("x " << x);
          // fp32: e^-x^2/2 inherits the rounding of its argument, up to 80 at the ends, scaled by the small result.
          const bool exact = kind == Activation::identity || kind == Activation::relu;
          require_close(out.get(i), activation(kind, x), type, exact ? 0.0 : 4e-7, exact ? 0.0 : 2e-7 * std::abs(x));
        }
      }
    }
  });
}

TEST_CASE("derivatives of activations equal their formulas in double precision") {
  Random random(2);
  const std::vector<float> inputs = activation_inputs(random);
  const auto count = static_cast<std::int64_t>(inputs.size());
  for_instruction_sets([&] {
    for (const DType type : all_dtypes) {
      const std::vector<float> gradients = rounded(type, normals(random, count));
      for (const Activation kind : all_activations) {
        INFO("dtype " << name_of(type) << ", activation " << static_cast<int>(kind));
        const Tensor in(type, inputs, 1);
        Tensor d_in(type, gradients, 3);  // in place
        Setup{2, 0}.run(
            ActivationBackward{.in = in.view(), .d_out = d_in.view(), .d_in = d_in.view(), .activation = kind});
        for (std::int64_t i = 0; i < count; ++i) {
          const double x = in.get(i);
          const double dy = gradients[static_cast<std::size_t>(i)];
          INFO("x " << x << ", d_out " << dy);
          require_close(d_in.get(i), activation_slope(kind, x) * dy, type, 1e-6, 1e-6 * std::abs(dy));
        }
      }
    }
  });
}

TEST_CASE("erf inside gelu has an absolute error below 2e-7") {
  for_instruction_sets([] {
    std::vector<float> inputs;
    for (float x = -8.0F; x <= 8.0F; x += 0.00037F) inputs.push_back(x);
    const Tensor in(DType::f32, inputs);
    Tensor out(DType::f32, in.count());
    Setup{}.run(ActivationForward{.in = in.view(), .out = out.view(), .activation = Activation::gelu});
    double worst = 0.0;
    for (std::int64_t i = 0; i < in.count(); ++i) {
      const double x = in.get(i);
      if (std::abs(x) < 1e-3) continue;
      const double erf = 2.0 * out.get(i) / x - 1.0;
      worst = std::max(worst, std::abs(erf - std::erf(x / std::sqrt(2.0))) - 2.0 * 0x1p-24);  // the product's rounding
    }
    REQUIRE(worst < 2e-7);
  });
}

TEST_CASE("activations are right far out, at infinities and for NaN") {
  for_instruction_sets([] {
    for (const Activation kind : all_activations) {
      INFO("activation " << static_cast<int>(kind));
      for (const DType type : all_dtypes) {
        REQUIRE(std::isnan(apply(kind, not_a_number, type)));
        REQUIRE(std::isnan(slope(kind, not_a_number, type)));
      }
      const bool linear = kind == Activation::identity;
      const bool bounded = kind == Activation::tanh;
      for (const float x : {200.0F, 1e4F, 1e20F, 3e38F, infinite}) {
        INFO("x " << x);
        REQUIRE(apply(kind, x) == (bounded ? 1.0F : x));
        REQUIRE(apply(kind, -x) == (bounded ? -1.0F : linear ? -x : 0.0F));
        REQUIRE(slope(kind, x) == (bounded ? 0.0F : 1.0F));
        REQUIRE(slope(kind, -x) == (linear ? 1.0F : 0.0F));
      }
    }
  });
}

TEST_CASE("activations do not depend on threads, alignment or position") {
  Random random(3);
  for_instruction_sets([&] {
    for (const DType type : all_dtypes) {
      for (const std::int64_t size : {std::int64_t{1}, std::int64_t{37}, std::int64_t{70001}}) {
        const std::vector<float> values = normals(random, size, 2.0F);
        const std::vector<float> gradients = normals(random, size);
        for (const Activation kind : {Activation::gelu_new, Activation::gelu, Activation::tanh}) {
          require_same_everywhere([&](Setup setup) {
            const Tensor in(type, values, setup.offset);
            const Tensor d_out(type, gradients, setup.offset);
            Tensor out(type, size, setup.offset);
            Tensor d_in(type, size, setup.offset);
            setup.run(ActivationForward{.in = in.view(), .out = out.view(), .activation = kind});
            setup.run(
                ActivationBackward{.in = in.view(), .d_out = d_out.view(), .d_in = d_in.view(), .activation = kind});
            // The last element alone, in the first place.
            const Tensor one(type, std::vector<float>{values.back()});
            Tensor alone(type, 1);
            setup.run(ActivationForward{.in = one.view(), .out = alone.view(), .activation = kind});
            REQUIRE(alone.get(0) == out.get(size - 1));
            return collect(out, d_in);
          });
        }
      }
    }
  });
}

TEST_CASE("a fold over sources equals the sequential loop in float, to the bit") {
  Random random(4);
  for_instruction_sets([&] {
    for (const DType acc_type : all_dtypes) {
      for (const DType source_type : all_dtypes) {
        for (const std::int64_t size : {0, 1, 5, 16, 63, 64, 65, 130, 1001}) {
          const std::int64_t number = between(random, 1, 9);
          const bool first = random() % 2 == 0;
          std::vector<std::vector<float>> values;
          for (std::int64_t k = 0; k < number; ++k) values.push_back(rounded(source_type, normals(random, size)));
          const std::vector<float> before = rounded(acc_type, normals(random, size));
          require_same_everywhere([&](Setup setup) {
            std::vector<Tensor> sources;
            for (const auto& one : values) sources.emplace_back(source_type, one, setup.offset);
            std::vector<const void*> pointers;
            for (const Tensor& one : sources) pointers.push_back(one.view().data);
            Tensor acc(acc_type, before, setup.offset);
            setup.run(ReduceOnto{.acc = acc.view(), .sources = pointers, .source_dtype = source_type, .first = first});
            for (std::int64_t i = 0; i < size; ++i) {
              const auto at = static_cast<std::size_t>(i);
              float sum = first ? values[0][at] : before[at];
              for (std::size_t k = first ? 1 : 0; k < values.size(); ++k) sum += values[k][at];
              REQUIRE(acc.get(i) == round_to(acc_type, sum));
            }
            return collect(acc);
          });
        }
      }
    }
  });
}

TEST_CASE("the accumulator of a fold may be one of the sources") {
  Random random(5);
  for_instruction_sets([&] {
    const std::vector<float> a = normals(random, 1000);
    const std::vector<float> b = normals(random, 1000);
    const std::vector<float> c = normals(random, 1000);
    const Tensor first(DType::f32, a);
    Tensor acc(DType::f32, b);
    const Tensor last(DType::f32, c);
    const std::vector<const void*> pointers = {first.view().data, acc.view().data, last.view().data};
    Setup{2, 0}.run(ReduceOnto{.acc = acc.view(), .sources = pointers, .source_dtype = DType::f32, .first = true});
    for (std::size_t i = 0; i < a.size(); ++i) REQUIRE(acc.floats()[i] == (a[i] + b[i]) + c[i]);
  });
}

TEST_CASE("a fold that leaves fp16 becomes infinite") {
  const Tensor a(DType::f16, {60000.0F, -60000.0F, 65504.0F});
  const Tensor b(DType::f16, {60000.0F, -60000.0F, 8.0F});
  Tensor acc(DType::f16, 3);
  const std::vector<const void*> pointers = {a.view().data, b.view().data};
  for_instruction_sets([&] {
    Setup{}.run(ReduceOnto{.acc = acc.view(), .sources = pointers, .source_dtype = DType::f16, .first = true});
    REQUIRE(acc.values() == std::vector<float>{infinite, -infinite, 65504.0F});
  });
}

TEST_CASE("a fold over nothing is zero, or leaves the accumulator") {
  Tensor acc(DType::bf16, {1.0F, 2.0F});
  Setup{}.run(ReduceOnto{.acc = acc.view(), .sources = {}, .source_dtype = DType::bf16, .first = false});
  REQUIRE(acc.values() == std::vector<float>{1.0F, 2.0F});
  Setup{}.run(ReduceOnto{.acc = acc.view(), .sources = {}, .source_dtype = DType::bf16, .first = true});
  REQUIRE(acc.values() == std::vector<float>{0.0F, 0.0F});
}
