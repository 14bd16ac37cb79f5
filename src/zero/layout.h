// Where every tensor lies: the one table that all stages, the optimizer and files read.
//
// A unit has flat segments: matrices and vectors, trained and frozen ones. In a segment tensors stand in canonical
// order, each starting at a multiple of 128 elements; the segment is padded to a multiple of 128 N elements and cut
// into N equal slices, one a rank. The layout is the same at every stage and a function of the units and N alone.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/precision.h"
#include "model/parameter_access.h"

namespace zt {

constexpr std::int64_t layout_alignment = 128;  // elements

struct TensorPlace {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t count = 0;   // elements
  std::int64_t offset = 0;  // elements from the start of the segment
  int unit = 0;
  Segment segment = Segment::matrices;
  Distribution initial = Distribution::constant;
  float initial_scale = 0.0F;
  TensorKind kind = TensorKind::matrix;
  bool hidden = false;  // TensorSpec's
};

// Whether an optimizer that has a rule for the matrices of hidden layers updates this one by it.
inline bool updates_whole(const TensorPlace& tensor) { return tensor.hidden && is_trained(tensor.segment); }

struct SegmentLayout {
  std::int64_t elements = 0;  // padded: a multiple of 128 N; 0 if the unit has no such tensors
  std::int64_t used = 0;      // elements of tensors
  std::int64_t slice = 0;     // elements / N
  std::vector<int> tensors;   // indices into Layout::tensors, in order of offset
};

struct UnitLayout {
  std::string name;
  std::array<SegmentLayout, segment_count> segments;
  std::vector<int> tensors;  // of the unit's spec order -> index into Layout::tensors
  bool spans_pass = false;

  const SegmentLayout& segment(Segment which) const { return segments.at(static_cast<std::size_t>(which)); }
  std::int64_t elements() const {
    std::int64_t sum = 0;
    for (const SegmentLayout& segment : segments) sum += segment.elements;
    return sum;
  }
  bool trains() const { return segment(Segment::matrices).used + segment(Segment::vectors).used > 0; }
};

// Formats of a set of segments.
using SegmentFormats = std::array<DType, segment_count>;
SegmentFormats parameter_formats(const Precision& precision);
SegmentFormats gradient_formats(const Precision& precision);     // of trained segments
SegmentFormats accumulator_formats(const Precision& precision);  // of trained segments
SegmentFormats master_formats(const Precision& precision);       // of trained segments that have masters apart
SegmentFormats moment_formats(const Precision& precision);       // of trained segments

// A run of elements of one tensor.
struct Piece {
  int tensor = 0;                  // index into Layout::tensors
  std::int64_t tensor_offset = 0;  // of the first element within the tensor: a multiple of 128
  std::int64_t offset = 0;         // of the first element within the range asked for
  std::int64_t count = 0;
};

class Layout {
 public:
  Layout(const std::vector<UnitSpec>& units, int ranks);

  int ranks() const { return ranks_; }
  const std::vector<TensorPlace>& tensors() const { return tensors_; }
  const std::vector<UnitLayout>& units() const { return units_; }
  const UnitLayout& unit(int index) const { return units_.at(static_cast<std::size_t>(index)); }
  const TensorPlace& tensor(int index) const { return tensors_.at(static_cast<std::size_t>(index)); }
  std::int64_t parameters() const { return parameters_; }  // without padding
  ParametersBySegment parameters_by_segment() const;
  std::int64_t elements() const { return elements_; }  // with padding

  // Calls visit(Piece) for the parts of tensors within elements [begin, end) of a segment (padding left out).
  template <typename Visit>
  void for_each_piece(int unit_index, Segment which, std::int64_t begin, std::int64_t end, Visit&& visit) const {
    for (const int index : unit(unit_index).segment(which).tensors) {
      const TensorPlace& place = tensor(index);
      const std::int64_t first = std::max(begin, place.offset);
      const std::int64_t last = std::min(end, place.offset + place.count);
      if (first < last) visit(Piece{index, first - place.offset, first - begin, last - first});
    }
  }

 private:
  int ranks_;
  std::vector<TensorPlace> tensors_;
  std::vector<UnitLayout> units_;
  std::int64_t parameters_ = 0, elements_ = 0;
};

// The part of a segment that a rank holds: everything or its slice.
enum class Extent : std::uint8_t { whole, slice };

// Places segments of units one after the other in one buffer, each whole or as this rank's slice.
class Arrangement {
 public:
  using Includes = std::function<bool(int unit, Segment segment)>;
  static bool trained(int /*unit*/, Segment segment) { return is_trained(segment); }

  Arrangement(const Layout& layout, Extent extent, const SegmentFormats& formats, const Includes& includes = {});

  std::int64_t bytes() const { return bytes_; }
  std::int64_t padding_bytes() const { return padding_bytes_; }  // share of alignment and even slices in it
  bool has(int unit, Segment segment) const { return entry(unit, segment).present; }
  std::int64_t byte_offset(int unit, Segment segment) const { return entry(unit, segment).byte_offset; }
  std::int64_t count(int unit, Segment segment) const { return entry(unit, segment).count; }
  DType dtype(Segment segment) const { return dtypes_.at(static_cast<std::size_t>(segment)); }
  // The view of a segment (or of this rank's slice of it) in a buffer that is arranged so.
  TensorView view(void* buffer, int unit, Segment segment) const {
    return {static_cast<std::byte*>(buffer) + byte_offset(unit, segment), count(unit, segment), dtype(segment)};
  }

 private:
  struct Entry {
    std::int64_t byte_offset = 0, count = 0;
    bool present = false;
  };
  const Entry& entry(int unit, Segment segment) const {
    return entries_.at(static_cast<std::size_t>(unit)).at(static_cast<std::size_t>(segment));
  }
  SegmentFormats dtypes_;
  std::vector<std::array<Entry, segment_count>> entries_;
  std::int64_t bytes_ = 0, padding_bytes_ = 0;
};

}  // namespace zt
