#include "zero/layout.h"

#include <algorithm>

namespace zt {

namespace {

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

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
                          tensor.initial, tensor.initial_scale, tensor.kind});
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

std::vector<Piece> Layout::pieces(int unit_index, Segment segment, std::int64_t begin, std::int64_t end) const {
  std::vector<Piece> result;
  for (const int index : unit(unit_index).segment(segment).tensors) {
    const TensorPlace& place = tensor(index);
    const std::int64_t first = std::max(begin, place.offset);
    const std::int64_t last = std::min(end, place.offset + place.count);
    if (first < last) result.push_back({index, first - place.offset, first - begin, last - first});
  }
  return result;
}

Arrangement::Arrangement(const Layout& layout, Extent extent, DType matrices, DType vectors, const Includes& includes)
    : dtypes_{matrices, vectors} {
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
