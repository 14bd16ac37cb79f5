// MatMul on a GPU against the CPU.
#include <algorithm>
#include <cmath>
#include <string>

#include "core/errors.h"
#include "cuda/product_check.h"

namespace zt::test {
namespace {

TEST_CASE("products in all formats and transpositions, aligned or not, are the CPU's") {
  for (const ProductFormats formats : product_formats) {
    for (const bool transpose_a : {false, true}) {
      for (const bool transpose_b : {false, true}) {
        ProductCase c{.in = formats.in, .out = formats.out, .transpose_a = transpose_a, .transpose_b = transpose_b};
        c.m = 5, c.n = 7, c.k = 9;
        check_product(c);
        c.m = 16, c.n = 24, c.k = 32;
        check_product(c);
        c.padding = 3;
        check_product(c);
      }
    }
  }
}

TEST_CASE("a product of one element, one row or one column") {
  check_product({});
  check_product({.m = 1, .n = 9, .k = 3, .in = DType::bf16, .out = DType::bf16, .transpose_b = true});
  check_product({.m = 9, .n = 1, .k = 3, .in = DType::f16, .out = DType::f16, .transpose_a = true});
}

TEST_CASE("a bias of any format, and results added to what is there") { check_biases(); }

TEST_CASE("a product over nothing is its bias, added or not; one of nothing does nothing") {
  for (const ProductFormats formats : product_formats) {
    for (const bool add : {false, true}) {
      for (const bool has_bias : {false, true}) {
        ProductCase c{.m = 3, .n = 300, .k = 0, .in = formats.in, .out = formats.out, .has_bias = has_bias, .add = add};
        c.padding = 2;
        check_product(c);
      }
    }
  }
  ProductCase empty{.m = 0, .n = 4, .k = 4};
  check_product(empty);
  empty.m = 4, empty.n = 0;
  check_product(empty);
  check_product({.m = 2,
                 .n = 3,
                 .k = 0,
                 .has_bias = true,
                 .activation = Activation::gelu_new,
                 .follows = ProductCase::Follows::activated});
}

TEST_CASE("where operands lie does not change a product's bits, as long as their rows start at 16 bytes") {
  const auto gpu = open_gpu();
  Workbench bench(*gpu);
  ProductCase c{.m = 16, .n = 24, .k = 32, .in = DType::bf16, .out = DType::bf16, .bias = DType::bf16};
  c.has_bias = true;
  const std::vector<double> expected = product_results(bench, c);
  for (const std::int64_t offset : {8, 24, 128}) {
    INFO("offset " << offset);
    c.offset = offset;
    check_equal(product_results(bench, c), expected);
  }
}

TEST_CASE("a result that does not fit fp16 becomes infinite") {
  const ProductCase c{.m = 4, .n = 8, .k = 16, .in = DType::f16, .out = DType::f16, .scale = 300.0};
  const BothResults both = on_both([&](Workbench& bench) { return product_results(bench, c); });
  CHECK(std::any_of(both.cpu.begin(), both.cpu.end(), [](double value) { return std::isinf(value); }));
  check_product(c);
}

TEST_CASE("TF32 is used when it is asked for, and for fp32 alone") {
  const ProductCase c{.m = 16, .n = 16, .k = 64};
  check_product(c, {.tf32 = true});
  const auto with = [&](const ProductCase& what, bool tf32) {
    const auto gpu = open_gpu({.tf32 = tf32});
    Workbench bench(*gpu);
    return product_results(bench, what);
  };
  CHECK(with(c, true) != with(c, false));
  const ProductCase bf16{.m = 16, .n = 16, .k = 64, .in = DType::bf16, .out = DType::f32};
  CHECK(with(bf16, true) == with(bf16, false));
}

TEST_CASE("an activation follows a product, in its call or after it") { check_activations(); }

TEST_CASE("a product that cuBLASLt does not have is refused at set-up, with its shape") {
  const auto gpu = open_gpu();
  Workbench bench(*gpu);
  MatMul op{.a = bench.tensor(random_values(6, 1), DType::bf16),
            .b = bench.tensor(random_values(12, 2), DType::bf16),
            .out = bench.output(8, DType::f16),
            .m = 2,
            .n = 4,
            .k = 3,
            .lda = 3,
            .ldb = 4,
            .ldc = 4};
  try {
    gpu->prepare(op);
    FAIL("bf16 operands have no fp16 product");
  } catch (const UserError& error) {
    const std::string text = error.what();
    INFO(text);
    CHECK(text.find("the product [2, 3] x [3, 4], bf16 to fp16, row strides 3, 4, 4") != std::string::npos);
    CHECK(text.find("CUBLAS_STATUS_") != std::string::npos);
  }
}

}  // namespace
}  // namespace zt::test
