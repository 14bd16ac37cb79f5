// The models in double precision, written as plainly as the formulas: forward passes whose losses are differentiated
// by finite differences to check the gradients that were written by hand.
#pragma once

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "config/settings.h"

namespace zt::test {

using DoubleWeights = std::map<std::string, std::vector<double>>;

inline double activate(const std::string& name, double x) {
  if (name == "relu") return x > 0.0 ? x : 0.0;
  if (name == "silu") return x / (1.0 + std::exp(-x));
  if (name == "tanh") return std::tanh(x);
  if (name == "gelu") return 0.5 * x * (1.0 + std::erf(x / std::sqrt(2.0)));
  if (name == "gelu_new") {
    return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
  }
  return x;
}

class DoubleModel {
 public:
  DoubleModel(const ModelSettings& settings, DoubleWeights weights)
      : settings_(settings), weights_(std::move(weights)) {}
  DoubleWeights& weights() { return weights_; }

  // Mean cross entropy of sequences [rows, T].
  double gpt_loss(const std::vector<std::int32_t>& tokens, const std::vector<std::int32_t>& targets) const {
    const GptSettings& gpt = settings_.gpt;
    const auto T = static_cast<std::size_t>(gpt.n_positions);
    const auto C = static_cast<std::size_t>(gpt.n_embd);
    const auto V = static_cast<std::size_t>(gpt.vocab_size);
    double total = 0.0;
    for (std::size_t first = 0; first < tokens.size(); first += T) {
      Rows x(T, std::vector<double>(C));
      for (std::size_t t = 0; t < T; ++t) {
        for (std::size_t c = 0; c < C; ++c) {
          x[t][c] = at("wte.weight", static_cast<std::size_t>(tokens[first + t]) * C + c) + at("wpe.weight", t * C + c);
        }
      }
      for (std::int64_t layer = 0; layer < gpt.n_layer; ++layer) {
        const std::string h = "h." + std::to_string(layer);
        add(x, linear(attention(linear(norm(x, h + ".ln_1"), h + ".attn.c_attn", 3 * C)), h + ".attn.c_proj", C));
        const std::size_t I = gpt.n_inner > 0 ? static_cast<std::size_t>(gpt.n_inner) : 4 * C;
        Rows hidden = linear(norm(x, h + ".ln_2"), h + ".mlp.c_fc", I);
        for (auto& row : hidden) {
          for (double& value : row) value = activate(gpt.activation_function, value);
        }
        add(x, linear(hidden, h + ".mlp.c_proj", C));
      }
      const Rows logits = linear(norm(x, "ln_f"), gpt.tie_word_embeddings ? "wte" : "lm_head", V);
      for (std::size_t t = 0; t < T; ++t) total += cross_entropy(logits[t], targets[first + t]);
    }
    return total / static_cast<double>(tokens.size());
  }

  // Mean loss of rows of features.
  double mlp_loss(const std::vector<float>& features, const std::vector<std::int32_t>& classes,
                  const std::vector<float>& values) const {
    const MlpSettings& mlp = settings_.mlp;
    const auto inputs = static_cast<std::size_t>(mlp.layers.front());
    const std::size_t rows = features.size() / inputs;
    Rows x(rows, std::vector<double>(inputs));
    for (std::size_t i = 0; i < features.size(); ++i) x[i / inputs][i % inputs] = features[i];
    for (std::size_t layer = 0; layer + 1 < mlp.layers.size(); ++layer) {
      x = linear(x, "layers." + std::to_string(layer), static_cast<std::size_t>(mlp.layers[layer + 1]));
      if (layer + 2 == mlp.layers.size()) break;
      for (auto& row : x) {
        for (double& value : row) value = activate(mlp.activation, value);
      }
    }
    double total = 0.0;
    for (std::size_t r = 0; r < rows; ++r) {
      if (mlp.loss == "cross_entropy") {
        total += cross_entropy(x[r], classes[r]);
        continue;
      }
      const std::size_t outputs = x[r].size();
      for (std::size_t c = 0; c < outputs; ++c) {
        total += std::pow(x[r][c] - static_cast<double>(values[r * outputs + c]), 2) / static_cast<double>(outputs);
      }
    }
    return total / static_cast<double>(rows);
  }

 private:
  using Rows = std::vector<std::vector<double>>;

  double at(const std::string& name, std::size_t index) const { return weights_.at(name)[index]; }
  static void add(Rows& x, const Rows& y) {
    for (std::size_t r = 0; r < x.size(); ++r) {
      for (std::size_t c = 0; c < x[r].size(); ++c) x[r][c] += y[r][c];
    }
  }
  static double cross_entropy(const std::vector<double>& logits, std::int32_t target) {
    double sum = 0.0;
    for (const double logit : logits) sum += std::exp(logit);
    return std::log(sum) - logits[static_cast<std::size_t>(target)];
  }
  Rows linear(const Rows& x, const std::string& name, std::size_t outputs) const {
    const std::vector<double>& weight = weights_.at(name + ".weight");
    const auto bias = weights_.find(name + ".bias");
    Rows y(x.size(), std::vector<double>(outputs));
    for (std::size_t r = 0; r < x.size(); ++r) {
      for (std::size_t o = 0; o < outputs; ++o) {
        double sum = bias == weights_.end() ? 0.0 : bias->second[o];
        for (std::size_t i = 0; i < x[r].size(); ++i) sum += x[r][i] * weight[o * x[r].size() + i];
        y[r][o] = sum;
      }
    }
    return y;
  }
  Rows norm(const Rows& x, const std::string& name) const {
    const auto bias = weights_.find(name + ".bias");
    Rows y = x;
    for (auto& row : y) {
      const auto n = static_cast<double>(row.size());
      double mean = 0.0, variance = 0.0;
      for (const double value : row) mean += value / n;
      for (const double value : row) variance += (value - mean) * (value - mean) / n;
      for (std::size_t c = 0; c < row.size(); ++c) {
        row[c] = (row[c] - mean) / std::sqrt(variance + settings_.gpt.layer_norm_epsilon) * at(name + ".weight", c) +
                 (bias == weights_.end() ? 0.0 : bias->second[c]);
      }
    }
    return y;
  }
  Rows attention(const Rows& qkv) const {
    const std::size_t T = qkv.size();
    const std::size_t C = qkv[0].size() / 3;
    const std::size_t D = C / static_cast<std::size_t>(settings_.gpt.n_head);
    Rows out(T, std::vector<double>(C));
    for (std::size_t head = 0; head < C; head += D) {
      for (std::size_t t = 0; t < T; ++t) {
        std::vector<double> weight(t + 1);
        double sum = 0.0;
        for (std::size_t s = 0; s <= t; ++s) {
          double score = 0.0;
          for (std::size_t d = 0; d < D; ++d) score += qkv[t][head + d] * qkv[s][C + head + d];
          sum += weight[s] = std::exp(score / std::sqrt(static_cast<double>(D)));
        }
        for (std::size_t s = 0; s <= t; ++s) {
          for (std::size_t d = 0; d < D; ++d) out[t][head + d] += weight[s] / sum * qkv[s][2 * C + head + d];
        }
      }
    }
    return out;
  }

  ModelSettings settings_;
  DoubleWeights weights_;
};

}  // namespace zt::test
