// Losses over whole data, in one process or many, with windows that overlap or not.
#include "inference/evaluation.h"

#include <cmath>
#include <mutex>
#include <set>

#include "catch_compat.h"
#include "checkpoint/directory.h"
#include "comm/threads.h"
#include "inference/sliding_source.h"
#include "run_program.h"
#include "tiny_models.h"
#include "train/curve.h"

using namespace zt;
using namespace zt::test;

namespace {

struct Trained {
  explicit Trained(const Settings& from) : settings(from), data(data_for(from)) {
    trace_curve(settings, data, 1, {.save_to = place.path().string()});
    checkpoint = (place.path() / checkpoint_name(3)).string();
  }
  TemporaryDirectory place;
  Settings settings;
  Dataset data;
  std::string checkpoint;
};

Evaluation evaluate(const Trained& trained, const Source& source, int ranks, const Tokenizer* tokenizer = nullptr) {
  Evaluation result;
  std::mutex mutex;
  const std::int64_t rows = trained.settings.batch.micro;
  run_ranks_as_threads(ranks, 0, [&](Communicator& communicator) {
    ResolvedConfig config;
    config.settings = trained.settings;
    config.settings.device.type = "cpu";
    const NativeCheckpoint checkpoint(trained.checkpoint);
    with_model(
        config, checkpoint, rows, communicator,
        [&](InferenceModel& model, Device& device, Communicator&) {
          rehearse_evaluation(model, device, source.shape(), rows);
        },
        [&](InferenceModel& model, Device& device, Communicator& devices) {
          const auto found = evaluate_all(model, device, devices, source, rows, tokenizer, [] { return false; });
          const std::lock_guard lock(mutex);
          if (communicator.rank() == ranks - 1) result = found.value();
        });
  });
  return result;
}

Settings gpt(const std::string& preset) {
  Settings settings = tiny_gpt();
  settings.precision.preset = preset;
  settings.precision.grad_accum_dtype = "fp32";
  settings.loss_scale.initial_scale_power = 10;
  settings.training.eval_steps = 1000;  // all there is
  return settings;
}

// Tokens 0, 1, 2 ... and their successors as targets, so that a value says where it comes from.
class Counted final : public Source {
 public:
  Counted(std::int64_t samples, std::int64_t length) : samples_(samples), length_(length) {}
  SampleShape shape() const override { return {.tokens = length_, .token_targets = length_}; }
  std::int64_t samples() const override { return samples_; }
  bool goes_on(std::int64_t index) const override { return index > 0; }
  void sample(std::int64_t index, const SampleView& out) const override {
    for (std::int64_t i = 0; i < length_; ++i) {
      out.tokens[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(index * length_ + i);
      out.token_targets[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(index * length_ + i + 1);
    }
  }

 private:
  std::int64_t samples_, length_;
};

// Documents of these many targets, each cut into windows of its own. Token i of document d is 1000 d + i.
class Documents final : public Source {
 public:
  Documents(const std::vector<std::int64_t>& targets, std::int64_t length) : length_(length) {
    for (std::size_t document = 0; document < targets.size(); ++document) {
      for (std::int64_t start = 0; start < targets[document]; start += length)
        windows_.push_back({static_cast<std::int64_t>(document), start, std::min(length, targets[document] - start)});
    }
  }
  SampleShape shape() const override { return {.tokens = length_, .token_targets = length_}; }
  std::int64_t samples() const override { return static_cast<std::int64_t>(windows_.size()); }
  std::int64_t losses(std::int64_t index) const override { return windows_.at(static_cast<std::size_t>(index)).count; }
  bool masks_losses() const override { return true; }
  bool goes_on(std::int64_t index) const override { return windows_.at(static_cast<std::size_t>(index)).start > 0; }
  void sample(std::int64_t index, const SampleView& out) const override {
    const Window& window = windows_.at(static_cast<std::size_t>(index));
    for (std::int64_t i = 0; i < length_; ++i) {
      const auto token = static_cast<std::int32_t>(1000 * window.document + window.start + i);
      out.tokens[static_cast<std::size_t>(i)] = i < window.count ? token : 0;
      out.token_targets[static_cast<std::size_t>(i)] = i < window.count ? token + 1 : -1;
    }
  }

 private:
  struct Window {
    std::int64_t document, start, count;
  };
  std::vector<Window> windows_;
  std::int64_t length_;
};

}  // namespace

TEST_CASE("evaluation gives the numbers of the training run, to the bit, on any number of ranks") {
  std::vector<Settings> kinds = {gpt("fp32"), gpt("bf16"), gpt("fp16")};
  kinds.push_back(tiny_mlp());
  kinds.back().training.eval_steps = 1000;
  kinds.push_back(kinds.back());
  kinds.back().model.mlp.loss = "cross_entropy";
  for (const Settings& settings : kinds) {
    CAPTURE(settings.model.type, settings.precision.preset, settings.model.mlp.loss);
    const Trained trained(settings);
    const Source& source = *trained.data.validation;
    const Evaluation one = evaluate(trained, source, 1);
    CHECK(one.loss == trace_curve(settings, trained.data, 1).validation_loss);
    CHECK(one.samples == source.samples());
    CHECK(one.accuracy.has_value() == (settings.model.type == "mlp" && settings.model.mlp.loss == "cross_entropy"));
    for (const int ranks : {2, 3, 7}) {
      const Evaluation many = evaluate(trained, source, ranks);
      CHECK(many.loss == one.loss);
      CHECK(many.accuracy == one.accuracy);
      CHECK(many.counted == one.counted);
    }
  }
}

TEST_CASE("overlapping windows count every token once, with the longest past that there is") {
  for (const std::int64_t length : {1, 4, 7}) {
    for (const std::int64_t samples : {1, 2, 5}) {
      const Counted windows(samples, length);
      for (std::int64_t stride = 1; stride <= length; ++stride) {
        CAPTURE(length, samples, stride);
        const SlidingSource sliding(windows, stride);
        std::vector<std::int32_t> tokens(static_cast<std::size_t>(length)), targets(tokens.size());
        std::set<std::int32_t> seen;
        for (std::int64_t index = 0; index < sliding.samples(); ++index) {
          sliding.sample(index, {.tokens = tokens, .token_targets = targets, .features = {}, .value_targets = {}});
          std::int64_t counted = 0;
          for (std::size_t i = 0; i < tokens.size(); ++i) {
            CHECK(tokens[i] == tokens[0] + static_cast<std::int32_t>(i));
            if (targets[i] == -1) continue;
            CHECK(targets[i] == tokens[i] + 1);
            CHECK(seen.insert(targets[i]).second);
            ++counted;
            if (index > 0) CHECK(static_cast<std::int64_t>(i) >= length - stride);
          }
          CHECK(sliding.losses(index) == counted);
        }
        CHECK(static_cast<std::int64_t>(seen.size()) == samples * length);
      }
    }
  }
}

TEST_CASE("windows that overlap stay within their document, and count each of its targets once") {
  const std::vector<std::int64_t> targets = {1, 4, 9, 8, 3, 12, 5};
  for (const std::int64_t length : {1, 3, 4, 8}) {
    for (std::int64_t stride = 1; stride <= length; ++stride) {
      CAPTURE(length, stride);
      const Documents windows(targets, length);
      const SlidingSource sliding(windows, stride);
      std::vector<std::int32_t> tokens(static_cast<std::size_t>(length)), next(tokens.size());
      std::vector<std::int32_t> seen;
      for (std::int64_t index = 0; index < sliding.samples(); ++index) {
        sliding.sample(index, {.tokens = tokens, .token_targets = next, .features = {}, .value_targets = {}});
        const std::int32_t document = tokens[0] / 1000;
        const auto last = static_cast<std::int32_t>(1000 * document + targets.at(static_cast<std::size_t>(document)));
        std::int64_t counted = 0;
        for (std::size_t i = 0; i < tokens.size(); ++i) {
          const bool is_inside = tokens[0] + static_cast<std::int32_t>(i) < last;
          CHECK(tokens[i] == (is_inside ? tokens[0] + static_cast<std::int32_t>(i) : 0));
          if (next[i] == -1) continue;
          CHECK(is_inside);
          CHECK(next[i] == tokens[i] + 1);
          seen.push_back(next[i]);
          ++counted;
          // What lies behind the first window of a document is predicted from at least length - stride others.
          if (tokens[0] % 1000 > 0) CHECK(static_cast<std::int64_t>(i) >= length - stride);
        }
        CHECK(counted > 0);
        CHECK(sliding.losses(index) == counted);
      }
      std::vector<std::int32_t> all;
      for (std::size_t document = 0; document < targets.size(); ++document) {
        for (std::int64_t i = 1; i <= targets[document]; ++i)
          all.push_back(static_cast<std::int32_t>(1000 * static_cast<std::int64_t>(document) + i));
      }
      CHECK(seen == all);
      CHECK(sliding.masks_losses());
    }
  }
}

TEST_CASE("bits per byte count the bytes that tokens stand for, and a stride changes losses as it should") {
  Settings settings = gpt("fp32");
  const TemporaryDirectory place;
  const std::string path = (place.path() / "text.txt").string();
  std::string text;
  for (int i = 0; i < 120; ++i) text += i % 3 == 0 ? "\xc3\xa9t\xc3\xa9 " : "abc d\xe2\x82\xac";
  std::ofstream(path, std::ios::binary) << text;
  settings.data.type = "text";
  settings.data.path = path;
  settings.data.tokenizer = "characters";
  settings.data.validation_fraction = 0.4;
  const Trained trained(settings);
  const Source& source = *trained.data.validation;
  const Evaluation plain = evaluate(trained, source, 1, trained.data.tokenizer.get());
  std::vector<std::int32_t> tokens(16), targets(16);
  std::int64_t bytes = 0;
  for (std::int64_t i = 0; i < source.samples(); ++i) {
    source.sample(i, {.tokens = tokens, .token_targets = targets, .features = {}, .value_targets = {}});
    bytes += static_cast<std::int64_t>(trained.data.tokenizer->decode(targets).size());
  }
  CHECK(plain.bytes == bytes);
  CHECK(plain.counted == source.samples() * 16);

  const SlidingSource same(source, 16), one_by_one(source, 1);
  CHECK(evaluate(trained, same, 2, trained.data.tokenizer.get()).loss == plain.loss);
  const Evaluation sliding = evaluate(trained, one_by_one, 2, trained.data.tokenizer.get());
  CHECK(sliding.counted == plain.counted);
  CHECK(sliding.bytes == plain.bytes);
  CHECK(sliding.loss != plain.loss);
  CHECK(evaluate(trained, one_by_one, 3).loss == sliding.loss);
}
