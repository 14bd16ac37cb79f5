#include "device/counting/counting_device.h"

#include <algorithm>
#include <utility>

namespace zt {

namespace {

// Addresses that no program can hold, so that a mistaken access is caught at once.
constexpr std::uintptr_t first_address = std::uintptr_t{1} << 56;

}  // namespace

CountingDevice::CountingDevice(Scratch scratch, std::string description)
    : scratch_(std::move(scratch)), description_(std::move(description)), next_address_(first_address) {}

Buffer CountingDevice::allocate(std::int64_t bytes, MemoryCategory category, const std::string& name) {
  ledger_.add(category, name, bytes);
  const std::uintptr_t address = next_address_;
  next_address_ += static_cast<std::uintptr_t>((bytes + 63) / 64 * 64);
  return {reinterpret_cast<void*>(address), bytes,  // NOLINT(performance-no-int-to-ptr)
          [this, bytes, category, name] { ledger_.remove(category, name, bytes); }};
}

Buffer CountingDevice::allocate_host(std::int64_t bytes, const std::string& /*name*/) {
  const std::uintptr_t address = next_address_;
  next_address_ += static_cast<std::uintptr_t>((bytes + 63) / 64 * 64);
  return {reinterpret_cast<void*>(address), bytes, {}};  // NOLINT(performance-no-int-to-ptr)
}

void CountingDevice::reserve_workspace() {
  workspace_ = allocate(scratch_(operations_), MemoryCategory::workspace, "kernels");
}

void CountingDevice::run(Stream /*stream*/, const Operation& operation) { operations_.push_back(operation); }

void CountingDevice::begin_activity(Activity activity, std::int64_t /*number*/) {
  spans_.push_back({activity, operations_.size(), operations_.size()});
}

void CountingDevice::end_activity(Activity activity, std::int64_t /*number*/) {
  const auto span =
      std::find_if(spans_.rbegin(), spans_.rend(), [&](const Span& it) { return it.activity == activity; });
  if (span != spans_.rend()) span->end = operations_.size();
}

std::vector<Operation> CountingDevice::operations_of(Activity activity) const {
  std::vector<Operation> found;
  for (const Span& span : spans_) {
    if (span.activity != activity) continue;
    const auto at = [&](std::size_t index) { return operations_.begin() + static_cast<std::ptrdiff_t>(index); };
    found.insert(found.end(), at(span.begin), at(span.end));
  }
  return found;
}

}  // namespace zt
