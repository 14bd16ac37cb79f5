#include "comm/communicator.h"

#include <algorithm>

namespace zt {

std::string_view name_of(CollectiveKind kind) {
  static constexpr std::array<std::string_view, collective_kind_count> names = {
      "all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all"};
  return names.at(static_cast<std::size_t>(kind));
}

std::int64_t OwnerBlocks::sent_by(int rank) const {
  std::int64_t elements = 0;
  for (int to = 0; to < static_cast<int>(counts.size()); ++to) {
    if (to != rank) elements += count(rank, to);
  }
  return elements;
}

std::int64_t OwnerBlocks::largest() const {
  return counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
}

void Communicator::sum_on_device(Device& device, Stream stream, std::int64_t* values, std::int64_t count) {
  std::vector<std::int64_t> sums(static_cast<std::size_t>(count));
  const std::int64_t bytes = count * static_cast<std::int64_t>(sizeof *values);
  if (size() > 1) {
    device.copy(stream, sums.data(), values, bytes);
    device.synchronize(stream);
  }
  all_reduce_sum(sums);
  if (size() == 1) return;
  device.copy(stream, values, sums.data(), bytes);
  device.synchronize(stream);
}

CollectiveCount& CommunicationCounts::of(Purpose purpose, CollectiveKind kind) {
  const auto index = static_cast<std::size_t>(kind);
  switch (purpose) {
    case Purpose::training: return training[index];
    case Purpose::evaluation: return evaluation[index];
    case Purpose::control: break;
  }
  return control[index];
}

}  // namespace zt
