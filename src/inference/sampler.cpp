#include "inference/sampler.h"

#include <algorithm>
#include <cmath>

#include "core/errors.h"
#include "core/random.h"

namespace zt {

std::int32_t Sampler::pick(std::span<const float> scores, std::int64_t position) {
  const auto largest = std::max_element(scores.begin(), scores.end());
  if (std::any_of(scores.begin(), scores.end(), [](float score) { return std::isnan(score); }) ||
      !std::isfinite(*largest)) {
    throw RunError("the model's scores for token " + std::to_string(position) +
                   " are not finite: its weights hold numbers that are not, or its precision is too low for them");
  }
  if (settings_.temperature == 0.0) return static_cast<std::int32_t>(largest - scores.begin());

  candidates_.clear();
  for (std::size_t token = 0; token < scores.size(); ++token) {
    const double below = (static_cast<double>(scores[token]) - static_cast<double>(*largest)) / settings_.temperature;
    candidates_.emplace_back(std::exp(below), static_cast<std::int32_t>(token));
  }
  const auto before = [](const auto& a, const auto& b) {
    return a.first > b.first || (a.first == b.first && a.second < b.second);
  };
  const auto count = static_cast<std::int64_t>(candidates_.size());
  const std::int64_t kept = settings_.top_k > 0 ? std::min(settings_.top_k, count) : count;
  if (kept < count || settings_.top_p < 1.0) {
    std::partial_sort(candidates_.begin(), candidates_.begin() + kept, candidates_.end(), before);
    candidates_.resize(static_cast<std::size_t>(kept));
  }
  double total = 0.0;
  for (const auto& [weight, token] : candidates_) total += weight;
  if (settings_.top_p < 1.0) {
    const double wanted = settings_.top_p * total;
    double sum = 0.0;
    std::size_t taken = 0;
    while (taken < candidates_.size() && (taken == 0 || sum < wanted)) sum += candidates_[taken++].first;
    candidates_.resize(taken);
    total = sum;
  }
  // 53 bits, from two draws of the position's own.
  const std::uint64_t key = derive_key(settings_.seed, "generate");
  const auto index = static_cast<std::uint64_t>(position);
  const std::uint64_t high = random_bits(key, 2 * index) >> 5;
  const std::uint64_t low = random_bits(key, 2 * index + 1) >> 6;
  double left = static_cast<double>((high << 26) | low) * 0x1p-53 * total;
  for (const auto& [weight, token] : candidates_) {
    left -= weight;
    if (left < 0.0) return token;
  }
  return candidates_.back().second;
}

}  // namespace zt
