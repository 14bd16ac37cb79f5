#include "core/errors.h"
#include "cuda/bits_check.h"

namespace zt::test {
namespace {

struct Fold {
  DType acc = DType::f32, source = DType::f32;
  std::int64_t sources = 0, count = 0, offset = 0;
  bool first = true;
};

std::vector<TensorView> fold(Workbench& bench, const Fold& fold) {
  const Operand acc = operand(bench, random_values(fold.count, 77), fold.acc, fold.offset);
  std::vector<const void*> sources;
  for (std::int64_t k = 0; k < fold.sources; ++k) {
    const auto values = random_values(fold.count, static_cast<std::uint64_t>(k), k % 3 == 0 ? 100.0 : 1.0);
    sources.push_back(operand(bench, values, fold.source, fold.offset).view.data);
  }
  bench.run(ReduceOnto{.acc = acc.view, .sources = sources, .source_dtype = fold.source, .first = fold.first});
  return {acc.whole};
}

}  // namespace

TEST_CASE("a GPU adds sources up in their order, to the CPU's bits, for all pairs of formats") {
  for (const DType acc : all_dtypes) {
    for (const DType source : all_dtypes) {
      for (const std::int64_t sources : {0, 1, 2, 8, 9}) {
        for (const bool first : {true, false}) {
          for (const std::int64_t offset : {0, 1}) {
            INFO(name_of(source) << " onto " << name_of(acc) << ", " << sources << " sources, first " << first
                                 << ", offset " << offset);
            check_same_bits([&](Workbench& bench) { return fold(bench, {acc, source, sources, 261, offset, first}); });
          }
        }
      }
    }
  }
}

TEST_CASE("a GPU adds up few elements, none, and those of more than one block") {
  for (const std::int64_t count : {0, 1, 3, 4, 1024, 2 * 1024 + 7}) {
    INFO(count << " elements");
    check_same_bits([&](Workbench& bench) { return fold(bench, {DType::bf16, DType::bf16, 3, count, 0, true}); });
  }
}

TEST_CASE("a GPU adds up more sources than a launch takes parameters for few, and than one launch takes") {
  for (const std::int64_t sources : {33, 1024}) {
    INFO(sources << " sources");
    check_same_bits([&](Workbench& bench) { return fold(bench, {DType::bf16, DType::bf16, sources, 9, 0, true}); });
  }
  for (const bool first : {true, false}) {
    check_same_bits([&](Workbench& bench) { return fold(bench, {DType::f32, DType::bf16, 1100, 9, 0, first}); });
  }
}

TEST_CASE("the sum may lie in the memory of a source") {
  for (const std::size_t which : {0, 2}) {
    for (const bool first : {true, false}) {
      INFO("source " << which << ", first " << first);
      check_same_bits([&](Workbench& bench) -> std::vector<TensorView> {
        std::vector<TensorView> tensors;
        std::vector<const void*> sources;
        for (std::uint64_t k = 0; k < 4; ++k) {
          tensors.push_back(bench.tensor(random_values(100, k), DType::f16));
          sources.push_back(tensors.back().data);
        }
        bench.run(ReduceOnto{.acc = tensors[which], .sources = sources, .source_dtype = DType::f16, .first = first});
        return tensors;
      });
    }
  }
}

TEST_CASE("a fold that starts from its first source keeps the sign of zero") {
  check_same_bits([](Workbench& bench) -> std::vector<TensorView> {
    const TensorView source = bench.tensor({-0.0, 0.0, -0.0, 1.0, -0.0}, DType::f32);
    const TensorView acc = bench.output(5, DType::f32);
    const std::vector<const void*> sources = {source.data, source.data};
    bench.run(ReduceOnto{.acc = acc, .sources = sources, .source_dtype = DType::f32, .first = true});
    return {acc};
  });
}

TEST_CASE("a sum that cannot be added up in parts without rounding in between is refused with what to do") {
  const auto gpu = open_gpu();
  Workbench bench(*gpu);
  const TensorView source = bench.tensor(random_values(4, 1), DType::f32);
  std::vector<const void*> sources(1025, source.data);
  const TensorView narrow = bench.output(4, DType::bf16);
  const ReduceOnto op{.acc = narrow, .sources = sources, .source_dtype = DType::f32, .first = true};
  REQUIRE_THROWS_AS(bench.run(op), RunError);
  REQUIRE_THROWS_WITH(bench.run(op), Catch::Contains("1025 ranks") && Catch::Contains("grad_accum_dtype"));
  // The last source would be read after it was overwritten.
  const TensorView wide = bench.output(4, DType::f32);
  sources.back() = wide.data;
  const ReduceOnto onto_source{.acc = wide, .sources = sources, .source_dtype = DType::f32, .first = true};
  REQUIRE_THROWS_AS(bench.run(onto_source), RunError);
}

}  // namespace zt::test
