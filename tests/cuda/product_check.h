// A product on a GPU against the CPU, and the error that the two may differ by.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "cuda/operation_check.h"

namespace zt::test {

struct ProductCase {
  std::int64_t m = 1, n = 1, k = 1;
  DType in = DType::f32, out = DType::f32, bias = DType::f32;
  bool has_bias = false, add = false;
  bool transpose_a = false, transpose_b = false;
  std::int64_t padding = 0;  // of all row strides
  std::int64_t offset = 0;   // elements that all operands start after their buffers
  double scale = 1.0;        // of a and b
  Activation activation = Activation::identity;
  enum class Follows { nothing, activated, derivative, both } follows = Follows::nothing;
};

inline std::string text_of(const ProductCase& c) {
  return std::to_string(c.m) + " x " + std::to_string(c.n) + " x " + std::to_string(c.k) + ", " +
         std::string(name_of(c.in)) + " to " + std::string(name_of(c.out)) +
         (c.has_bias ? ", bias " + std::string(name_of(c.bias)) : "") + (c.add ? ", add" : "") +
         (c.transpose_a ? ", a transposed" : "") + (c.transpose_b ? ", b transposed" : "") + ", padding " +
         std::to_string(c.padding) + ", offset " + std::to_string(c.offset) + ", " + std::string(name_of(c.activation));
}

// out, then what follows it.
inline std::vector<double> product_results(Workbench& bench, const ProductCase& c) {
  const auto operand = [&](std::int64_t rows, std::int64_t stride, DType dtype, std::uint64_t key, double scale) {
    std::vector<double> values = random_values(rows * stride, key, scale);
    values.insert(values.begin(), static_cast<std::size_t>(c.offset), 0.0);
    return bench.tensor(values, dtype).part(c.offset, rows * stride);
  };
  const std::int64_t lda = (c.transpose_a ? c.m : c.k) + c.padding;
  const std::int64_t ldb = (c.transpose_b ? c.k : c.n) + c.padding;
  const std::int64_t ldc = c.n + c.padding;
  MatMul op{.a = operand(c.transpose_a ? c.k : c.m, lda, c.in, 1, c.scale),
            .b = operand(c.transpose_b ? c.n : c.k, ldb, c.in, 2, c.scale),
            .out = operand(c.m, ldc, c.out, 3, 1.0),
            .m = c.m,
            .n = c.n,
            .k = c.k,
            .lda = lda,
            .ldb = ldb,
            .ldc = ldc,
            .transpose_a = c.transpose_a,
            .transpose_b = c.transpose_b,
            .add = c.add};
  if (c.has_bias) op.bias = operand(1, c.n, c.bias, 4, 1.0);
  op.activation = c.activation;
  const bool derivative = c.follows == ProductCase::Follows::derivative || c.follows == ProductCase::Follows::both;
  if (c.follows != ProductCase::Follows::nothing && c.follows != ProductCase::Follows::derivative) {
    op.activated = bench.output(c.m * c.n, c.out);
  }
  if (derivative) op.activation_input = operand(c.m, c.n, c.out, 5, 3.0);
  bench.run(op);
  std::vector<double> all = bench.read(op.out);
  if (op.activated) {
    const std::vector<double> activated = bench.read(op.activated);
    all.insert(all.end(), activated.begin(), activated.end());
  }
  return all;
}

// Both add k products in fp32 in some order, an error of (k + 1) 2^-24 sum |a b| each (Higham, "Accuracy and Stability
// of Numerical Algorithms", section 3.1), with sum |a b| <= k scale^2. Results are rounded to out's format once or
// twice, a bias of magnitude up to 1 once more; the slopes of the activations are below 1.2.
inline void check_product(const ProductCase& c, const GpuOptions& options = {}) {
  INFO(text_of(c));
  const BothResults both = on_both([&](Workbench& bench) { return product_results(bench, c); }, options);
  const double u = unit_roundoff(c.out);
  double largest = 1.0;
  for (const double value : both.cpu) largest = std::max(largest, std::isfinite(value) ? std::abs(value) : 0.0);
  const auto k = static_cast<double>(c.k);
  double absolute = 2.0 * (k + 2.0) * 0x1p-24 * k * c.scale * c.scale + u;
  if (c.follows != ProductCase::Follows::nothing) absolute = 1.2 * (absolute + 2.0 * u * largest) + 1e-6;
  if (options.tf32) absolute += 2.0 * 0x1p-11 * k * c.scale * c.scale;
  check_close(both.gpu, both.cpu, 2.0 * u, absolute);
}

struct ProductFormats {
  DType in, out;
};
inline constexpr std::array<ProductFormats, 5> product_formats = {{{DType::f32, DType::f32},
                                                                   {DType::bf16, DType::bf16},
                                                                   {DType::bf16, DType::f32},
                                                                   {DType::f16, DType::f16},
                                                                   {DType::f16, DType::f32}}};

inline void check_biases() {
  for (const ProductFormats formats : product_formats) {
    for (const DType bias : {DType::f32, DType::bf16, DType::f16}) {
      for (const bool add : {false, true}) {
        for (const std::int64_t offset : {0, 1}) {
          ProductCase c{.m = 6, .n = 8, .k = 5, .in = formats.in, .out = formats.out, .bias = bias, .has_bias = true};
          c.add = add;
          c.offset = offset;
          check_product(c);
        }
      }
    }
  }
}

inline void check_activations() {
  for (const GpuOptions options : {GpuOptions{}, GpuOptions{.gelu_epilogue = true}}) {
    for (const auto follows :
         {ProductCase::Follows::activated, ProductCase::Follows::derivative, ProductCase::Follows::both}) {
      for (const ProductFormats formats : product_formats) {
        ProductCase c{.m = 6, .n = 16, .k = 8, .in = formats.in, .out = formats.out, .bias = formats.out};
        c.activation = Activation::gelu_new;
        c.follows = follows;
        check_product(c, options);
        c.has_bias = follows == ProductCase::Follows::activated;
        check_product(c, options);
        c.n = 13;  // no row stride for cuBLASLt's GELU
        check_product(c, options);
      }
      for (const Activation activation : {Activation::gelu, Activation::relu, Activation::silu, Activation::tanh}) {
        check_product({.m = 3, .n = 8, .k = 4, .activation = activation, .follows = follows}, options);
      }
    }
  }
}

}  // namespace zt::test
