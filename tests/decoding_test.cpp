// Tokens one after the other over cached keys and values: the same scores as whole passes give.
#include <cmath>
#include <map>
#include <numeric>

#include "catch_compat.h"
#include "checkpoint/directory.h"
#include "comm/threads.h"
#include "core/errors.h"
#include "cpu_test_memory.h"
#include "device/cpu/attention.h"
#include "device/cpu/cpu_device.h"
#include "device/cpu/simd.h"
#include "device/device_decorator.h"
#include "inference/sampler.h"
#include "inference/setup.h"
#include "inference/text_stream.h"
#include "model/decoder.h"
#include "run_program.h"
#include "tiny_models.h"
#include "train/curve.h"

using namespace zt;
using namespace zt::test;

namespace {

const bool limited = limit_by_environment();

// Scores in fp32 differ by the order of sums; in 16 bits now and then a rounding of an activation goes the other way.
double tolerance_of(const std::string& preset) { return preset == "fp32" ? 1e-5 : preset == "fp16" ? 4e-3 : 3e-2; }

// A checkpoint of a few steps of training: weights with a meaning.
class Trained {
 public:
  explicit Trained(const std::string& preset, int ranks = 1, int stage = 0) {
    settings_ = with_batch(tiny_gpt(), 2, 1, ranks);
    settings_.precision.preset = preset;
    settings_.precision.grad_accum_dtype = "fp32";
    settings_.loss_scale.initial_scale_power = 10;
    settings_.model.gpt.initializer_range = 0.3;
    settings_.zero.stage = stage;
    settings_.training.max_steps = 3;
    const Dataset data = data_for(settings_);
    trace_curve(settings_, data, ranks, {.save_to = place_.path().string()});
    checkpoint_ = std::make_unique<NativeCheckpoint>((place_.path() / checkpoint_name(3)).string());
  }
  const Settings& settings() const { return settings_; }
  const NativeCheckpoint& checkpoint() const { return *checkpoint_; }

 private:
  TemporaryDirectory place_;
  Settings settings_;
  std::unique_ptr<NativeCheckpoint> checkpoint_;
};

// A model with its weights on a CPU, and every operation of decoding prepared.
class Loaded {
 public:
  explicit Loaded(const Trained& trained, int threads = 1)
      : settings_(trained.settings()), device_(threads), model_(settings_, device_, 1) {
    model_.weights().load(trained.checkpoint());
    tokens_ = device_.allocate(positions() * 4, MemoryCategory::data, "tokens");
    prepare();
  }
  std::int64_t positions() const { return settings_.model.gpt.n_positions; }
  Decoder decoder(Decoder::Prompt prompt = Decoder::Prompt::exact) {
    return {device_,
            model_.model(),
            model_.weights(),
            positions(),
            settings_.model.gpt.vocab_size,
            prompt,
            [this](std::span<const std::int32_t> tokens) { return put(tokens); }};
  }
  std::vector<float> whole_pass(std::span<const std::int32_t> tokens) {
    const float* logits = model_.model().next_token_logits(device_, model_.weights(), put(tokens),
                                                           static_cast<std::int64_t>(tokens.size()));
    return {logits, logits + settings_.model.gpt.vocab_size};
  }

 private:
  // Tells the device of operations and runs none.
  class Recorder final : public DeviceDecorator {
   public:
    using DeviceDecorator::DeviceDecorator;
    void run(Stream /*stream*/, const Operation& operation) override { inner().prepare(operation); }
  };
  // Scratch for all shapes.
  void prepare() {
    Recorder recorder(device_);
    for (std::int64_t length = 1; length <= positions(); ++length)
      model_.model().decode(recorder, model_.weights(), nullptr, 0, length);
    model_.model().next_token_logits(recorder, model_.weights(), nullptr, 1);
    if (positions() > 1) model_.model().decode(recorder, model_.weights(), nullptr, positions() - 1, 1);
    device_.reserve_workspace();
  }
  const std::int32_t* put(std::span<const std::int32_t> tokens) {
    std::fill_n(tokens_.as<std::int32_t>(), positions(), 0);
    std::copy(tokens.begin(), tokens.end(), tokens_.as<std::int32_t>());
    return tokens_.as<std::int32_t>();
  }

  Settings settings_;
  cpu::CpuDevice device_;
  InferenceModel model_;
  Buffer tokens_;
};

double largest_difference(std::span<const float> a, std::span<const float> b) {
  REQUIRE(a.size() == b.size());
  double largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!(difference <= largest)) largest = difference;
  }
  return largest;
}

std::int32_t likeliest(std::span<const float> scores) {
  return static_cast<std::int32_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

struct AttentionProblem {
  std::int64_t batch, length, heads, head_size;
  DType dtype;
};

Memory cached(const AttentionProblem& p, const Memory& qkv, std::int64_t capacity, std::int64_t first, int threads) {
  Memory out(p.batch * (p.length - first) * p.heads * p.head_size, p.dtype);
  out.fill(std::nan(""));
  const CachedAttention op{.qkv = qkv.view(),
                           .out = out.view(),
                           .batch = p.batch,
                           .capacity = capacity,
                           .first = first,
                           .length = p.length - first,
                           .heads = p.heads,
                           .head_size = p.head_size};
  with_context(threads, cpu::workspace_of(op), [&](cpu::Context& context) { cpu::run(op, context); });
  return out;
}

}  // namespace

TEST_CASE("cached attention finds what attention finds for the last positions, from no later ones") {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const std::int64_t head_size : {1, 5, 32, 64, 100}) {
      for (const std::int64_t length : {1, 7, 16, 33, 130}) {
        const AttentionProblem p{2, length, 3, head_size, dtype};
        CAPTURE(static_cast<int>(dtype), head_size, length);
        const std::int64_t width = p.heads * head_size;
        const std::int64_t capacity = length + 3;
        Memory dense(p.batch * length * 3 * width, dtype);
        dense.randomize(1, 1.5);
        Memory cache(p.batch * capacity * 3 * width, dtype);
        cache.fill(std::nan(""));
        for (std::int64_t b = 0; b < p.batch; ++b) {
          for (std::int64_t i = 0; i < length * 3 * width; ++i)
            cache.set(b * capacity * 3 * width + i, dense.get(b * length * 3 * width + i));
        }
        Memory whole(p.batch * length * width, dtype);
        std::vector<float> log_sum_exp(static_cast<std::size_t>(p.batch * p.heads * length));
        const AttentionForward forward{.qkv = dense.view(),
                                       .out = whole.view(),
                                       .log_sum_exp = log_sum_exp.data(),
                                       .batch = p.batch,
                                       .length = length,
                                       .heads = p.heads,
                                       .head_size = head_size};
        with_context(1, cpu::attention_workspace(forward),
                     [&](cpu::Context& context) { cpu::run_attention(forward, context); });
        for (const std::int64_t first : {std::int64_t{0}, length / 2, length - 1}) {
          const Memory out = cached(p, cache, capacity, first, 1);
          double worst = 0.0;
          for (std::int64_t b = 0; b < p.batch; ++b) {
            for (std::int64_t i = 0; i < (length - first) * width; ++i) {
              const double difference =
                  std::abs(out.get(b * (length - first) * width + i) - whole.get((b * length + first) * width + i));
              if (!(difference <= worst)) worst = difference;
            }
          }
          CHECK(worst <= (dtype == DType::f32 ? 1e-6 : 1.6 * unit_roundoff(dtype) * 2));
          CHECK(out.same_bits(cached(p, cache, capacity, first, 3)));
        }
      }
    }
  }
}

TEST_CASE("every step of decoding gives the scores of a whole pass, and the same likeliest tokens") {
  for (const std::string preset : {"fp32", "bf16", "fp16"}) {
    const Trained trained(preset);
    Loaded loaded(trained), reference(trained);
    Decoder decoder = loaded.decoder();
    std::vector<std::int32_t> tokens = {5, 60, 3};
    while (static_cast<std::int64_t>(tokens.size()) <= loaded.positions()) {
      CAPTURE(preset, tokens.size());
      const std::vector<float> expected = reference.whole_pass(tokens);
      const auto found = decoder.logits_after(tokens);
      CHECK(largest_difference(found, expected) <= tolerance_of(preset));
      CHECK(likeliest(found) == likeliest(expected));
      tokens.push_back(likeliest(expected));
    }
  }
}

TEST_CASE("a checkpoint of many ranks at stage 3 decodes as one of a single rank does") {
  const Trained one("bf16", 2, 0), sharded("bf16", 2, 3);
  Loaded a(one), b(sharded, 2);
  Decoder from_one = a.decoder(), from_sharded = b.decoder(Decoder::Prompt::whole);
  std::vector<std::int32_t> tokens = {1};
  for (int i = 0; i < 12; ++i) {
    const auto expected = from_one.logits_after(tokens);
    CHECK(largest_difference(from_sharded.logits_after(tokens), expected) <= tolerance_of("bf16"));
    tokens.push_back(likeliest(expected));
  }
}

TEST_CASE("beyond the model's positions the window moves by halves, and what it holds is all that counts") {
  CHECK(window_start(16, 16) == 0);
  CHECK(window_start(17, 16) == 8);
  CHECK(window_start(24, 16) == 8);
  CHECK(window_start(25, 16) == 16);
  CHECK(window_start(2, 1) == 1);
  for (std::int64_t positions = 1; positions < 9; ++positions) {
    for (std::int64_t length = 1; length < 40; ++length) {
      const std::int64_t held = length - window_start(length, positions);
      CHECK(held >= 1);
      CHECK(held <= positions);
    }
  }
  const Trained trained("fp32");
  Loaded loaded(trained), fresh(trained);
  Decoder decoder = loaded.decoder();
  std::vector<std::int32_t> tokens;
  for (std::int32_t i = 0; i < 60; ++i) {
    tokens.push_back(i * 7 % 67);
    const auto start = static_cast<std::ptrdiff_t>(window_start(i + 1, loaded.positions()));
    Decoder anew = fresh.decoder();
    const std::vector<std::int32_t> window(tokens.begin() + start, tokens.end());
    CHECK(largest_difference(decoder.logits_after(tokens), anew.logits_after(window)) <= tolerance_of("fp32"));
  }
  // Another past is not mistaken for the one that is held.
  tokens.resize(5);
  decoder.logits_after(tokens);
  tokens[1] = 66;
  tokens.push_back(2);
  Decoder anew = fresh.decoder();
  CHECK(largest_difference(decoder.logits_after(tokens), anew.logits_after(tokens)) <= tolerance_of("fp32"));
}

TEST_CASE("tokens are drawn as temperature, top-k, top-p and seed say") {
  const std::vector<float> scores = {1.0F, 3.0F, 2.0F, 3.0F, -5.0F};
  CHECK(Sampler({.temperature = 0.0}).pick(scores, 0) == 1);
  CHECK(Sampler({.temperature = 5.0, .top_k = 1}).pick(scores, 7) == 1);
  CHECK(Sampler({.temperature = 5.0, .top_p = 1e-9}).pick(scores, 7) == 1);
  const auto shares = [&](const SamplerSettings& settings) {
    Sampler sampler(settings);
    std::map<std::int32_t, double> counts;
    constexpr int draws = 20000;
    for (int i = 0; i < draws; ++i) counts[sampler.pick(scores, i)] += 1.0 / draws;
    return counts;
  };
  for (const double temperature : {1.0, 2.0}) {
    double total = 0.0;
    for (const float score : scores) total += std::exp(score / temperature);
    auto counts = shares({.temperature = temperature, .seed = 3});
    for (std::size_t token = 0; token < scores.size(); ++token) {
      CHECK(std::abs(counts[static_cast<std::int32_t>(token)] - std::exp(scores[token] / temperature) / total) < 0.015);
    }
  }
  auto two = shares({.top_k = 2});
  CHECK(two.size() == 2);
  CHECK(std::abs(two[1] - 0.5) < 0.015);
  CHECK(two.contains(3));
  // 1 and 3 have 0.40 each: more than 0.8 takes token 2, too.
  CHECK(shares({.top_p = 0.79}).size() == 2);
  CHECK(shares({.top_p = 0.85}).size() == 3);
  // A function of seed and position.
  Sampler a({.seed = 1}), b({.seed = 1}), c({.seed = 2});
  int differences = 0;
  for (int i = 99; i >= 0; --i) {
    const std::int32_t token = a.pick(scores, i);
    CHECK(token == Sampler({.seed = 1}).pick(scores, i));
    differences += c.pick(scores, i) == token ? 0 : 1;
  }
  CHECK(differences > 20);
  CHECK_THROWS_AS(a.pick(std::vector<float>{1.0F, std::nanf("")}, 0), RunError);
  CHECK_THROWS_AS(a.pick(std::vector<float>{INFINITY, 1.0F}, 0), RunError);
}

TEST_CASE("text is given out in whole characters, and ends before the stop text") {
  const std::string text = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z";
  TextStream bytes("");
  std::string all;
  for (const char byte : text) {
    const std::string piece = bytes.add({&byte, 1});
    CHECK((piece.empty() || (static_cast<unsigned char>(piece[0]) & 0xc0U) != 0x80U));
    all += piece;
  }
  CHECK(all == text);
  CHECK(bytes.finish().empty());

  const std::string sign = "\xef\xbf\xbd";
  TextStream broken("");
  CHECK(broken.add("x\xff") == "x" + sign);
  CHECK(broken.add("\xe2\x82").empty());
  CHECK(broken.add("y") == sign + sign + "y");
  CHECK(broken.add("\xf0\x9f").empty());
  CHECK(broken.finish() == sign + sign);

  TextStream stops("END");
  CHECK(stops.add("one E") == "one ");
  CHECK(stops.add("N") == "");
  CHECK(stops.add("X EN") == "ENX ");
  CHECK(stops.add("DE") == "");
  CHECK(stops.stopped());
  CHECK(stops.add("more").empty());
  CHECK(stops.finish().empty());
  TextStream unfinished("END");
  CHECK(unfinished.add("the EN") == "the ");
  CHECK(unfinished.finish() == "EN");
}

TEST_CASE("decoding is right at every instruction set below the best one") {
  if (limited) return;
  CHECK(levels_that_fail().empty());
}
