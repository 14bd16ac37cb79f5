// Losses and their gradients against double precision.
#include "simd_support.h"

using namespace zt;
using namespace zt::test;

namespace {

struct Losses {
  std::vector<float> losses, d_logits;
  std::vector<std::int32_t> correct;
};

Losses cross_entropy(DType type, const std::vector<float>& logits, const std::vector<std::int32_t>& targets,
                     std::int64_t vocabulary, float scale = 1.0F) {
  const auto rows = static_cast<std::int64_t>(targets.size());
  Tensor tensor(type, logits);
  Tensor losses(DType::f32, rows);
  Losses result;
  result.correct.resize(targets.size());
  CrossEntropy op;
  op.logits = tensor.view();
  op.targets = targets.data();
  op.losses = losses.floats();
  op.d_logits = tensor.view();
  op.correct = result.correct.data();
  op.rows = rows;
  op.vocabulary = vocabulary;
  op.stride = rows == 0 ? vocabulary : tensor.count() / rows;
  op.scale = scale;
  Setup{}.run(op);
  result.losses = losses.values();
  result.d_logits = tensor.values();
  return result;
}

}  // namespace

TEST_CASE("cross entropy and its gradient equal double precision for many shapes and dtypes") {
  const std::uint64_t seed = 60;
  Random random(seed);
  INFO("seed " << seed);
  for_instruction_sets([&] {
    for (const DType type : all_dtypes) {
      for (int round = 0; round < 14; ++round) {
        const std::int64_t rows = round == 0 ? 0 : between(random, 1, 40);
        const std::int64_t vocabulary = round == 1 ? 5003 : round == 2 ? 1 : between(random, 2, 300);
        const std::int64_t stride = vocabulary + (random() % 2 == 0 ? 0 : between(random, 1, 70));
        const float spread = round % 3 == 0 ? 1.0F : round % 3 == 1 ? 20.0F : 3000.0F;
        const float scale = round % 2 == 0 ? 1.0F : 0.001F;
        INFO("dtype " << name_of(type) << ", rows " << rows << ", vocabulary " << vocabulary << ", stride " << stride
                      << ", spread " << spread);
        const std::vector<float> logits = rounded(type, normals(random, rows * stride, spread));
        std::vector<std::int32_t> targets;
        for (std::int64_t r = 0; r < rows; ++r) {
          targets.push_back(static_cast<std::int32_t>(between(random, -1, vocabulary - 1)));
        }
        require_same_everywhere([&](Setup setup) {
          const Tensor logits_tensor(type, logits, setup.offset);
          Tensor in_place(type, logits, setup.offset);
          Tensor losses(DType::f32, rows, setup.offset);
          std::vector<std::int32_t> correct(targets.size(), 7);
          CrossEntropy op;
          op.logits = setup.threads == 2 ? logits_tensor.view() : ConstTensorView(in_place.view());
          op.targets = targets.data();
          op.losses = losses.floats();
          op.d_logits = in_place.view();
          op.correct = correct.data();
          op.rows = rows;
          op.vocabulary = vocabulary;
          op.stride = stride;
          op.scale = scale;
          setup.run(op);
          for (std::int64_t r = 0; r < rows && setup.threads == 1; ++r) {
            const float* row = logits.data() + r * stride;
            const std::int64_t target = targets[static_cast<std::size_t>(r)];
            std::int64_t best = 0;
            for (std::int64_t v = 1; v < vocabulary; ++v) {
              if (row[v] > row[best]) best = v;
            }
            double sum = 0.0;
            for (std::int64_t v = 0; v < vocabulary; ++v) sum += std::exp(static_cast<double>(row[v]) - row[best]);
            const bool counted = target >= 0;
            const double loss = counted ? std::log(sum) + row[best] - static_cast<double>(row[target]) : 0.0;
            require_close(losses.get(r), loss, DType::f32, 4e-7, 1e-12);
            REQUIRE(correct[static_cast<std::size_t>(r)] == (best == target ? 1 : 0));
            for (std::int64_t v = 0; v < stride; ++v) {
              double expected = 0.0;
              double error = 0.0;
              if (counted && v < vocabulary) {
                const double difference = static_cast<double>(row[v]) - row[best];
                const double p = std::exp(difference) / sum;
                // The difference of two logits is rounded once; what e^x inherits from it is relative.
                error = scale * p * (4e-7 + 0x1p-24 * std::abs(difference)) + scale * 1e-38;
                expected = (v == target ? p - 1.0 : p) * scale;
                if (v == target) error += 2e-7 * std::abs(expected);
              }
              require_close(in_place.get(r * stride + v), expected, type, 0.0, error);
            }
          }
          Bytes all = collect(in_place, losses);
          for (const std::int32_t one : correct) all.push_back(static_cast<std::byte>(one));
          return all;
        });
      }
    }
  });
}

TEST_CASE("cross entropy keeps the precision of small losses") {
  for_instruction_sets([] {
    for (const float margin : {5.0F, 10.0F, 15.0F, 20.0F, 30.0F}) {
      std::vector<float> logits(1000, 0.0F);
      logits[123] = margin;
      const Losses result = cross_entropy(DType::f32, logits, {123}, 1000);
      const double others = 999 * std::exp(-static_cast<double>(margin));
      // One plus the others, in double: 1e-16 lost by each of up to 1000 additions.
      const double error = 1e-6 + 1e-13 / others;
      REQUIRE(result.losses[0] == Approx(std::log1p(others)).epsilon(error));
      REQUIRE(result.d_logits[123] == Approx(-others / (1.0 + others)).epsilon(error));
      REQUIRE(result.correct[0] == 1);
    }
  });
}

TEST_CASE("cross entropy is finite for logits of +-1e4 and exact in the limit") {
  for_instruction_sets([] {
    for (const DType type : {DType::f32, DType::f16}) {
      const Losses result = cross_entropy(type, {1e4F, -1e4F, 0.0F, 1e4F, -1e4F, 0.0F}, {0, 1}, 3);
      REQUIRE(result.losses[0] == 0.0F);
      REQUIRE(result.losses[1] == 20000.0F);
      REQUIRE(result.d_logits == std::vector<float>{0.0F, 0.0F, 0.0F, 1.0F, -1.0F, 0.0F});
      REQUIRE(result.correct == std::vector<std::int32_t>{1, 0});
    }
  });
}

TEST_CASE("gradients beyond fp16 become infinite, not NaN") {
  for_instruction_sets([] {
    const Losses result = cross_entropy(DType::f16, {0.0F, 0.0F, -30000.0F}, {1}, 3, 0x1p32F);
    REQUIRE(result.d_logits == std::vector<float>{infinite, -infinite, 0.0F});
    REQUIRE(result.losses[0] == Approx(std::log(2.0)));
  });
}

TEST_CASE("NaN and infinite logits show in the loss") {
  for_instruction_sets([] {
    for (const DType type : all_dtypes) {
      for (std::size_t place = 0; place < 40; place += 13) {
        std::vector<float> logits(40, 0.5F);
        logits[place] = not_a_number;
        REQUIRE(std::isnan(cross_entropy(type, logits, {1}, 40).losses[0]));
        logits[place] = infinite;
        REQUIRE_FALSE(std::isfinite(cross_entropy(type, logits, {1}, 40).losses[0]));
        logits[place] = -infinite;  // as the target: an infinite loss; elsewhere a probability of 0
        REQUIRE(cross_entropy(type, logits, {static_cast<std::int32_t>(place)}, 40).losses[0] == infinite);
        REQUIRE(cross_entropy(type, logits, {1}, 40).losses[0] == Approx(std::log(39.0)));
      }
    }
    REQUIRE(std::isnan(cross_entropy(DType::f32, {-infinite, -infinite}, {0}, 2).losses[0]));
    REQUIRE(cross_entropy(DType::f32, {not_a_number, infinite}, {-1}, 2).losses[0] == 0.0F);
  });
}

TEST_CASE("of equal largest logits the first counts as the prediction") {
  for_instruction_sets([] {
    std::vector<float> logits(100, 0.0F);
    logits[20] = logits[90] = 3.0F;
    REQUIRE(cross_entropy(DType::bf16, logits, {20}, 100).correct[0] == 1);
    REQUIRE(cross_entropy(DType::bf16, logits, {90}, 100).correct[0] == 0);
    REQUIRE(cross_entropy(DType::bf16, logits, {0}, 100).correct[0] == 0);
  });
}

TEST_CASE("squared errors and their gradients equal double precision") {
  const std::uint64_t seed = 61;
  Random random(seed);
  INFO("seed " << seed);
  for_instruction_sets([&] {
    for (const DType type : all_dtypes) {
      for (int round = 0; round < 10; ++round) {
        const std::int64_t rows = round == 0 ? 0 : between(random, 1, 100);
        const std::int64_t columns = round == 1 ? 3000 : between(random, 1, 40);
        const float scale = 3.0F;
        const std::vector<float> prediction = rounded(type, normals(random, rows * columns));
        const std::vector<float> targets = normals(random, rows * columns);
        std::vector<std::int32_t> valid;
        for (std::int64_t r = 0; r < rows; ++r) valid.push_back(random() % 4 == 0 ? 0 : 1);
        const bool with_valid = random() % 2 == 0;
        require_same_everywhere([&](Setup setup) {
          Tensor in_place(type, prediction, setup.offset);
          Tensor target_tensor(DType::f32, targets, setup.offset);
          Tensor losses(DType::f32, rows, setup.offset);
          SquaredError op;
          op.prediction = in_place.view();
          op.targets = target_tensor.floats();
          op.valid = with_valid ? valid.data() : nullptr;
          op.losses = losses.floats();
          op.d_prediction = in_place.view();
          op.rows = rows;
          op.columns = columns;
          op.scale = scale;
          setup.run(op);
          for (std::int64_t r = 0; r < rows; ++r) {
            const bool counts = !with_valid || valid[static_cast<std::size_t>(r)] != 0;
            double sum = 0.0;
            for (std::int64_t c = 0; c < columns; ++c) {
              const auto at = static_cast<std::size_t>(r * columns + c);
              const double difference = counts ? static_cast<double>(prediction[at]) - targets[at] : 0.0;
              sum += difference * difference;
              require_close(in_place.get(r * columns + c), 2.0 * difference / static_cast<double>(columns) * scale,
                            type, 4e-7);
            }
            require_close(losses.get(r), sum / static_cast<double>(columns), DType::f32, 3e-6);
          }
          return collect(in_place, losses);
        });
      }
    }
  });
}
