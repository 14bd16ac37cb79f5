// Which token comes next: a draw from scores, as the user shapes them.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace zt {

struct SamplerSettings {
  double temperature = 1.0;  // 0: the token of the largest score
  std::int64_t top_k = 0;    // of the so many largest scores only; 0: of all
  double top_p = 1.0;        // of the fewest most probable tokens whose probabilities reach this sum
  std::uint64_t seed = 0;
};

class Sampler {
 public:
  explicit Sampler(const SamplerSettings& settings) : settings_(settings) {}

  // The token at `position` of the sequence: a function of scores, settings and position alone. Of equal scores the
  // smaller token counts as the larger one. RunError if a score is NaN or all are -infinity.
  std::int32_t pick(std::span<const float> scores, std::int64_t position);

 private:
  SamplerSettings settings_;
  std::vector<std::pair<double, std::int32_t>> candidates_;  // weight, token
};

}  // namespace zt
