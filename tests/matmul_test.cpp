#include "device/cpu/matmul.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catch_compat.h"
#include "cpu_test_memory.h"
#include "device/cpu/attention.h"
#include "device/cpu/panels.h"
#include "device/cpu/product.h"
#include "device/cpu/thin_product.h"

using namespace zt;
using namespace zt::test;

namespace {

const bool limited = limit_by_environment();

struct Case {
  std::int64_t m = 1, n = 1, k = 1;
  bool transpose_a = false, transpose_b = false;
  DType dtype = DType::f32, out_dtype = DType::f32;
  std::int64_t pad_a = 0, pad_b = 0, pad_out = 0;  // of the row strides
  bool bias = false;
  DType bias_dtype = DType::f32;
  bool add = false;
};

struct Operands {
  Memory a, b, bias, out;
  MatMul op;
};

Operands make_operands(const Case& c, std::int64_t byte_offset = 0) {
  const std::int64_t lda = (c.transpose_a ? c.m : c.k) + c.pad_a, ldb = (c.transpose_b ? c.k : c.n) + c.pad_b;
  const std::int64_t ldc = c.n + c.pad_out;
  const std::int64_t offset_16 = is_16_bit(c.dtype) ? byte_offset / 2 : byte_offset;
  Operands o{Memory((c.transpose_a ? c.k : c.m) * lda, c.dtype, offset_16),
             Memory((c.transpose_b ? c.n : c.k) * ldb, c.dtype, offset_16 * 3 % 64),
             Memory(c.n, c.bias_dtype, is_16_bit(c.bias_dtype) ? byte_offset / 2 : byte_offset),
             Memory(c.m * ldc, c.out_dtype, is_16_bit(c.out_dtype) ? byte_offset / 2 : byte_offset),
             {}};
  o.a.randomize(1);
  o.b.randomize(2);
  o.bias.randomize(3);
  o.out.randomize(4);
  o.op = MatMul{.a = o.a.view(),
                .b = o.b.view(),
                .out = o.out.view(),
                .bias = c.bias ? o.bias.view() : ConstTensorView{},
                .m = c.m,
                .n = c.n,
                .k = c.k,
                .lda = lda,
                .ldb = ldb,
                .ldc = ldc,
                .transpose_a = c.transpose_a,
                .transpose_b = c.transpose_b,
                .add = c.add};
  return o;
}

void run(const MatMul& op, int threads) {
  with_context(threads, cpu::matmul_workspace(op), [&](cpu::Context& context) { cpu::run_matmul(op, context); });
}

std::string text_of(const Case& c) {
  return std::to_string(c.m) + "x" + std::to_string(c.n) + "x" + std::to_string(c.k) + (c.transpose_a ? " ta" : "") +
         (c.transpose_b ? " tb" : "") + " " + std::string(name_of(c.dtype)) + "->" + std::string(name_of(c.out_dtype)) +
         " pads " + std::to_string(c.pad_a) + "," + std::to_string(c.pad_b) + "," + std::to_string(c.pad_out) +
         (c.bias ? " bias " + std::string(name_of(c.bias_dtype)) : "") + (c.add ? " add" : "");
}

// The sum of a row's products in double precision, and of their magnitudes, added to what is there. Sanitizers leave
// this out: it is most of the test's work, and none of what it tests.
struct Sum {
  double exact = 0.0, magnitude = 0.0;
};
__attribute__((no_sanitize("address", "undefined", "thread"))) void add_products(const double* a, std::int64_t a_step,
                                                                                 const double* b, std::int64_t b_step,
                                                                                 std::int64_t count, Sum& sum) {
  for (std::int64_t p = 0; p < count; ++p) {
    const double product = a[p * a_step] * b[p * b_step];
    sum.exact += product;
    sum.magnitude += std::abs(product);
  }
}

// The error of a sum of k products in fp32 in any order, each product rounded or not, is at most
// (k + 1) 2^-24 / (1 - ...) sum |a b| (Higham, "Accuracy and Stability of Numerical Algorithms", section 3.1); one more
// for the bias. Storing and adding round by at most a unit roundoff of out's dtype each.
void check_against_reference(const Case& c) {
  INFO(text_of(c));
  Operands o = make_operands(c);
  const std::vector<double> a = o.a.values(), b = o.b.values(), before = o.out.values();
  run(o.op, 2);
  const MatMul& op = o.op;
  std::int64_t wrong = 0, touched_padding = 0;
  for (std::int64_t i = 0; i < c.m; ++i) {
    for (std::int64_t j = 0; j < op.ldc; ++j) {
      const double result = o.out.get(i * op.ldc + j);
      if (j >= c.n) {
        touched_padding += result == before[static_cast<std::size_t>(i * op.ldc + j)] ? 0 : 1;
        continue;
      }
      const double bias = c.bias ? o.bias.get(j) : 0.0;
      Sum sum{.exact = bias, .magnitude = std::abs(bias)};
      add_products(a.data() + (c.transpose_a ? i : i * op.lda), c.transpose_a ? op.lda : 1,
                   b.data() + (c.transpose_b ? j * op.ldb : j), c.transpose_b ? 1 : op.ldb, c.k, sum);
      double exact = sum.exact;
      const double magnitude = sum.magnitude;
      const double u = unit_roundoff(c.out_dtype);
      double bound = static_cast<double>(c.k + 2) * 0x1.01p-24 * magnitude;
      bound += 1.01 * u * (std::abs(exact) + bound) + 0x1p-25;
      if (c.add) {
        exact += before[static_cast<std::size_t>(i * op.ldc + j)];
        bound += 1.01 * u * (std::abs(exact) + bound);
      }
      wrong += std::abs(result - exact) <= bound ? 0 : 1;
    }
  }
  CHECK(wrong == 0);
  CHECK(touched_padding == 0);
}

constexpr std::array<DType, 3> all_dtypes = {DType::f32, DType::bf16, DType::f16};

template <typename F>
void for_each_form(F&& f) {
  for (const DType dtype : all_dtypes) {
    for (const DType out : {dtype, DType::f32}) {
      for (const bool ta : {false, true}) {
        for (const bool tb : {false, true}) f(dtype, out, ta, tb);
      }
      if (dtype == DType::f32) break;  // the same twice
    }
  }
}

}  // namespace

TEST_CASE("products agree with double precision in every form, dtype and shape") {
  for_each_form([](DType dtype, DType out, bool ta, bool tb) {
    for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{{1, 1, 1},
                                                                          {4, 1, 512},
                                                                          {1, 65, 384},
                                                                          {17, 33, 5},
                                                                          {65, 40, 1100},
                                                                          {300, 130, 70},
                                                                          {129, 450, 33},
                                                                          {70, 1024, 530}}) {
      check_against_reference({m, n, k, ta, tb, dtype, out});
      check_against_reference({m, n, k, ta, tb, dtype, out, 3, 5, 7});
    }
  });
}

TEST_CASE("products add a bias of any dtype and add to what the output holds") {
  for_each_form([](DType dtype, DType out, bool ta, bool tb) {
    for (const DType bias : all_dtypes) {
      check_against_reference({37, 50, 29, ta, tb, dtype, out, 0, 0, 0, true, bias, false});
      check_against_reference({37, 50, 1029, ta, tb, dtype, out, 1, 0, 2, true, bias, true});
    }
    check_against_reference({37, 450, 29, ta, tb, dtype, out, 0, 0, 0, false, DType::f32, true});
    check_against_reference({300, 50, 129, ta, tb, dtype, out, 0, 0, 9, false, DType::f32, true});
  });
}

TEST_CASE("products with a dimension of a few agree with double precision") {
  for_each_form([](DType dtype, DType out, bool ta, bool tb) {
    for (std::int64_t few = 1; few <= cpu::thin_extent + 1; ++few) {
      for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{{few, 37, 100},
                                                                            {few, 203, 513},
                                                                            {few, 1, 1},
                                                                            {few, 9, 4100},
                                                                            {37, 50, few},
                                                                            {202, 513, few},
                                                                            {1, 1, few}}) {
        check_against_reference({m, n, k, ta, tb, dtype, out});
      }
      check_against_reference({few, 203, 65, ta, tb, dtype, out, 3, 5, 7, true, dtype, true});
      check_against_reference({37, 203, few, ta, tb, dtype, out, 3, 5, 7, true, DType::f32, true});
    }
  });
}

// Each is the same sum in the same order, whatever else is computed beside it.
TEST_CASE("an element of a product of few rows has the same bits in every column") {
  for (const bool transpose_b : {false, true}) {
    Operands o = make_operands({5, 203, 129, false, transpose_b});
    for (std::int64_t p = 0; p < 129; ++p) {
      const double value = o.b.get(transpose_b ? p : p * 203);
      for (std::int64_t j = 1; j < 203; ++j) o.b.set(transpose_b ? j * 129 + p : p * 203 + j, value);
    }
    run(o.op, 2);
    std::int64_t different = 0;
    for (std::int64_t i = 0; i < 5; ++i) {
      for (std::int64_t j = 1; j < 203; ++j) different += o.out.get(i * 203 + j) == o.out.get(i * 203) ? 0 : 1;
    }
    CHECK(different == 0);
  }
}

TEST_CASE("adding to the output has the bits of a product of its own, rounded, then added") {
  for_each_form([](DType dtype, DType out, bool ta, bool tb) {
    for (const auto& [m, n, k] :
         std::vector<std::array<std::int64_t, 3>>{{33, 47, 1500}, {384, 450, 300}, {5, 1170, 301}, {270, 190, 7}}) {
      Case c{m, n, k, ta, tb, dtype, out};
      Operands product = make_operands(c);
      run(product.op, 1);
      c.add = true;
      c.pad_out = 3;
      Operands sum = make_operands(c);
      const Operands before = make_operands(c);
      run(sum.op, 2);
      std::int64_t different = 0;
      for (std::int64_t i = 0; i < m * n; ++i) {
        const std::int64_t at = i / n * (n + 3) + i % n;
        Memory expected(1, out);
        expected.set(0, static_cast<float>(before.out.get(at)) + static_cast<float>(product.out.get(i)));
        different += expected.get(0) == sum.out.get(at) ? 0 : 1;
      }
      CHECK(different == 0);
    }
  });
}

TEST_CASE("the bits of a product do not depend on threads, alignment or repetition") {
  for_each_form([](DType dtype, DType out, bool ta, bool tb) {
    for (const bool extras : {false, true}) {
      for (const auto& [m, n, k] :
           std::vector<std::array<std::int64_t, 3>>{{270, 500, 700}, {4, 700, 515}, {7, 130, 900}, {300, 421, 5}}) {
        const Case c{m, n, k, ta, tb, dtype, out, extras ? 1 : 0, 0, extras ? 2 : 0, extras, dtype, extras};
        INFO(text_of(c));
        Operands first = make_operands(c);
        run(first.op, 1);
        for (const auto& [threads, byte_offset] : {std::pair{1, 0}, {2, 4}, {4, 20}, {4, 60}}) {
          Operands again = make_operands(c, byte_offset);
          run(again.op, threads);
          CHECK(again.out.same_bits(first.out));
        }
      }
    }
  });
}

TEST_CASE("an empty product does nothing, and one over nothing gives zeros and bias") {
  for (const DType dtype : all_dtypes) {
    for (const auto& [m, n] : {std::pair{0, 5}, std::pair{5, 0}}) {
      Operands o = make_operands({m, n, 7, false, true, dtype, dtype});
      run(o.op, 2);
    }
    check_against_reference({9, 300, 0, false, true, dtype, dtype});
    check_against_reference({9, 300, 0, false, true, dtype, dtype, 0, 0, 1, true, dtype, true});
  }
}

TEST_CASE("a product that does not fit fp16 becomes infinite, and NaN stays NaN") {
  for (const DType dtype : all_dtypes) {
    Operands o = make_operands({2, 2, 2, false, false, dtype, dtype});
    for (int i = 0; i < 4; ++i) o.a.set(i, 300.0), o.b.set(i, i % 2 == 0 ? 300.0 : -300.0);
    run(o.op, 1);
    const double expected = dtype == DType::f16 ? std::numeric_limits<double>::infinity() : 180000.0;
    CHECK(o.out.get(0) == Approx(expected).epsilon(0.01));
    CHECK(o.out.get(1) == Approx(-expected).epsilon(0.01));
    o.a.set(0, std::numeric_limits<double>::quiet_NaN());
    run(o.op, 1);
    CHECK(std::isnan(o.out.get(0)));
    CHECK_FALSE(std::isnan(o.out.get(2)));
  }
}

TEST_CASE("panels are rounded exactly as single numbers are") {
  // Every value of 16 bits and its neighbourhood between two of them.
  std::vector<float> values;
  for (std::uint32_t upper = 0; upper < 0x10000U; ++upper) {
    for (const std::uint32_t lower : {0x0000U, 0x0fffU, 0x1000U, 0x1001U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU}) {
      values.push_back(std::bit_cast<float>(upper << 16 | lower));
    }
  }
  for (const float tiny : {0x1p-24F, 0x1p-25F, 0x1.8p-25F, 0x1.002p-14F, 65519.0F, 65520.0F}) values.push_back(tiny);
  const auto count = static_cast<std::int64_t>(values.size());
  std::vector<bf16_t> bf16(values.size());
  std::vector<f16_t> f16(values.size());
  cpu::store_panel(values.data(), count, DType::bf16, bf16.data(), count, 1, count, false);
  cpu::store_panel(values.data(), count, DType::f16, f16.data(), count, 1, count, false);
  std::int64_t different = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    different += bf16[i].bits == from_float<bf16_t>(values[i]).bits ? 0 : 1;
    different += f16[i].bits == from_float<f16_t>(values[i]).bits ? 0 : 1;
  }
  CHECK(different == 0);

  std::vector<f16_t> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i].bits = static_cast<std::uint16_t>(i);
  std::vector<float> loaded(all.size());
  cpu::load_panel(DType::f16, all.data(), 65536, loaded.data(), 65536, 1, 65536);
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const float expected = to_float(all[i]);
    const bool same = std::isnan(expected)
                          ? std::isnan(loaded[i])
                          : std::bit_cast<std::uint32_t>(expected) == std::bit_cast<std::uint32_t>(loaded[i]);
    wrong += same ? 0 : 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("tiles depend on the shape alone and leave work for many threads") {
  const auto tasks = [](std::int64_t m, std::int64_t n, std::int64_t k) {
    MatMul op;
    op.m = m, op.n = n, op.k = k;
    const cpu::MatMulTiles tiles = cpu::matmul_tiles(op);
    return (m + tiles.rows - 1) / tiles.rows * ((n + tiles.columns - 1) / tiles.columns);
  };
  CHECK(tasks(4, 1, 512) == 1);
  CHECK(tasks(4096, 384, 384) >= 16);
  CHECK(tasks(1024, 768, 768) >= 16);
  CHECK(tasks(384, 384, 4096) >= 4);
  CHECK(tasks(1024, 50304, 768) >= 16);
}

// Where the library reads operands where they lie, rows that it walks down must not all meet in the same few lines of
// the cache: half the speed of models 1024 wide, or of sequences of 1024, hangs on it.
TEST_CASE("below AVX-512 no large product walks down rows that lie a multiple of 4 KiB apart") {
  for_each_form([](DType dtype, DType out, bool ta, bool tb) {
    for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{{300, 1024, 2048}, {1024, 200, 1024}}) {
      MatMul op{.a = {nullptr, 0, dtype}, .b = {nullptr, 0, dtype}, .out = {nullptr, 0, out}, .m = m, .n = n, .k = k};
      op.lda = ta ? m : k, op.ldb = tb ? k : n, op.ldc = n, op.transpose_a = ta, op.transpose_b = tb;
      cpu::prepare_matmul(op);
    }
  });
  for (const DType dtype : all_dtypes) {
    const ConstTensorView none(nullptr, 0, dtype);
    cpu::prepare_attention(AttentionForward{.qkv = none, .batch = 1, .length = 1024, .heads = 1, .head_size = 64});
    cpu::prepare_attention(AttentionBackward{.qkv = none, .batch = 1, .length = 1024, .heads = 1, .head_size = 64});
  }
  std::int64_t large = 0, of_one_row = 0;
  for (const cpu::Product& product : cpu::prepared_products()) {
    if (product.m * product.n * product.k < 1 << 18) continue;
    ++large;
    const bool a = product.transpose_a && product.lda % 1024 == 0, b = !product.transpose_b && product.ldb % 1024 == 0;
    of_one_row += a || b ? 1 : 0;
  }
  CHECK(large > 30);
  CHECK((of_one_row == 0 || !cpu::reads_rows_in_place()));
}

TEST_CASE("several pools run products at the same time") {
  const Case c{150, 200, 300, false, true};
  Operands expected = make_operands(c);
  run(expected.op, 1);
  std::vector<std::thread> ranks;
  std::array<bool, 3> same{};
  for (std::size_t rank = 0; rank < same.size(); ++rank) {
    ranks.emplace_back([&, rank] {
      Operands o = make_operands(c);
      run(o.op, 2);
      same.at(rank) = o.out.same_bits(expected.out);
    });
  }
  for (std::thread& rank : ranks) rank.join();
  CHECK(same == std::array<bool, 3>{true, true, true});
}

TEST_CASE("names of instruction sets are read back") {
  for (const char* const name : {"baseline", "avx2", "avx512", "avx512_bf16"}) {
    CHECK(cpu::name_of(cpu::instruction_level_from(name).value()) == name);
  }
  CHECK_FALSE(cpu::instruction_level_from("avx9"));
}

TEST_CASE("every lower instruction set passes the same tests") {
  if (limited) return;
  CHECK(levels_that_fail() == "");
}
