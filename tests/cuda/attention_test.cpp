#include "attention_reference.h"
#include "cuda/operation_check.h"

namespace zt::test {
namespace {

using Case = AttentionCase;

constexpr double input_scale = 1.5;  // queries, keys and values are in [-1.5, 1.5)

struct Inputs {
  explicit Inputs(const Case& c)
      : qkv(random_values(c.tokens() * 3 * c.width(), 1, input_scale)),
        d_out(random_values(c.tokens() * c.width(), 2)) {
    for (std::vector<double>* values : {&qkv, &d_out}) {
      dispatch(c.dtype, [&]<typename T>(T*) {
        for (double& value : *values) value = to_float(from_float<T>(static_cast<float>(value)));
      });
    }
  }
  std::int64_t index(const Case& c, std::int64_t b, std::int64_t t, std::int64_t part, std::int64_t h) const {
    return (((b * c.length + t) * 3 + part) * c.heads + h) * c.head_size;
  }
  std::vector<double> qkv, d_out;
};

struct Results {
  std::vector<double> out, log_sum_exp, d_qkv;
  bool operator==(const Results&) const = default;
};

// Forward, then backward from its results. `offset` elements before each tensor move it off its alignment.
Results run_attention(Workbench& bench, const Case& c, const Inputs& inputs, std::int64_t offset = 0) {
  const auto moved = [&](const TensorView& view) { return view.part(offset, view.count - offset); };
  const auto tensor = [&](std::vector<double> values) {
    values.insert(values.begin(), static_cast<std::size_t>(offset), 0.0);
    return moved(bench.tensor(values, c.dtype));
  };
  const auto output = [&](std::int64_t count) { return moved(bench.output(count + offset, c.dtype)); };
  const std::int64_t queries = c.batch * c.heads * c.length;
  const TensorView qkv = tensor(inputs.qkv);
  const TensorView out = output(c.tokens() * c.width());
  float* log_sum_exp = bench.floats(queries);
  bench.run(AttentionForward{.qkv = qkv,
                             .out = out,
                             .log_sum_exp = log_sum_exp,
                             .batch = c.batch,
                             .length = c.length,
                             .heads = c.heads,
                             .head_size = c.head_size,
                             .dropout = c.dropout_of()});
  const TensorView d_qkv = output(c.tokens() * 3 * c.width());
  bench.run(AttentionBackward{.qkv = qkv,
                              .out = out,
                              .d_out = tensor(inputs.d_out),
                              .log_sum_exp = log_sum_exp,
                              .d_qkv = d_qkv,
                              .batch = c.batch,
                              .length = c.length,
                              .heads = c.heads,
                              .head_size = c.head_size,
                              .dropout = c.dropout_of()});
  return {bench.read(out), bench.read({log_sum_exp, queries, DType::f32}), bench.read(d_qkv)};
}

Results on_gpu(const Case& c, const Inputs& inputs, std::int64_t offset = 0) {
  const auto gpu = open_gpu();
  Workbench bench(*gpu);
  return run_attention(bench, c, inputs, offset);
}

double root_mean_square(const std::vector<double>& actual, const std::vector<double>& exact) {
  double sum = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) sum += std::pow(actual[i] - exact[i], 2);
  return std::sqrt(sum / static_cast<double>(exact.size()));
}

std::int64_t count_wrong(const std::vector<double>& actual, const std::vector<double>& exact,
                         const std::vector<double>& size, double relative, double unit) {
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double bound = relative * size[i] + 1.01 * unit * std::abs(exact[i]) + 0x1p-24;
    wrong += std::abs(actual[i] - exact[i]) <= bound ? 0 : 1;
  }
  return wrong;
}

// Within the bounds that hold for every element, and on the whole no further from the exact values than the CPU is,
// with half as much again for other roundings of the same number; errors below `floor` do not count.
void check_against_reference(const Case& c) {
  INFO(text_of(c));
  const Inputs inputs(c);
  const Results gpu = on_gpu(c, inputs);
  cpu::CpuDevice cpu_device(1);
  Workbench cpu_bench(cpu_device);
  const Results cpu = run_attention(cpu_bench, c, inputs);
  const AttentionReference r = attention_reference(c, inputs.qkv, inputs.d_out);
  const AttentionBounds bounds = attention_bounds(c, input_scale);
  const double unit = unit_roundoff(c.dtype);
  CHECK(count_wrong(gpu.log_sum_exp, r.log_sum_exp, std::vector<double>(r.log_sum_exp.size(), 4.0), bounds.log_sum_exp,
                    0x1p-24) == 0);
  CHECK(count_wrong(gpu.out, r.out, r.out_size, bounds.out, unit) == 0);
  CHECK(count_wrong(gpu.d_qkv, r.d_qkv, r.d_qkv_size, bounds.d_qkv, unit) == 0);
  const double floor = 0.01 * unit + 0x1p-22;
  CHECK(root_mean_square(gpu.log_sum_exp, r.log_sum_exp) <=
        1.5 * root_mean_square(cpu.log_sum_exp, r.log_sum_exp) + 0x1p-22);
  CHECK(root_mean_square(gpu.out, r.out) <= 1.5 * root_mean_square(cpu.out, r.out) + floor);
  CHECK(root_mean_square(gpu.d_qkv, r.d_qkv) <= 1.5 * root_mean_square(cpu.d_qkv, r.d_qkv) + floor);
}

constexpr DType formats[] = {DType::f16, DType::bf16};
constexpr std::int64_t tensor_core_head_sizes[] = {32, 64, 96, 128};

}  // namespace

TEST_CASE("attention on tensor cores agrees with double precision as well as the CPU does") {
  for (const DType dtype : formats) {
    for (const std::int64_t head_size : tensor_core_head_sizes) {
      for (const float dropout : {0.0F, 0.3F}) {
        for (const std::int64_t length : {1, 7, 16, 33})
          check_against_reference({2, length, 2, head_size, dtype, dropout, 3});
        for (const std::int64_t length : {64, 65, 130})
          check_against_reference({1, length, 2, head_size, dtype, dropout, 1});
      }
    }
  }
}

TEST_CASE("attention of fp32 and of other head sizes agrees with double precision as well as the CPU does") {
  for (const float dropout : {0.0F, 0.3F}) {
    for (const std::int64_t head_size : {1, 5, 64, 100}) {
      for (const std::int64_t length : {1, 7, 33})
        check_against_reference({2, length, 2, head_size, DType::f32, dropout, 3});
      for (const std::int64_t length : {64, 130})
        check_against_reference({1, length, 2, head_size, DType::f32, dropout, 1});
    }
    check_against_reference({1, 65, 1, 200, DType::f32, dropout});
    for (const DType dtype : formats) {
      for (const std::int64_t head_size : {1, 40, 80, 160})
        check_against_reference({1, 66, 2, head_size, dtype, dropout, 1});
    }
  }
}

TEST_CASE("attention drops out the very elements that the index says") {
  // Values that are unit vectors for the keys from `first` on show the elements of P in out, and d_out that are unit
  // vectors for the queries show those of P in d_values.
  for (const auto& [dtype, length, head_size] : {std::tuple{DType::bf16, 65, 64},
                                                 {DType::f16, 130, 96},
                                                 {DType::bf16, 128, 128},
                                                 {DType::f16, 70, 32},
                                                 {DType::f32, 67, 40},
                                                 {DType::bf16, 66, 70}}) {
    const Case c{2, length, 2, head_size, dtype, 0.5F, 3};
    INFO(text_of(c));
    for (std::int64_t first = 0; first < c.length; first += c.head_size) {
      Inputs inputs(c);
      for (std::int64_t b = 0; b < c.batch; ++b) {
        for (std::int64_t t = 0; t < c.length; ++t) {
          for (std::int64_t h = 0; h < c.heads; ++h) {
            for (std::int64_t d = 0; d < c.head_size; ++d) {
              const double unit = t - first == d ? 1.0 : 0.0;
              inputs.qkv[static_cast<std::size_t>(inputs.index(c, b, t, 2, h) + d)] = unit;
              inputs.d_out[static_cast<std::size_t>(((b * c.length + t) * c.heads + h) * c.head_size + d)] = unit;
            }
          }
        }
      }
      const Results results = on_gpu(c, inputs);
      std::int64_t wrong = 0;
      for (std::int64_t b = 0; b < c.batch; ++b) {
        for (std::int64_t h = 0; h < c.heads; ++h) {
          for (std::int64_t t = 0; t < c.length; ++t) {
            for (std::int64_t d = 0; d < std::min(c.head_size, c.length - first); ++d) {
              const bool forward =
                  results.out[static_cast<std::size_t>(((b * c.length + t) * c.heads + h) * c.head_size + d)] != 0.0;
              const bool backward = results.d_qkv[static_cast<std::size_t>(inputs.index(c, b, t, 2, h) + d)] != 0.0;
              wrong += forward == (first + d <= t && c.keeps(b, h, t, first + d)) ? 0 : 1;
              wrong += backward == (t <= first + d && c.keeps(b, h, first + d, t)) ? 0 : 1;
            }
          }
        }
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("attention gives the same bits again, and wherever the tensors lie") {
  for (const Case& c : {Case{2, 70, 2, 64, DType::bf16, 0.1F}, Case{1, 140, 1, 32, DType::f16},
                        Case{1, 70, 2, 48, DType::bf16}, Case{1, 70, 2, 24, DType::f32, 0.1F}}) {
    INFO(text_of(c));
    const Inputs inputs(c);
    const Results first = on_gpu(c, inputs);
    for (const std::int64_t offset : {0, 1, 3}) CHECK(on_gpu(c, inputs, offset) == first);
  }
}

TEST_CASE("a query's attention does not depend on later keys, nor a key's gradient on earlier queries") {
  for (const Case& c : {Case{1, 150, 1, 64, DType::f16}, Case{1, 150, 1, 16, DType::f32}}) {
    INFO(text_of(c));
    const Inputs inputs(c);
    Inputs changed = inputs;
    const std::int64_t border = 100;
    for (std::int64_t i = border * 3 * c.width(); i < c.tokens() * 3 * c.width(); ++i)
      changed.qkv[static_cast<std::size_t>(i)] = 9.0;
    for (std::int64_t i = 0; i < border * c.width(); ++i) changed.d_out[static_cast<std::size_t>(i)] += 1.0;
    const Results before = on_gpu(c, inputs);
    Inputs later_changed = inputs;
    later_changed.qkv = changed.qkv;
    const Results later = on_gpu(c, later_changed);
    Inputs earlier_changed = inputs;
    earlier_changed.d_out = changed.d_out;
    const Results earlier = on_gpu(c, earlier_changed);
    std::int64_t different = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(border * c.width()); ++i)
      different += before.out[i] == later.out[i] ? 0 : 1;
    CHECK(different == 0);
    CHECK(before.out.back() != later.out.back());
    different = 0;
    for (std::size_t i = static_cast<std::size_t>(border * 3 * c.width()); i < before.d_qkv.size(); ++i)
      different += before.d_qkv[i] == earlier.d_qkv[i] ? 0 : 1;
    CHECK(different == 0);
    const auto value_of_first_key = static_cast<std::size_t>(2 * c.width());
    CHECK(before.d_qkv[value_of_first_key] != earlier.d_qkv[value_of_first_key]);
  }
}

TEST_CASE("a sample's attention on a GPU does not depend on the batch that it is in") {
  for (const std::int64_t head_size : {8, 32}) {
    const Case both{2, 90, 2, head_size, DType::bf16, 0.2F, 0};
    const Case second{1, 90, 2, head_size, DType::bf16, 0.2F, 1};
    const Inputs inputs(both);
    Inputs half(second);
    const auto size = static_cast<std::int64_t>(half.qkv.size());
    half.qkv.assign(inputs.qkv.begin() + size, inputs.qkv.end());
    half.d_out.assign(inputs.d_out.begin() + size / 3, inputs.d_out.end());
    const Results all = on_gpu(both, inputs);
    const Results part = on_gpu(second, half);
    CHECK(std::equal(part.out.begin(), part.out.end(), all.out.begin() + size / 3));
    CHECK(std::equal(part.d_qkv.begin(), part.d_qkv.end(), all.d_qkv.begin() + size));
  }
}

TEST_CASE("scores that grow along the keys, or are large, keep their softmax") {
  for (const Case& c :
       {Case{1, 200, 1, 32, DType::bf16}, Case{1, 200, 1, 64, DType::f16}, Case{1, 200, 1, 8, DType::f32}}) {
    INFO(text_of(c));
    Inputs inputs(c);
    // The score of key t is t / 2 for every query: each tile's largest is far beyond the last one's. Powers of 2 and
    // small integers, so that scores are exact.
    for (std::int64_t t = 0; t < c.length; ++t) {
      for (std::int64_t d = 0; d < c.head_size; ++d) {
        inputs.qkv[static_cast<std::size_t>(inputs.index(c, 0, t, 0, 0) + d)] = d == 0 ? 0.5 : 0.0;
        inputs.qkv[static_cast<std::size_t>(inputs.index(c, 0, t, 1, 0) + d)] = d == 0 ? static_cast<double>(t) : 0.0;
      }
    }
    const AttentionReference r = attention_reference(c, inputs.qkv, inputs.d_out);
    const Results results = on_gpu(c, inputs);
    const double unit = unit_roundoff(c.dtype);
    // Exponents up to 18 times 2^-23 off, beside the rounding.
    CHECK(count_wrong(results.log_sum_exp, r.log_sum_exp, r.log_sum_exp, 0x1p-21, 0.0) == 0);
    CHECK(count_wrong(results.out, r.out, r.out_size, 1.01 * unit + 0x1p-17, unit) == 0);
    CHECK(count_wrong(results.d_qkv, r.d_qkv, r.d_qkv_size, 2.02 * unit + 0x1p-16, unit) == 0);
  }
  Case c{1, 70, 1, 64, DType::bf16};
  Inputs inputs(c);
  for (double& value : inputs.qkv) value *= 64.0;
  const Results results = on_gpu(c, inputs);
  for (const double value : results.out) REQUIRE(std::isfinite(value));
  for (const double value : results.d_qkv) REQUIRE(std::isfinite(value));
}

TEST_CASE("attention on a GPU passes NaN on to the queries that see it") {
  for (const Case& c : {Case{1, 80, 1, 32, DType::f16}, Case{1, 80, 1, 8, DType::f32}}) {
    Inputs inputs(c);
    inputs.qkv[static_cast<std::size_t>(inputs.index(c, 0, 20, 0, 0) + 3)] = NAN;  // of query 20
    const Results results = on_gpu(c, inputs);
    const auto out = [&](std::int64_t t) { return results.out[static_cast<std::size_t>(t * c.head_size)]; };
    CHECK(std::isnan(out(20)));
    CHECK(std::isnan(results.log_sum_exp[20]));
    CHECK_FALSE(std::isnan(out(19)));
    CHECK_FALSE(std::isnan(out(21)));
  }
}

TEST_CASE("cached attention finds what attention finds for the last positions, from no later ones") {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const auto& [length, head_size] : {std::pair{1, 5}, {7, 64}, {40, 100}, {300, 32}, {257, 300}}) {
      const Case c{2, length, 2, head_size, dtype};
      INFO(text_of(c));
      const Inputs inputs(c);
      const AttentionReference r = attention_reference(c, inputs.qkv, inputs.d_out);
      const AttentionBounds bounds = attention_bounds(c, input_scale);
      const std::int64_t capacity = length + 3;
      const std::int64_t row = 3 * c.width();
      std::vector<double> cache(static_cast<std::size_t>(c.batch * capacity * row), NAN);
      for (std::int64_t b = 0; b < c.batch; ++b)
        std::copy_n(inputs.qkv.begin() + b * length * row, length * row, cache.begin() + b * capacity * row);
      for (const std::int64_t first : {0, length / 2, length - 1}) {
        const std::int64_t count = (length - first) * c.width();
        const auto gpu = open_gpu();
        Workbench bench(*gpu);
        const TensorView out = bench.output(c.batch * count, dtype);
        bench.run(CachedAttention{.qkv = bench.tensor(cache, dtype),
                                  .out = out,
                                  .batch = c.batch,
                                  .capacity = capacity,
                                  .first = first,
                                  .length = length - first,
                                  .heads = c.heads,
                                  .head_size = head_size});
        const std::vector<double> found = bench.read(out);
        for (std::int64_t b = 0; b < c.batch; ++b) {
          const auto part = [&](const std::vector<double>& of, std::int64_t at) {
            return std::vector<double>(of.begin() + at, of.begin() + at + count);
          };
          const std::int64_t from = (b * length + first) * c.width();
          CHECK(count_wrong(part(found, b * count), part(r.out, from), part(r.out_size, from), bounds.out,
                            unit_roundoff(dtype)) == 0);
        }
      }
    }
  }
}

TEST_CASE("attention over nothing does nothing on a GPU") {
  for (const Case& c : {Case{0, 5, 2, 32, DType::f16}, Case{2, 0, 2, 4, DType::f32}}) {
    const Results results = on_gpu(c, Inputs(c));
    CHECK(results.out.empty());
  }
}

}  // namespace zt::test
