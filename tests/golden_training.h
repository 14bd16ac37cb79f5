// Training from a golden file: its model, weights, batch and optimizer, by our program.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "catch_compat.h"
#include "comm/threads.h"
#include "device/cpu/cpu_device.h"
#include "golden_file.h"
#include "golden_schedule.h"
#include "train/compute.h"
#include "train/plan.h"
#include "train/session.h"

namespace zt::golden {

using Weights = std::map<std::string, std::vector<double>>;

// The golden file's one batch, again and again. The loader deals its rows out in another order every step, which the
// mean over rows does not see but for rounding.
class OneBatch final : public Source {
 public:
  explicit OneBatch(const GoldenFile& file) {
    if (file.has("tokens")) {
      tokens_ = file.integers("tokens");
      targets_ = file.integers("targets");
      rows_ = file.shape("tokens")[0];
      shape_ = {.tokens = file.shape("tokens")[1], .token_targets = file.shape("tokens")[1]};
      return;
    }
    features_ = file.floats("features");
    rows_ = file.shape("features")[0];
    shape_.features = file.shape("features")[1];
    if (file.shape("targets").size() == 1) {
      targets_ = file.integers("targets");
      shape_.token_targets = 1;
    } else {
      values_ = file.floats("targets");
      shape_.value_targets = file.shape("targets")[1];
    }
  }
  SampleShape shape() const override { return shape_; }
  std::int64_t samples() const override { return rows_; }
  bool masks_losses() const override { return true; }
  std::int64_t losses(std::int64_t index) const override {
    if (shape_.token_targets == 0) return 1;
    const auto first = targets_.begin() + index * shape_.token_targets;
    return std::count_if(first, first + shape_.token_targets, [](std::int32_t target) { return target >= 0; });
  }
  void sample(std::int64_t index, const SampleView& out) const override {
    const auto copy = [&](const auto& from, auto to) {
      std::copy_n(from.begin() + index * static_cast<std::int64_t>(to.size()), to.size(), to.begin());
    };
    copy(tokens_, out.tokens);
    copy(targets_, out.token_targets);
    copy(features_, out.features);
    copy(values_, out.value_targets);
  }

 private:
  std::vector<std::int32_t> tokens_, targets_;
  std::vector<float> features_, values_;
  std::int64_t rows_ = 0;
  SampleShape shape_;
};

// The arguments of PyTorch's class, which has no defaults here but for what is off.
inline OptimizerSettings optimizer_of(const nlohmann::json& run) {
  OptimizerSettings s;
  s.type = run.at("type");
  s.learning_rate = run.at("lr");
  s.weight_decay = run.at("weight_decay");
  for (const std::string& kind : run.value("exclude", std::vector<std::string>())) {
    (kind == "bias" ? s.decay_biases : s.decay_norms) = false;
  }
  if (run.contains("eps")) s.epsilon = run.at("eps");
  if (run.contains("betas")) {
    s.beta1 = run.at("betas")[0];
    s.beta2 = run.at("betas")[1];
  }
  s.decoupled_decay = s.type == "AdamW" || s.type == "Muon";
  s.bias_correction = run.value("bias_correction", true);
  s.amsgrad = run.value("amsgrad", false);
  s.max_coeff = run.value("max_coeff", s.max_coeff);
  s.min_coeff = run.value("min_coeff", s.min_coeff);
  s.epsilon_inside_root = run.value("eps_inside_sqrt", false);
  s.momentum = run.value("momentum", 0.0);
  s.dampening = run.value("dampening", 0.0);
  s.nesterov = run.value("nesterov", false);
  s.matrix_rate = run.value("muon_lr", s.learning_rate) / s.learning_rate;
  s.other_rate = run.value("adam_lr", s.learning_rate) / s.learning_rate;
  s.lr_decay = run.value("lr_decay", 0.0);
  s.initial_accumulator_value = run.value("initial_accumulator_value", 0.0);
  return s;
}

inline Settings settings_of(const GoldenFile& file, const std::string& run, std::int64_t rows, int ranks, int stage) {
  const nlohmann::json& model = file.header().at("model");
  Settings settings;
  settings.model.type = model.at("type");
  if (settings.model.type == "gpt") {
    GptSettings& gpt = settings.model.gpt;
    gpt.n_layer = model.at("n_layer");
    gpt.n_head = model.at("n_head");
    gpt.n_embd = model.at("n_embd");
    gpt.n_positions = model.at("n_positions");
    gpt.vocab_size = model.at("vocab_size");
    gpt.n_inner = model.at("n_inner").is_null() ? 0 : model.at("n_inner").get<std::int64_t>();
    gpt.activation_function = model.at("activation_function");
    gpt.bias = model.at("bias");
    gpt.tie_word_embeddings = model.at("tie_word_embeddings");
  } else {
    settings.model.mlp.layers = model.at("layers").get<std::vector<std::int64_t>>();
    settings.model.mlp.activation = model.at("activation");
    settings.model.mlp.bias = model.at("bias");
    settings.model.mlp.loss = model.at("loss");
  }
  const nlohmann::json& optimizer = file.header().at("runs").at(run);
  settings.optimizer = optimizer_of(optimizer);
  if (optimizer.contains("schedule")) {
    settings.scheduler = schedule_of(optimizer.at("schedule").at("type"), optimizer.at("schedule").at("params"));
  }
  settings.gradient_clipping = optimizer.value("clipping", 0.0);
  settings.batch = {.train = rows, .micro = rows / ranks, .accumulation = 1};
  settings.zero.stage = stage;
  settings.device.threads = 1;
  return settings;
}

struct Result {
  std::vector<double> losses, norms;
  Weights gradients;  // of the first step; at one rank
  Weights weights;    // after the last
};

inline Result train_golden(const GoldenFile& file, const std::string& run, int ranks, int stage) {
  const OneBatch source(file);
  const Settings settings = settings_of(file, run, source.samples(), ranks, stage);
  const int steps = file.header().at("steps");
  Result result;
  run_ranks_as_threads(ranks, 0, [&](Communicator& communicator) {
    const bool first = communicator.rank() == 0;
    const Plan plan = make_plan(settings, communicator.rank(), ranks, 0, scratch_of_device(settings.device));
    cpu::CpuDevice device(1);
    for (const Operation& operation : plan.operations) device.prepare(operation);
    device.reserve_workspace();
    Session session(settings, device, communicator, &source, nullptr);
    Weights initial;
    for (const std::string& name : file.names("initial/")) {
      const std::vector<float> values = file.floats("initial/" + name);
      initial[name].assign(values.begin(), values.end());
    }
    visit_weights(session.engine(), session.states(),
                  [&](const TensorPlace& tensor, std::int64_t offset, TensorView values) {
                    const std::vector<double>& from = initial.at(tensor.name);
                    if (static_cast<std::int64_t>(from.size()) != tensor.count)
                      throw std::runtime_error(tensor.name + ": other size");
                    for (std::int64_t i = 0; i < values.count; ++i) {
                      values.as<float>()[i] = static_cast<float>(from[static_cast<std::size_t>(offset + i)]);
                    }
                  });
    publish_weights(session.engine(), session.states());
    for (int step = 0; step < steps; ++step) {
      const StepOutcome outcome = session.train_step();
      if (!first) continue;
      result.losses.push_back(outcome.agreed.loss_sum / static_cast<double>(session.losses_per_step()));
      result.norms.push_back(outcome.grad_norm);
      if (step > 0 || ranks > 1) continue;
      for (const TensorPlace& tensor : session.layout().tensors()) {
        const ConstTensorView sums =
            session.engine().summed_gradients(tensor.unit, tensor.segment).part(tensor.offset, tensor.count);
        result.gradients[tensor.name].assign(sums.as<float>(), sums.as<float>() + sums.count);
      }
    }
    if (ranks > 1) return;
    visit_weights(session.engine(), session.states(), [&](const TensorPlace& tensor, std::int64_t, TensorView values) {
      result.weights[tensor.name].assign(values.as<float>(), values.as<float>() + values.count);
    });
  });
  return result;
}

// Largest and root-mean-square difference; elements for which skip(i) holds are left out.
struct Distance {
  double largest = 0.0, rms = 0.0, norm = 0.0;  // norm: of the reference
};
inline Distance distance(const std::vector<double>& ours, const std::vector<double>& reference,
                         const std::function<bool(std::size_t)>& skip = {}) {
  REQUIRE(ours.size() == reference.size());
  Distance result;
  std::size_t counted = 0;
  double squares = 0.0, reference_squares = 0.0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (skip && skip(i)) continue;
    const double difference = std::abs(ours[i] - reference[i]);
    result.largest = std::max(result.largest, difference);
    squares += difference * difference;
    reference_squares += reference[i] * reference[i];
    ++counted;
  }
  result.rms = counted > 0 ? std::sqrt(squares / static_cast<double>(counted)) : 0.0;
  result.norm = std::sqrt(reference_squares);
  return result;
}

inline std::vector<double> widened(const std::vector<float>& values) { return {values.begin(), values.end()}; }

inline void require_close(const std::vector<double>& ours, const std::vector<float>& theirs, double relative) {
  REQUIRE(ours.size() == theirs.size());
  for (std::size_t step = 0; step < ours.size(); ++step) {
    INFO("step " << step + 1 << ": ours " << ours[step] << ", PyTorch " << theirs[step]);
    CHECK(std::abs(ours[step] - static_cast<double>(theirs[step])) <=
          relative * std::abs(static_cast<double>(theirs[step])));
  }
}

// The biases of keys: softmax does not see what is added to all keys of a query alike, so their true gradient is zero
// and what fp32 leaves instead is noise, which Adam turns into whole steps.
inline std::function<bool(std::size_t)> key_bias_of(const std::string& tensor, std::size_t count) {
  if (!tensor.ends_with("attn.c_attn.bias")) return {};
  return [count](std::size_t i) { return i >= count / 3 && i < 2 * count / 3; };
}

}  // namespace zt::golden
