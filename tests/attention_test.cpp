#include "device/cpu/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "attention_reference.h"
#include "catch_compat.h"
#include "cpu_test_memory.h"

using namespace zt;
using namespace zt::test;

namespace {

const bool limited = limit_by_environment();
constexpr std::array<DType, 3> all_dtypes = {DType::f32, DType::bf16, DType::f16};

using Case = AttentionCase;

struct Tensors {
  explicit Tensors(const Case& c, std::int64_t offset = 0)
      : tokens(c.batch * c.length),
        width(c.heads * c.head_size),
        qkv(tokens * 3 * width, c.dtype, offset),
        out(tokens * width, c.dtype, offset),
        d_out(tokens * width, c.dtype, offset),
        d_qkv(tokens * 3 * width, c.dtype, offset),
        log_sum_exp(c.batch * c.heads * c.length, DType::f32, offset / 4 * 4) {
    qkv.randomize(1, 1.5);
    d_out.randomize(2);
    for (Memory* memory : {&out, &d_qkv, &log_sum_exp}) memory->fill(std::numeric_limits<double>::quiet_NaN());
  }
  AttentionForward forward(const Case& c) const {
    return {.qkv = qkv.view(),
            .out = out.view(),
            .log_sum_exp = reinterpret_cast<float*>(log_sum_exp.data),
            .batch = c.batch,
            .length = c.length,
            .heads = c.heads,
            .head_size = c.head_size,
            .dropout = c.dropout_of()};
  }
  AttentionBackward backward(const Case& c) const {
    return {.qkv = qkv.view(),
            .out = out.view(),
            .d_out = d_out.view(),
            .log_sum_exp = reinterpret_cast<const float*>(log_sum_exp.data),
            .d_qkv = d_qkv.view(),
            .batch = c.batch,
            .length = c.length,
            .heads = c.heads,
            .head_size = c.head_size,
            .dropout = c.dropout_of()};
  }
  std::int64_t tokens, width;
  Memory qkv, out, d_out, d_qkv, log_sum_exp;
};

template <typename Op>
void run(const Op& op, int threads) {
  with_context(threads, cpu::attention_workspace(op), [&](cpu::Context& context) { cpu::run_attention(op, context); });
}

std::int64_t count_wrong(const Memory& memory, const std::vector<double>& exact, const std::vector<double>& size,
                         double relative) {
  std::int64_t wrong = 0;
  const double u = unit_roundoff(memory.dtype);
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double bound = relative * size[i] + 1.01 * u * std::abs(exact[i]) + 0x1p-24;
    wrong += std::abs(memory.get(static_cast<std::int64_t>(i)) - exact[i]) <= bound ? 0 : 1;
  }
  return wrong;
}

void check_against_reference(const Case& c) {
  INFO(text_of(c));
  const Tensors t(c);
  run(t.forward(c), 2);
  run(t.backward(c), 2);
  const AttentionReference r = attention_reference(c, t.qkv.values(), t.d_out.values());
  const AttentionBounds bounds = attention_bounds(c, 1.5);
  CHECK(count_wrong(t.log_sum_exp, r.log_sum_exp, std::vector<double>(r.log_sum_exp.size(), 4.0), bounds.log_sum_exp) ==
        0);
  CHECK(count_wrong(t.out, r.out, r.out_size, bounds.out) == 0);
  CHECK(count_wrong(t.d_qkv, r.d_qkv, r.d_qkv_size, bounds.d_qkv) == 0);
}

}  // namespace

TEST_CASE("attention and its gradient agree with double precision for any length and head size") {
  for (const DType dtype : all_dtypes) {
    for (const std::int64_t length : {1, 7, 64, 129}) {
      for (const std::int64_t head_size : {1, 5, 64, 100}) check_against_reference({2, length, 3, head_size, dtype});
    }
    check_against_reference({1, 300, 1, 256, dtype});
  }
}

TEST_CASE("attention drops out the elements that their index says, forward and backward") {
  for (const DType dtype : all_dtypes) {
    for (const std::int64_t length : {1, 7, 65, 130}) check_against_reference({2, length, 2, 16, dtype, 0.3F, 5});
    check_against_reference({1, 530, 1, 5, dtype, 0.3F, 1});  // more than the random words that are drawn at once
  }
}

TEST_CASE("the bits of attention do not depend on threads, alignment or repetition") {
  for (const DType dtype : all_dtypes) {
    for (const Case& c : {Case{1, 200, 2, 24, dtype, 0.1F}, Case{6, 70, 3, 8, dtype}}) {
      INFO(text_of(c));
      const Tensors first(c);
      run(first.forward(c), 1);
      run(first.backward(c), 1);
      for (const int threads : {1, 2, 4}) {
        for (const std::int64_t offset : {0, 4, 12, 60}) {
          const Tensors again(c, is_16_bit(dtype) ? offset / 2 : offset);
          run(again.forward(c), threads);
          run(again.backward(c), threads);
          CHECK(again.out.same_bits(first.out));
          CHECK(again.log_sum_exp.same_bits(first.log_sum_exp));
          CHECK(again.d_qkv.same_bits(first.d_qkv));
        }
      }
    }
  }
}

TEST_CASE("a query does not see later keys") {
  const Case c{1, 150, 1, 16, DType::f32};
  Tensors a(c), b(c);
  for (std::int64_t i = 100 * 3 * 16; i < b.qkv.elements; ++i) b.qkv.set(i, 9.0);
  run(a.forward(c), 1);
  run(b.forward(c), 1);
  for (std::int64_t i = 0; i < 100 * 16; ++i) REQUIRE(a.out.get(i) == b.out.get(i));
  CHECK(a.out.get(120 * 16) != b.out.get(120 * 16));
}

TEST_CASE("a sample's attention does not depend on the batch that it is in") {
  const Case both{2, 90, 2, 8, DType::bf16, 0.2F, 0};
  const Case second{1, 90, 2, 8, DType::bf16, 0.2F, 1};
  const Tensors a(both);
  Tensors b(second);
  for (std::int64_t i = 0; i < b.qkv.elements; ++i) b.qkv.set(i, a.qkv.get(b.qkv.elements + i));
  run(a.forward(both), 2);
  run(b.forward(second), 2);
  for (std::int64_t i = 0; i < b.out.elements; ++i) REQUIRE(a.out.get(b.out.elements + i) == b.out.get(i));
}

TEST_CASE("attention over nothing does nothing") {
  run(Tensors({0, 5, 2, 4}).forward({0, 5, 2, 4}), 2);
  run(Tensors({2, 0, 2, 4}).backward({2, 0, 2, 4}), 2);
}

TEST_CASE("attention passes NaN on") {
  const Case c{1, 40, 1, 8, DType::f32};
  Tensors t(c);
  t.qkv.set(20 * 24 + 3, std::numeric_limits<double>::quiet_NaN());  // of query 20
  run(t.forward(c), 1);
  CHECK(std::isnan(t.out.get(20 * 8)));
  CHECK(std::isnan(t.log_sum_exp.get(20)));
  CHECK_FALSE(std::isnan(t.out.get(19 * 8)));
}

TEST_CASE("large scores neither overflow nor lose the largest") {
  const Case c{1, 70, 1, 4, DType::f32};
  Tensors t(c);
  for (std::int64_t i = 0; i < t.qkv.elements; ++i) t.qkv.set(i, t.qkv.get(i) * 100.0);
  run(t.forward(c), 1);
  run(t.backward(c), 1);
  const AttentionReference r = attention_reference(c, t.qkv.values(), t.d_out.values());
  for (std::size_t i = 0; i < r.out.size(); ++i) {
    REQUIRE(std::abs(t.out.get(static_cast<std::int64_t>(i)) - r.out[i]) <= 0.05 * r.out_size[i] + 1e-6);
  }
  for (const double value : t.d_qkv.values()) REQUIRE(std::isfinite(value));
}

TEST_CASE("attention passes the same tests at every lower instruction set") {
  if (limited) return;
  CHECK(levels_that_fail() == "");
}
