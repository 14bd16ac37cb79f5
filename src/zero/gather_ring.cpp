#include "zero/gather_ring.h"

#include <algorithm>
#include <stdexcept>

namespace zt {

namespace {

std::int64_t bytes_of(DType type) { return static_cast<std::int64_t>(size_of(type)); }

// How many units the ring holds: two at least (one in use, one on its way); more where the settings ask for them.
std::size_t ring_depth(const EngineContext& context, std::int64_t largest_elements, std::size_t units) {
  std::int64_t depth = 2;
  if (largest_elements > 0) {
    const ZeroSettings& zero = context.zero;
    if (zero.prefetch_bucket_size > 0)
      depth = 1 + std::max<std::int64_t>(1, zero.prefetch_bucket_size / largest_elements);
    if (zero.max_live_parameters > 0) {
      const std::int64_t limit = std::max<std::int64_t>(2, zero.max_live_parameters / largest_elements);
      depth = zero.prefetch_bucket_size > 0 ? std::min(depth, limit) : limit;
    }
  }
  return std::min(static_cast<std::size_t>(std::max<std::int64_t>(depth, 2)), units);
}

}  // namespace

GatheredParameters::GatheredParameters(const EngineContext& context)
    : context_(context),
      slices_(context, Extent::slice, MemoryCategory::parameters, "parameter slices",
              parameter_formats(context.precision),
              [this](int unit, Segment segment) { return !persists(unit, segment); }),
      published_(context.layout.units().size()),
      dedicated_(context.layout.units().size(), -1) {
  const auto includes = [this](int unit, Segment segment) { return persists(unit, segment); };
  const SegmentFormats formats = parameter_formats(context.precision);
  if (Arrangement(context.layout, Extent::whole, formats, includes).bytes() > 0) {
    persistent_ = std::make_unique<SharedSegments>(context, Extent::whole, MemoryCategory::parameters,
                                                   "persistent parameters", formats, includes);
  }

  const auto segment_bytes = [&](int unit, Segment segment, bool used) {
    if (persists(unit, segment)) return std::int64_t{0};
    const SegmentLayout& place = context.layout.unit(unit).segment(segment);
    return (used ? place.used : place.elements) * bytes_of(slices_.dtype(segment));
  };
  const auto unit_bytes = [&](int unit, bool used) {
    std::int64_t bytes = 0;
    for (const Segment segment : all_segments) bytes += segment_bytes(unit, segment, used);
    return bytes;
  };
  const int units = static_cast<int>(context.layout.units().size());
  int largest = -1;
  std::size_t ring_units = 0;
  for (int unit = 0; unit < units; ++unit) {
    if (context.layout.unit(unit).spans_pass || unit_bytes(unit, false) == 0) continue;
    ++ring_units;
    if (largest < 0 || unit_bytes(unit, false) > unit_bytes(largest, false)) largest = unit;
  }
  std::int64_t bytes = 0;
  const auto add_slot = [&](int unit) {
    slots_.push_back({});
    slots_.back().byte_offset = bytes;
    bytes += unit_bytes(unit, false);
    context.device.ledger().add_padding(unit_bytes(unit, false) - unit_bytes(unit, true));
  };
  if (largest >= 0) {
    shared_slots_ = ring_depth(context, context.layout.unit(largest).elements(), ring_units);
    for (std::size_t slot = 0; slot < shared_slots_; ++slot) add_slot(largest);
  }
  for (int unit = 0; unit < units; ++unit) {
    if (!context.layout.unit(unit).spans_pass || unit_bytes(unit, false) == 0) continue;
    dedicated_[static_cast<std::size_t>(unit)] = static_cast<int>(slots_.size());
    add_slot(unit);
  }
  ring_ = context.device.allocate(bytes, MemoryCategory::communication, "gather ring");
}

bool GatheredParameters::persists(int unit, Segment segment) const {
  const SegmentLayout& place = context_.layout.unit(unit).segment(segment);
  return place.used > 0 && place.used <= context_.zero.param_persistence_threshold;
}

bool GatheredParameters::needs_slot(int unit) const {
  return std::any_of(all_segments.begin(), all_segments.end(), [&](Segment segment) {
    return context_.layout.unit(unit).segment(segment).elements > 0 && !persists(unit, segment);
  });
}

TensorView GatheredParameters::slice(int unit, Segment segment) const {
  return persists(unit, segment) ? persistent_->slice(unit, segment) : slices_.slice(unit, segment);
}

TensorView GatheredParameters::slot_view(const Slot& slot, int unit, Segment segment) const {
  std::int64_t offset = slot.byte_offset;
  for (const Segment before : all_segments) {
    if (before == segment) break;
    if (persists(unit, before)) continue;
    offset += context_.layout.unit(unit).segment(before).elements * bytes_of(slices_.dtype(before));
  }
  return {ring_.at(offset), context_.layout.unit(unit).segment(segment).elements, slices_.dtype(segment)};
}

TensorView GatheredParameters::view(int unit, Segment segment) const {
  if (persists(unit, segment)) return persistent_->view(unit, segment);
  for (const Slot& slot : slots_) {
    if (slot.unit == unit) return slot_view(slot, unit, segment);
  }
  throw std::logic_error("unit " + context_.layout.unit(unit).name + " is read but not acquired");
}

GatheredParameters::Slot* GatheredParameters::resident(int unit) {
  const auto found = std::find_if(slots_.begin(), slots_.end(), [&](const Slot& slot) { return slot.unit == unit; });
  return found == slots_.end() ? nullptr : &*found;
}

void GatheredParameters::begin(const std::vector<int>& order) {
  order_ = &order;
  position_ = 0;
}

void GatheredParameters::acquire(int unit) {
  if (order_ == nullptr || position_ >= order_->size() || (*order_)[position_] != unit) {
    throw std::logic_error("unit " + context_.layout.unit(unit).name + " is acquired out of the order of its pass");
  }
  Device& device = context_.device;
  if (persistent_) device.wait(Stream::compute, published_[static_cast<std::size_t>(unit)]);
  if (needs_slot(unit)) {
    Slot* slot = resident(unit);
    if (slot == nullptr) {
      slot = free_slot(position_);
      if (slot == nullptr) throw std::logic_error("no gather buffer is free: units were not released");
      gather(unit, *slot);
    }
    device.wait(Stream::compute, slot->ready);
    ++slot->holders;
    slot->last_use = ++uses_;
  }
  ++position_;
  run_ahead();
}

void GatheredParameters::release(int unit) {
  Slot* slot = resident(unit);
  if (slot == nullptr) return;
  --slot->holders;
  slot->released = context_.device.record(Stream::compute);
}

// A slot for the unit at `position` of the order: its own, or the one of the ring that has not been used for the
// longest among those that hold nothing needed between now and then.
GatheredParameters::Slot* GatheredParameters::free_slot(std::size_t position) {
  const auto unit = static_cast<std::size_t>((*order_)[position]);
  if (dedicated_[unit] >= 0) return &slots_[static_cast<std::size_t>(dedicated_[unit])];
  Slot* chosen = nullptr;
  for (std::size_t index = 0; index < shared_slots_; ++index) {
    Slot& slot = slots_[index];
    const auto soon_begin = order_->begin() + static_cast<std::ptrdiff_t>(std::min(position_, position));
    const auto soon_end = order_->begin() + static_cast<std::ptrdiff_t>(position);
    if (slot.holders > 0 || std::find(soon_begin, soon_end, slot.unit) != soon_end) continue;
    if (chosen == nullptr || slot.unit < 0 || (chosen->unit >= 0 && slot.last_use < chosen->last_use)) chosen = &slot;
  }
  return chosen;
}

void GatheredParameters::gather(int unit, Slot& slot) {
  Device& device = context_.device;
  // Readers of what the slot held before, and the update of this rank's slice, come first.
  device.wait(Stream::gather, slot.released);
  device.wait(Stream::gather, published_[static_cast<std::size_t>(unit)]);
  free(slot);
  const ActivitySpan span(device, Activity::gather, unit);
  slot.unit = unit;
  slot.holders = 0;
  slot.last_use = ++uses_;
  for (const Segment segment : all_segments) {
    if (context_.layout.unit(unit).segment(segment).elements == 0 || persists(unit, segment)) continue;
    context_.communicator.all_gather(device, Stream::gather, slices_.region(unit, segment),
                                     slot_view(slot, unit, segment));
  }
  slot.ready = device.record(Stream::gather);
}

// Gathers what comes next in the order while there are slots for it.
void GatheredParameters::run_ahead() {
  const std::size_t ahead = std::max<std::size_t>(shared_slots_, 2) - 1;
  for (std::size_t next = position_; next < std::min(position_ + ahead, order_->size()); ++next) {
    const int unit = (*order_)[next];
    if (!needs_slot(unit) || resident(unit) != nullptr) continue;
    Slot* slot = free_slot(next);
    if (slot == nullptr) return;
    gather(unit, *slot);
  }
}

void GatheredParameters::publish(int unit, Changed changed) {
  Device& device = context_.device;
  const Event updated = device.record(Stream::compute);
  published_[static_cast<std::size_t>(unit)] = updated;
  if (!persistent_) return;
  bool gathered = false;
  for (const Segment segment : all_segments) {
    if (!persists(unit, segment) || !concerns(changed, segment)) continue;
    if (!gathered) device.wait(Stream::gather, updated);
    gathered = true;
    context_.communicator.all_gather(device, Stream::gather, persistent_->region(unit, segment),
                                     persistent_->view(unit, segment));
  }
  if (gathered) published_[static_cast<std::size_t>(unit)] = device.record(Stream::gather);
}

void GatheredParameters::free(Slot& slot) {
  if (slot.unit < 0) return;
  const ActivitySpan span(context_.device, Activity::free, slot.unit);
  slot.unit = -1;
}

void GatheredParameters::forget() {
  for (Slot& slot : slots_) free(slot);
}

}  // namespace zt
