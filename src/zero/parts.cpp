#include "zero/parts.h"

#include <algorithm>

namespace zt {

namespace {

std::int64_t bytes_of(DType type) { return static_cast<std::int64_t>(size_of(type)); }

}  // namespace

SharedSegments::SharedSegments(const EngineContext& context, Extent extent, MemoryCategory category,
                               const std::string& name, const SegmentFormats& formats,
                               const Arrangement::Includes& includes)
    : context_(context),
      extent_(extent),
      arrangement_(context.layout, extent, formats, includes),
      buffer_(context.communicator.allocate(context.device, arrangement_.bytes(), category, name)) {
  context.device.ledger().add_padding(arrangement_.padding_bytes());
}

TensorView SharedSegments::slice(int unit, Segment segment) const {
  const TensorView held = view(unit, segment);
  if (extent_ == Extent::slice) return held;
  const std::int64_t slice = context_.layout.unit(unit).segment(segment).slice;
  return held.part(context_.communicator.rank() * slice, slice);
}

Region SharedSegments::region(int unit, Segment segment) const {
  const std::int64_t slice = context_.layout.unit(unit).segment(segment).slice;
  return {buffer_.get(), arrangement_.byte_offset(unit, segment),
          extent_ == Extent::whole ? slice * bytes_of(dtype(segment)) : 0};
}

WholeParameters::WholeParameters(const EngineContext& context)
    : context_(context),
      segments_(context, Extent::whole, MemoryCategory::parameters, "parameters", parameter_formats(context.precision)),
      gathered_(context.layout.units().size()) {}

void WholeParameters::gather(int unit, Changed changed) {
  Device& device = context_.device;
  const ActivitySpan span(device, Activity::gather, unit);
  device.wait(Stream::gather, device.record(Stream::compute));
  for (const Segment segment : all_segments) {
    if (context_.layout.unit(unit).segment(segment).elements == 0 || !concerns(changed, segment)) continue;
    context_.communicator.all_gather(device, Stream::gather, segments_.region(unit, segment),
                                     segments_.view(unit, segment));
  }
  gathered_.at(static_cast<std::size_t>(unit)) = device.record(Stream::gather);
}

void WholeParameters::wait_until_gathered(int unit) {
  context_.device.wait(Stream::compute, gathered_.at(static_cast<std::size_t>(unit)));
}

SliceSums::SliceSums(const EngineContext& context)
    : arrangement_(context.layout, Extent::slice, accumulator_formats(context.precision), Arrangement::trained),
      buffer_(context.device.allocate(arrangement_.bytes(), MemoryCategory::gradients, "gradient sums")) {
  context.device.ledger().add_padding(arrangement_.padding_bytes());
}

GradientRing::GradientRing(const EngineContext& context)
    : context_(context), dedicated_(context.layout.units().size(), -1), current_(context.layout.units().size(), -1) {
  const auto unit_bytes = [&](const UnitLayout& unit) {
    return vectors_offset(static_cast<int>(&unit - context.layout.units().data())) +
           unit.segment(Segment::vectors).elements * bytes_of(context.precision.vector_gradient);
  };
  const auto padding = [&](const UnitLayout& unit) {
    return unit_bytes(unit) - unit.segment(Segment::matrices).used * bytes_of(context.precision.gradient) -
           unit.segment(Segment::vectors).used * bytes_of(context.precision.vector_gradient);
  };
  std::int64_t bytes = 0;
  const UnitLayout* largest = nullptr;
  int units_in_ring = 0;
  for (const UnitLayout& unit : context.layout.units()) {
    if (unit.spans_pass || !unit.trains()) continue;
    ++units_in_ring;
    if (largest == nullptr || unit_bytes(unit) > unit_bytes(*largest)) largest = &unit;
  }
  ring_ = std::min(2, units_in_ring);
  for (int slot = 0; slot < ring_; ++slot) {
    slots_.push_back({bytes, -1, {}, {}});
    bytes += unit_bytes(*largest);
    context.device.ledger().add_padding(padding(*largest));
  }
  for (std::size_t unit = 0; unit < context.layout.units().size(); ++unit) {
    const UnitLayout& place = context.layout.units()[unit];
    if (!place.spans_pass || !place.trains()) continue;
    dedicated_[unit] = static_cast<int>(slots_.size());
    slots_.push_back({bytes, -1, {}, {}});
    bytes += unit_bytes(place);
    context.device.ledger().add_padding(padding(place));
  }
  if (context.order == AccumulationOrder::local) {
    own_ = context.device.allocate(bytes, MemoryCategory::communication, "gradient ring");
  } else {
    shared_ = context.communicator.allocate(context.device, bytes, MemoryCategory::communication, "gradient ring");
  }
}

std::int64_t GradientRing::vectors_offset(int unit) const {
  return context_.layout.unit(unit).segment(Segment::matrices).elements * bytes_of(context_.precision.gradient);
}

std::int64_t GradientRing::offset_in_slot(int unit, Segment segment) const {
  return segment == Segment::matrices ? 0 : vectors_offset(unit);
}

GradientRing::Slot& GradientRing::slot_of(int unit) {
  const auto index = static_cast<std::size_t>(unit);
  if (current_[index] >= 0 && slots_[static_cast<std::size_t>(current_[index])].unit == unit) {
    return slots_[static_cast<std::size_t>(current_[index])];
  }
  int chosen = dedicated_[index];
  if (chosen < 0) {
    chosen = next_;
    next_ = (next_ + 1) % ring_;
  }
  Slot& slot = slots_[static_cast<std::size_t>(chosen)];
  wait_until_reusable(context_, slot.reduced, slot.ticket);
  slot.unit = unit;
  slot.ticket = {};
  current_[index] = chosen;
  return slot;
}

TensorView GradientRing::memory(int unit, Segment segment) {
  const Slot& slot = slot_of(unit);
  auto* const memory = static_cast<std::byte*>(shared_ ? shared_->data() : own_.data());
  return {memory + slot.byte_offset + offset_in_slot(unit, segment),
          context_.layout.unit(unit).segment(segment).elements,
          segment == Segment::matrices ? context_.precision.gradient : context_.precision.vector_gradient};
}

Region GradientRing::region(int unit, Segment segment) const {
  const Slot& slot = slots_.at(static_cast<std::size_t>(current_.at(static_cast<std::size_t>(unit))));
  const DType dtype = segment == Segment::matrices ? context_.precision.gradient : context_.precision.vector_gradient;
  return {shared_.get(), slot.byte_offset + offset_in_slot(unit, segment),
          context_.layout.unit(unit).segment(segment).slice * bytes_of(dtype)};
}

void GradientRing::reduced(int unit, Ticket ticket) {
  Slot& slot = slot_of(unit);
  slot.unit = -1;
  slot.ticket = ticket;
  slot.reduced = context_.device.record(Stream::reduce);
}

void GradientRing::add_to(int unit, bool first, FunctionRef<TensorView(Segment)> sum) {
  Device& device = context_.device;
  device.wait(Stream::reduce, device.record(Stream::compute));
  for (const Segment segment : trained_segments) {
    if (context_.layout.unit(unit).segment(segment).elements == 0) continue;
    const TensorView gradients = memory(unit, segment);
    const void* const source = gradients.data;
    device.run(
        Stream::reduce,
        ReduceOnto{.acc = sum(segment), .sources = {&source, 1}, .source_dtype = gradients.dtype, .first = first});
  }
  reduced(unit, {});
}

void wait_until_reusable(const EngineContext& context, Event reduced, Ticket ticket) {
  if (reduced.id != 0) context.device.wait(Stream::compute, reduced);
  if (ticket.number == 0) return;
  context.device.synchronize(reduced);
  context.communicator.wait_until_read(ticket);
}

Ticket reduce_unit(const EngineContext& context, int unit, bool first, const SegmentFormats& formats,
                   FunctionRef<Region(Segment)> region, FunctionRef<TensorView(Segment)> sum) {
  Device& device = context.device;
  device.wait(Stream::reduce, device.record(Stream::compute));
  Ticket ticket;
  for (const Segment segment : trained_segments) {
    if (context.layout.unit(unit).segment(segment).elements == 0) continue;
    const DType dtype = formats.at(static_cast<std::size_t>(segment));
    ticket = context.communicator.reduce_scatter(device, Stream::reduce, region(segment), dtype, sum(segment), first);
  }
  return ticket;
}

// Nothing waits for the peers to have read the sums: they are written again in the next step, and the agreement that
// ends this one lies between.
void reduce_sums(const EngineContext& context, int unit, const SharedSegments& sums) {
  reduce_unit(
      context, unit, true, accumulator_formats(context.precision),
      [&](Segment segment) { return sums.region(unit, segment); },
      [&](Segment segment) { return sums.slice(unit, segment); });
}

}  // namespace zt
