#include "core/memory.h"

#include <numeric>
#include <utility>

namespace zt {

std::string_view name_of(MemoryCategory category) {
  static constexpr std::array<std::string_view, memory_category_count> names = {
      "parameters", "gradients", "optimizer", "activations", "communication", "data", "workspace"};
  return names.at(static_cast<std::size_t>(category));
}

void MemoryLedger::add(MemoryCategory category, const std::string& name, std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes_.at(static_cast<std::size_t>(category)) += bytes;
  buffers_[{category, name}] += bytes;
}

void MemoryLedger::remove(MemoryCategory category, const std::string& name, std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes_.at(static_cast<std::size_t>(category)) -= bytes;
  const auto entry = buffers_.find({category, name});
  if (entry == buffers_.end()) return;
  entry->second -= bytes;
  if (entry->second == 0) buffers_.erase(entry);
}

void MemoryLedger::add_padding(std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  padding_ += bytes;
}

MemoryByCategory MemoryLedger::current() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

std::int64_t MemoryLedger::total() const {
  const std::lock_guard lock(mutex_);
  return std::accumulate(bytes_.begin(), bytes_.end(), std::int64_t{0});
}

std::int64_t MemoryLedger::padding() const {
  const std::lock_guard lock(mutex_);
  return padding_;
}

std::map<std::pair<MemoryCategory, std::string>, std::int64_t> MemoryLedger::buffers() const {
  const std::lock_guard lock(mutex_);
  return buffers_;
}

}  // namespace zt
