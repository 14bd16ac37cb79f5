#include "train/batch_feeder.h"

#include <cstring>

namespace zt {

BatchFeeder::BatchFeeder(Device& device, SampleShape shape, std::int64_t micro) : device_(device), micro_(micro) {
  for (std::size_t index = 0; index < slots_.size(); ++index) {
    Slot& slot = slots_.at(index);
    const auto allocate = [&](Part& part, std::int64_t values, const char* name) {
      if (values == 0) return;
      part.device = device.allocate(micro * values * 4, MemoryCategory::data, name);
      part.host = device.allocate_host(micro * values * 4, name);
    };
    allocate(slot.tokens, shape.tokens, "tokens");
    allocate(slot.targets, shape.token_targets, "targets");
    allocate(slot.features, shape.features, "features");
    allocate(slot.values, shape.value_targets, "target values");
    allocate(slot.valid_rows, shape.value_targets > 0 ? 1 : 0, "valid rows");
  }
}

BatchFeeder::Slot* BatchFeeder::holding(const Loader* loader, std::int64_t first_sample, std::int64_t j) {
  for (Slot& slot : slots_) {
    if (slot.filled && slot.loader == loader && slot.first_sample == first_sample && slot.j == j) return &slot;
  }
  return nullptr;
}

void BatchFeeder::fill(Slot& slot, const Loader* loader, std::int64_t first_sample, std::int64_t j) {
  slot.loader = loader;
  slot.first_sample = first_sample;
  slot.j = j;
  slot.filled = true;
  if (loader == nullptr) return;
  loader->fill(first_sample, j, read_);
  slot.first_sample_in_global_batch = read_.first_sample_in_global_batch;
  slot.valid = read_.valid;
  device_.synchronize(slot.copied);       // the host's side is free
  device_.wait(Stream::copy, slot.used);  // and so is the device's
  const auto copy = [&](const Part& part, const auto& values) {
    if (!part.device) return;
    const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(values[0]));
    std::memcpy(part.host.data(), values.data(), static_cast<std::size_t>(bytes));
    device_.copy(Stream::copy, part.device.data(), part.host.data(), bytes);
  };
  copy(slot.tokens, read_.tokens);
  copy(slot.targets, read_.token_targets);
  copy(slot.features, read_.features);
  copy(slot.values, read_.value_targets);
  copy(slot.valid_rows, read_.valid_rows);
  slot.copied = device_.record(Stream::copy);
}

void BatchFeeder::prefetch(const Loader* loader, std::int64_t first_sample, std::int64_t j) {
  if (holding(loader, first_sample, j) != nullptr) return;
  fill(slots_.at(1 - last_), loader, first_sample, j);
}

BatchFeeder::Fed BatchFeeder::take(const Loader* loader, std::int64_t first_sample, std::int64_t j) {
  // Everything that reads the batch taken before has been put on the compute stream.
  slots_.at(last_).used = device_.record(Stream::compute);
  Slot* slot = holding(loader, first_sample, j);
  if (slot == nullptr) {
    slot = &slots_.at(1 - last_);
    fill(*slot, loader, first_sample, j);
  }
  last_ = slot == &slots_[0] ? 0 : 1;
  device_.wait(Stream::compute, slot->copied);
  return {batch_of(*slot), slot->valid};
}

const std::int32_t* BatchFeeder::put_tokens(const std::int32_t* tokens, std::int64_t count) {
  Slot& slot = slots_.at(last_);
  slot.filled = false;
  device_.synchronize(slot.copied);
  auto* host = slot.tokens.host.as<std::int32_t>();
  if (device_.computes()) {
    std::memset(host, 0, static_cast<std::size_t>(slot.tokens.host.bytes()));
    std::memcpy(host, tokens, static_cast<std::size_t>(count) * sizeof *tokens);
  }
  device_.wait(Stream::copy, device_.record(Stream::compute));
  device_.copy(Stream::copy, slot.tokens.device.data(), host, slot.tokens.host.bytes());
  slot.copied = device_.record(Stream::copy);
  device_.wait(Stream::compute, slot.copied);
  return slot.tokens.device.as<std::int32_t>();
}

DeviceBatch BatchFeeder::batch_of(const Slot& slot) const {
  return {.rows = micro_,
          .first_sample = slot.first_sample_in_global_batch,
          .tokens = slot.tokens.device.as<std::int32_t>(),
          .features = slot.features.device.as<float>(),
          .targets = slot.targets.device.as<std::int32_t>(),
          .target_values = slot.values.device.as<float>(),
          .valid = slot.valid_rows.device.as<std::int32_t>()};
}

}  // namespace zt
