// Gradients of whole models beside finite differences of the same models in double precision, over random shapes.

#include <algorithm>
#include <cmath>
#include <random>

#include "catch_compat.h"
#include "comm/threads.h"
#include "device/cpu/cpu_device.h"
#include "double_model.h"
#include "tiny_models.h"
#include "train/compute.h"
#include "train/plan.h"
#include "train/session.h"

using namespace zt;
using namespace zt::test;

namespace {

struct FirstStep {
  DoubleWeights weights, gradients;
  double loss = 0.0;
  MicroBatch batch;  // the whole global batch
};

// One step on one rank: the weights before it, the gradient of the mean loss, the data it saw.
FirstStep first_step(Settings settings, const Dataset& data) {
  FirstStep result;
  settings.optimizer.type = "SGD";
  settings.optimizer.momentum = 0.0;
  settings.optimizer.weight_decay = 0.0;
  settings.optimizer.learning_rate = 0.0;  // the weights stay
  run_ranks_as_threads(1, 0, [&](Communicator& communicator) {
    const Plan plan = make_plan(settings, 0, 1, 0, scratch_of_device(settings.device));
    cpu::CpuDevice device(1);
    for (const Operation& operation : plan.operations) device.prepare(operation);
    device.reserve_workspace();
    Session session(settings, device, communicator, data.training.get(), nullptr);
    session.initialize();
    // Random biases and norm weights, so that none hides behind a zero or a one.
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    visit_weights(session.engine(), session.states(), [&](const TensorPlace& tensor, std::int64_t, TensorView values) {
      float* w = values.as<float>();
      for (std::int64_t i = 0; i < values.count; ++i) {
        if (tensor.segment == Segment::vectors) w[i] += 0.2F * normal(random);
        if (tensor.segment == Segment::matrices) w[i] *= 5.0F;  // far from linear
      }
      result.weights[tensor.name].assign(w, w + values.count);
    });
    publish_weights(session.engine(), session.states());
    const StepOutcome outcome = session.train_step();
    result.loss = outcome.agreed.loss_sum / static_cast<double>(session.losses_per_step());
    for (const TensorPlace& tensor : session.layout().tensors()) {
      const ConstTensorView sums =
          session.engine().summed_gradients(tensor.unit, tensor.segment).part(tensor.offset, tensor.count);
      std::vector<double>& gradient = result.gradients[tensor.name];
      gradient.assign(sums.as<float>(), sums.as<float>() + sums.count);
      for (double& value : gradient) value /= static_cast<double>(settings.batch.accumulation);
    }
  });
  Loader(*data.training, Loader::Order::shuffled, settings.training.seed, settings.batch.train, settings.batch.train)
      .fill(0, 0, result.batch);
  return result;
}

void require_gradients(const Settings& settings) {
  const Dataset data = data_for(settings);
  const FirstStep step = first_step(settings, data);
  DoubleModel model(settings.model, step.weights);
  const auto loss = [&] {
    return settings.model.type == "gpt"
               ? model.gpt_loss(step.batch.tokens, step.batch.token_targets)
               : model.mlp_loss(step.batch.features, step.batch.token_targets, step.batch.value_targets);
  };
  CHECK(step.loss == Approx(loss()).epsilon(2e-6));
  std::mt19937 random(7);
  for (const auto& [name, gradient] : step.gradients) {
    const double largest = std::abs(*std::max_element(gradient.begin(), gradient.end(),
                                                      [](double a, double b) { return std::abs(a) < std::abs(b); }));
    for (int sample = 0; sample < 6; ++sample) {
      const std::size_t index = std::uniform_int_distribution<std::size_t>(0, gradient.size() - 1)(random);
      double& weight = model.weights().at(name)[index];
      const double kept = weight;
      // Central differences; an error of h^2 f'''/6 and of rounding, 1e-16 f / h: least near h = 1e-5.
      const double h = 1e-5;
      weight = kept + h;
      const double above = loss();
      weight = kept - h;
      const double below = loss();
      weight = kept;
      const double expected = (above - below) / (2.0 * h);
      INFO(name << "[" << index << "]: ours " << gradient[index] << ", finite difference " << expected);
      CHECK(std::abs(gradient[index] - expected) <= 2e-5 * std::abs(expected) + 5e-6 * largest + 1e-9);
    }
  }
}

}  // namespace

TEST_CASE("Gradients of a GPT are those of finite differences, over random shapes and variants") {
  std::mt19937 random(11);
  std::mt19937 parts(12);  // of the logits
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  for (int trial = 0; trial < 16; ++trial) {
    Settings settings = tiny_gpt();
    GptSettings& gpt = settings.model.gpt;
    gpt.n_head = pick(1, 3);
    gpt.n_embd = gpt.n_head * pick(1, 7);
    gpt.n_layer = pick(1, 3);
    gpt.n_positions = pick(1, 12);
    gpt.vocab_size = pick(2, 23);
    gpt.n_inner = pick(0, 1) == 0 ? 0 : pick(1, 30);
    gpt.bias = pick(0, 1) == 0;
    gpt.tie_word_embeddings = pick(0, 1) == 0;
    gpt.head_rows = std::uniform_int_distribution<std::int64_t>(0, gpt.n_positions)(parts);
    gpt.initializer_range = 0.1;
    static const std::vector<std::string> activations = {"gelu_new", "gelu", "silu", "gelu_new"};
    gpt.activation_function = activations[static_cast<std::size_t>(trial) % activations.size()];
    settings = with_batch(settings, pick(1, 3), pick(1, 2), 1);
    settings.checkpoint_every = pick(0, 2);
    INFO("trial " << trial << ": " << gpt.n_layer << " layers, " << gpt.n_head << " heads, " << gpt.n_embd
                  << " wide, T " << gpt.n_positions << ", V " << gpt.vocab_size << ", " << gpt.activation_function
                  << (gpt.bias ? ", biases" : "") << (gpt.tie_word_embeddings ? ", tied" : ", untied"));
    require_gradients(settings);
  }
}

TEST_CASE("Gradients of an MLP are those of finite differences, over random shapes and variants") {
  std::mt19937 random(13);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  for (int trial = 0; trial < 16; ++trial) {
    Settings settings = tiny_mlp();
    MlpSettings& mlp = settings.model.mlp;
    mlp.layers.assign(static_cast<std::size_t>(pick(2, 5)), 0);
    for (std::int64_t& width : mlp.layers) width = pick(1, 40);
    mlp.loss = pick(0, 1) == 0 ? "mse" : "cross_entropy";
    if (mlp.loss == "cross_entropy") mlp.layers.back() = pick(2, 12);
    mlp.bias = pick(0, 1) == 0;
    static const std::vector<std::string> activations = {"identity", "gelu", "tanh", "gelu_new", "silu"};
    mlp.activation = activations[static_cast<std::size_t>(trial) % activations.size()];
    settings = with_batch(settings, pick(1, 9), pick(1, 3), 1);
    INFO("trial " << trial << ": " << mlp.layers.size() << " widths, " << mlp.loss << ", " << mlp.activation);
    require_gradients(settings);
  }
}
