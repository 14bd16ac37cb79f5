#include "zero/layout.h"

#include <algorithm>

namespace zt {

namespace {

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

SegmentFormats formats(DType matrices, DType vectors) { return {matrices, vectors, matrices, vectors}; }

}  // namespace

SegmentFormats parameter_formats(const Precision& precision) { return formats(precision.parameter, precision.vectors); }
SegmentFormats gradient_formats(const Precision& precision) {
  return formats(precision.gradient, precision.vector_gradient);
}
SegmentFormats accumulator_formats(const Precision& precision) {
  return formats(precision.accumulator, precision.vector_accumulator);
}
SegmentFormats master_formats(const Precision& precision) { return formats(precision.master, precision.master); }
SegmentFormats moment_formats(const Precision& precision) {
  // Averages of what is kept in fp32 are fp32.
  return formats(precision.moment, precision.vectors == DType::f32 ? DType::f32 : precision.moment);
}

Layout::Layout(const std::vector<UnitSpec>& units, int ranks) : ranks_(ranks) {
  for (const UnitSpec& spec : units) {
    const int unit_index = static_cast<int>(units_.size());
    UnitLayout unit;
    unit.name = spec.name;
    unit.spans_pass = spec.spans_pass;
    for (const TensorSpec& tensor : spec.tensors) {
      SegmentLayout& segment = unit.segments.at(static_cast<std::size_t>(tensor.segment));
      const int tensor_index = static_cast<int>(tensors_.size());
      tensors_.push_back({tensor.name, tensor.shape, tensor.count(), segment.elements, unit_index, tensor.segment,
                          tensor.initial, tensor.initial_scale, tensor.kind, tensor.hidden});
      segment.elements = round_up(segment.elements + tensor.count(), layout_alignment);
      segment.used += tensor.count();
      segment.tensors.push_back(tensor_index);
      unit.tensors.push_back(tensor_index);
      parameters_ += tensor.count();
    }
    for (SegmentLayout& segment : unit.segments) {
      segment.elements = round_up(segment.elements, layout_alignment * ranks);
      segment.slice = segment.elements / ranks;
      elements_ += segment.elements;
    }
    units_.push_back(std::move(unit));
  }
}

ParametersBySegment Layout::parameters_by_segment() const {
  ParametersBySegment counts{};
  for (const UnitLayout& unit : units_) {
    for (const Segment segment : all_segments)
      counts.at(static_cast<std::size_t>(segment)) += unit.segment(segment).used;
  }
  return counts;
}

Arrangement::Arrangement(const Layout& layout, Extent extent, const SegmentFormats& formats, const Includes& includes)
    : dtypes_(formats) {
  std::int64_t used_bytes = 0;
  for (int unit = 0; unit < static_cast<int>(layout.units().size()); ++unit) {
    std::array<Entry, segment_count> entries{};
    for (const Segment which : all_segments) {
      const SegmentLayout& segment = layout.unit(unit).segment(which);
      if (segment.elements == 0 || (includes && !includes(unit, which))) continue;
      const auto size = static_cast<std::int64_t>(size_of(dtype(which)));
      Entry& entry = entries.at(static_cast<std::size_t>(which));
      entry.present = true;
      entry.byte_offset = bytes_;
      entry.count = extent == Extent::whole ? segment.elements : segment.slice;
      bytes_ += entry.count * size;
      used_bytes += segment.used * size;
    }
    entries_.push_back(entries);
  }
  // What is not a rank's even share of the tensors' bytes is padding.
  padding_bytes_ = bytes_ - (extent == Extent::whole ? used_bytes : used_bytes / layout.ranks());
}

}  // namespace zt
