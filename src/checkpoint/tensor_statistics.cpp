#include "checkpoint/tensor_statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace zt {

TensorStatistics statistics_of(const NativeCheckpoint& checkpoint, const std::string& kind, int tensor) {
  constexpr std::int64_t most = std::int64_t{1} << 18;
  TensorStatistics statistics;
  statistics.elements = checkpoint.manifest().tensors.at(static_cast<std::size_t>(tensor)).count();
  std::vector<float> values(static_cast<std::size_t>(std::min(most, statistics.elements)));
  // Welford's running mean and sum of squared deviations (Technometrics 4, 1962).
  double mean = 0.0;
  double squares = 0.0;
  double smallest = std::numeric_limits<double>::infinity();
  double largest = -smallest;
  std::int64_t finite = 0;
  for (std::int64_t first = 0; first < statistics.elements; first += most) {
    const std::int64_t count = std::min(most, statistics.elements - first);
    checkpoint.read(kind, tensor, first, count, values.data());
    for (std::int64_t i = 0; i < count; ++i) {
      const auto value = static_cast<double>(values[static_cast<std::size_t>(i)]);
      if (!std::isfinite(value)) {
        ++statistics.not_finite;
        continue;
      }
      ++finite;
      const double from_mean = value - mean;
      mean += from_mean / static_cast<double>(finite);
      squares += from_mean * (value - mean);
      smallest = std::min(smallest, value);
      largest = std::max(largest, value);
      if (value == 0.0) ++statistics.zeros;
    }
  }
  if (finite == 0) return statistics;
  statistics.mean = mean;
  statistics.deviation = std::sqrt(squares / static_cast<double>(finite));
  statistics.smallest = smallest;
  statistics.largest = largest;
  return statistics;
}

}  // namespace zt
