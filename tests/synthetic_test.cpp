// Made-up data.
#include <cmath>
#include <map>

#include "data_support.h"

using namespace zt::testing;

namespace {

zt::Settings mlp_settings(const std::string& loss, std::vector<std::int64_t> layers, std::int64_t samples = 100) {
  zt::Settings settings;
  settings.model.type = "mlp";
  settings.model.mlp.layers = std::move(layers);
  settings.model.mlp.loss = loss;
  settings.data.type = "synthetic";
  settings.data.samples = samples;
  settings.batch = {.train = 10, .micro = 10, .accumulation = 1};
  return settings;
}

zt::Settings token_settings(std::int64_t vocabulary, std::int64_t positions, std::int64_t samples) {
  zt::Settings settings = mlp_settings("mse", {}, samples);
  settings.model.type = "gpt";
  settings.model.gpt.vocab_size = vocabulary;
  settings.model.gpt.n_positions = positions;
  settings.data.task = "tokens";
  return settings;
}

}  // namespace

TEST_CASE("synthetic regression: normal features, a linear map with little noise, a tenth for validation") {
  const zt::Dataset dataset = zt::open_dataset(mlp_settings("mse", {16, 8, 2}, 2000));
  CHECK(dataset.training->samples() == 1800);
  CHECK(dataset.validation->samples() == 200);
  CHECK(dataset.training->shape() == zt::SampleShape{.features = 16, .value_targets = 2});
  double sum = 0.0;
  double squares = 0.0;
  // Stochastic least squares: what is left of the error is the noise, in samples that were never fitted too.
  std::vector<double> map(16, 0.0);
  const auto error_of = [&](const Sample& sample) {
    double prediction = 0.0;
    for (std::size_t f = 0; f < 16; ++f) prediction += map[f] * static_cast<double>(sample.features[f]);
    return static_cast<double>(sample.value_targets[1]) - prediction;
  };
  for (std::int64_t index = 0; index < 1800; ++index) {
    const Sample sample = sample_of(*dataset.training, index);
    const double error = error_of(sample);
    for (std::size_t f = 0; f < 16; ++f) {
      const double feature = static_cast<double>(sample.features[f]);
      map[f] += 0.02 * error * feature;
      sum += feature;
      squares += feature * feature;
    }
  }
  const double count = 1800.0 * 16.0;
  CHECK(std::abs(sum / count) < 0.03);
  CHECK(squares / count == Approx(1.0).epsilon(0.03));
  double left = 0.0;
  for (std::int64_t index = 0; index < 200; ++index) {
    const double error = error_of(sample_of(*dataset.validation, index));
    left += error * error / 200.0;
  }
  CHECK(left < 0.02);
  CHECK(left > 0.005);
}

TEST_CASE("synthetic classification: classes about equally often, mostly told apart by their centres") {
  const zt::Dataset dataset = zt::open_dataset(mlp_settings("cross_entropy", {16, 32, 3}, 4000));
  CHECK(dataset.training->shape() == zt::SampleShape{.token_targets = 1, .features = 16});
  std::vector<std::vector<double>> centres(3, std::vector<double>(16, 0.0));
  std::vector<int> counts(3, 0);
  for (std::int64_t index = 0; index < dataset.training->samples(); ++index) {
    const Sample sample = sample_of(*dataset.training, index);
    const auto label = static_cast<std::size_t>(sample.token_targets[0]);
    REQUIRE(label < 3);
    ++counts[label];
    for (std::size_t f = 0; f < 16; ++f) centres[label][f] += static_cast<double>(sample.features[f]);
  }
  for (std::size_t label = 0; label < 3; ++label) {
    CHECK(counts[label] > 1000);
    for (double& value : centres[label]) value /= counts[label];
  }
  int right = 0;
  for (std::int64_t index = 0; index < dataset.validation->samples(); ++index) {
    const Sample sample = sample_of(*dataset.validation, index);
    std::vector<double> distances(3, 0.0);
    for (std::size_t label = 0; label < 3; ++label) {
      for (std::size_t f = 0; f < 16; ++f) {
        distances[label] += std::pow(centres[label][f] - static_cast<double>(sample.features[f]), 2.0);
      }
    }
    const auto nearest = std::ranges::min_element(distances) - distances.begin();
    right += nearest == sample.token_targets[0] ? 1 : 0;
  }
  CHECK(static_cast<double>(right) / static_cast<double>(dataset.validation->samples()) > 0.85);
}

TEST_CASE("synthetic tokens: targets are the next tokens, and most transitions repeat") {
  const zt::Dataset dataset = zt::open_dataset(token_settings(50, 64, 1000));
  CHECK(dataset.vocab_size == 50);
  CHECK(dataset.training->shape() == zt::SampleShape{.tokens = 64, .token_targets = 64});
  std::map<std::pair<int, int>, int> transitions;
  for (std::int64_t index = 0; index < dataset.training->samples(); ++index) {
    const Sample sample = sample_of(*dataset.training, index);
    for (std::size_t t = 0; t < 64; ++t) {
      REQUIRE((sample.tokens[t] >= 0 && sample.tokens[t] < 50));
      if (t > 0) REQUIRE(sample.tokens[t] == sample.token_targets[t - 1]);
      ++transitions[{sample.tokens[t], sample.token_targets[t]}];
    }
  }
  // The four most frequent followers of a token carry about nine tenths.
  std::map<int, std::vector<int>> followers;
  for (const auto& [pair, count] : transitions) followers[pair.first].push_back(count);
  double carried = 0.0;
  double all = 0.0;
  for (auto& [token, counts] : followers) {
    std::ranges::sort(counts, std::greater<>());
    for (std::size_t i = 0; i < counts.size(); ++i) {
      all += counts[i];
      if (i < 4) carried += counts[i];
    }
  }
  CHECK(carried / all > 0.85);
  CHECK(carried / all < 0.97);
}

TEST_CASE("synthetic data: the same seed gives the same, validation is other data, mistakes are named") {
  for (auto settings :
       {mlp_settings("mse", {5, 3}), mlp_settings("cross_entropy", {5, 3}), token_settings(30, 7, 100)}) {
    const auto equal = [](const Sample& a, const Sample& b) {
      return a.tokens == b.tokens && a.features == b.features && a.value_targets == b.value_targets;
    };
    const zt::Dataset one = zt::open_dataset(settings);
    const zt::Dataset two = zt::open_dataset(settings);
    settings.training.seed = 99;
    const zt::Dataset other = zt::open_dataset(settings);
    CHECK(equal(sample_of(*one.training, 5), sample_of(*two.training, 5)));
    CHECK_FALSE(equal(sample_of(*one.training, 5), sample_of(*one.training, 6)));
    CHECK_FALSE(equal(sample_of(*one.training, 5), sample_of(*one.validation, 5)));
    CHECK_FALSE(equal(sample_of(*one.training, 5), sample_of(*other.training, 5)));
  }
  zt::Settings settings = token_settings(0, 7, 100);
  CHECK(contains(message_of([&] { zt::open_dataset(settings); }), {"model.vocab_size", "auto"}));
  settings = token_settings(10, 7, 100);
  settings.data.task = "regression";
  CHECK(contains(message_of([&] { zt::open_dataset(settings); }), {"data.type", "mlp", "gpt"}));
  settings.data.task = "juggling";
  CHECK(contains(message_of([&] { zt::open_dataset(settings); }), {"data.task", "juggling", "tokens"}));
}

TEST_CASE("synthetic data that do not fill one step name both numbers") {
  zt::Settings synthetic = mlp_settings("mse", {4, 1}, 100);
  synthetic.batch.train = 91;
  const std::string message = message_of([&] { zt::open_dataset(synthetic); });
  CHECK(contains(message, {"train_batch_size: 91", "data.samples 100", "only 90", "102 or more"}));
  synthetic.data.samples = 102;
  CHECK(zt::open_dataset(synthetic).training->samples() >= 91);
}
