#include <array>
#include <cassert>
#include <cmath>
#include <numbers>
#include <vector>

#include "core/random.h"
#include "data/source.h"

namespace zt {
namespace {

// Four N(0, 1) of one counter: two pairs of Box and Muller.
std::array<float, 4> normals(std::uint64_t key, std::uint64_t counter) {
  const auto bits = philox(key, counter);
  std::array<float, 4> values{};
  for (std::size_t pair = 0; pair < 4; pair += 2) {
    const float radius = std::sqrt(-2.0F * std::log(1.0F - uniform_from_bits(bits[pair])));  // 1 - u is above 0
    const float angle = 2.0F * std::numbers::pi_v<float> * uniform_from_bits(bits[pair + 1]);
    values[pair] = radius * std::cos(angle);
    values[pair + 1] = radius * std::sin(angle);
  }
  return values;
}

// Fills `out` with N(0, 1) that belong to row `row` under `key`.
void fill_normals(std::span<float> out, std::uint64_t key, std::int64_t row) {
  const std::uint64_t row_key = derive_key(key, static_cast<std::uint64_t>(row));
  for (std::size_t i = 0; i < out.size(); i += 4) {
    const auto four = normals(row_key, i / 4);
    for (std::size_t j = 0; j < 4 && i + j < out.size(); ++j) out[i + j] = four[j];
  }
}

// Rows of a matrix of N(0, deviation^2).
std::vector<float> random_matrix(std::int64_t rows, std::int64_t columns, double deviation, std::uint64_t key) {
  std::vector<float> matrix(static_cast<std::size_t>(rows * columns));
  for (std::int64_t row = 0; row < rows; ++row) {
    fill_normals(std::span(matrix).subspan(static_cast<std::size_t>(row * columns), static_cast<std::size_t>(columns)),
                 key, row);
  }
  for (float& value : matrix) value *= static_cast<float>(deviation);
  return matrix;
}

class SyntheticRegression final : public Source {
 public:
  SyntheticRegression(std::int64_t features, std::int64_t targets, std::uint64_t key, std::int64_t first,
                      std::int64_t count)
      : features_(features),
        targets_(targets),
        first_(first),
        samples_(count),
        feature_key_(derive_key(key, "features")),
        noise_key_(derive_key(key, "noise")),
        map_(random_matrix(targets, features, 1.0 / std::sqrt(static_cast<double>(features)), derive_key(key, "map"))) {
  }

  SampleShape shape() const override { return {.features = features_, .value_targets = targets_}; }
  std::int64_t samples() const override { return samples_; }

  void sample(std::int64_t index, const SampleView& out) const override {
    assert(index >= 0 && index < samples_);
    fill_normals(out.features, feature_key_, first_ + index);
    fill_normals(out.value_targets, noise_key_, first_ + index);
    const float* row = map_.data();
    for (float& target : out.value_targets) {
      double sum = 0.1 * static_cast<double>(target);  // the noise
      for (const float feature : out.features) sum += static_cast<double>(*row++) * static_cast<double>(feature);
      target = static_cast<float>(sum);
    }
  }

 private:
  std::int64_t features_, targets_, first_, samples_;
  std::uint64_t feature_key_, noise_key_;
  std::vector<float> map_;  // [targets, features]
};

class SyntheticClassification final : public Source {
 public:
  SyntheticClassification(std::int64_t features, std::int64_t classes, std::uint64_t key, std::int64_t first,
                          std::int64_t count)
      : features_(features),
        classes_(classes),
        first_(first),
        samples_(count),
        feature_key_(derive_key(key, "features")),
        class_key_(derive_key(key, "classes")),
        // The difference of two centres has variance 2 s^2 in each feature: length 4 for s^2 = 8 / features.
        centres_(
            random_matrix(classes, features, std::sqrt(8.0 / static_cast<double>(features)), derive_key(key, "map"))) {}

  SampleShape shape() const override { return {.token_targets = 1, .features = features_}; }
  std::int64_t samples() const override { return samples_; }

  void sample(std::int64_t index, const SampleView& out) const override {
    assert(index >= 0 && index < samples_);
    const auto bits = random_bits(class_key_, static_cast<std::uint64_t>(first_ + index));
    const auto chosen = static_cast<std::int64_t>(bits % static_cast<std::uint64_t>(classes_));
    fill_normals(out.features, feature_key_, first_ + index);
    const float* centre = centres_.data() + chosen * features_;
    for (std::size_t i = 0; i < out.features.size(); ++i) out.features[i] += centre[i];
    out.token_targets[0] = static_cast<std::int32_t>(chosen);
  }

 private:
  std::int64_t features_, classes_, first_, samples_;
  std::uint64_t feature_key_, class_key_;
  std::vector<float> centres_;  // [classes, features]
};

class SyntheticTokens final : public Source {
 public:
  SyntheticTokens(std::int64_t vocabulary, std::int64_t length, std::uint64_t key, std::int64_t first,
                  std::int64_t count)
      : vocabulary_(vocabulary),
        length_(length),
        first_(first),
        samples_(count),
        walk_key_(derive_key(key, "walk")),
        successor_key_(derive_key(key, "successors")) {}

  SampleShape shape() const override { return {.tokens = length_, .token_targets = length_}; }
  std::int64_t samples() const override { return samples_; }

  void sample(std::int64_t index, const SampleView& out) const override {
    assert(index >= 0 && index < samples_);
    const std::uint64_t key = derive_key(walk_key_, static_cast<std::uint64_t>(first_ + index));
    std::int32_t token = skewed(philox(key, 0)[0]);
    for (std::size_t t = 0; t < out.tokens.size(); ++t) {
      out.tokens[t] = token;
      const auto bits = philox(key, t + 1);
      if (uniform_from_bits(bits[0]) < 0.1F) {
        token = skewed(bits[1]);
      } else {
        const auto choice = (static_cast<std::uint64_t>(token) << 2) | (bits[1] & 3U);
        token = skewed(random_bits(successor_key_, choice));
      }
      out.token_targets[t] = token;
    }
  }

 private:
  // floor(V u^2): small ids more often, all of them possible.
  std::int32_t skewed(std::uint32_t bits) const {
    const auto u = static_cast<double>(uniform_from_bits(bits));
    return static_cast<std::int32_t>(static_cast<double>(vocabulary_) * u * u);
  }

  std::int64_t vocabulary_, length_, first_, samples_;
  std::uint64_t walk_key_, successor_key_;
};

}  // namespace

std::unique_ptr<Source> make_synthetic_regression(std::int64_t features, std::int64_t targets, std::uint64_t key,
                                                  std::int64_t first, std::int64_t count) {
  return std::make_unique<SyntheticRegression>(features, targets, key, first, count);
}

std::unique_ptr<Source> make_synthetic_classification(std::int64_t features, std::int64_t classes, std::uint64_t key,
                                                      std::int64_t first, std::int64_t count) {
  return std::make_unique<SyntheticClassification>(features, classes, key, first, count);
}

std::unique_ptr<Source> make_synthetic_tokens(std::int64_t vocabulary, std::int64_t length, std::uint64_t key,
                                              std::int64_t first, std::int64_t count) {
  return std::make_unique<SyntheticTokens>(vocabulary, length, key, first, count);
}

}  // namespace zt
