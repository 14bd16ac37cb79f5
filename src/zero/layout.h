// Where every tensor lies: the one table that all stages, the optimizer and files read.
//
// A unit has two flat segments (matrices, vectors). In a segment tensors stand in canonical order, each starting
// at a multiple of 128 elements; the segment is padded to a multiple of 128 N elements and cut into N equal
// slices, one a rank. The layout is the same at every stage and a function of the units and N alone.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

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
};

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
  std::int64_t elements() const { return segments[0].elements + segments[1].elements; }
};

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
  std::int64_t elements() const { return elements_; }      // with padding

  // The parts of tensors within elements [begin, end) of a segment (padding left out).
  std::vector<Piece> pieces(int unit, Segment segment, std::int64_t begin, std::int64_t end) const;

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

  // dtypes: of the matrices and of the vectors segment.
  Arrangement(const Layout& layout, Extent extent, DType matrices, DType vectors, const Includes& includes = {});

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
  std::array<DType, segment_count> dtypes_;
  std::vector<std::array<Entry, segment_count>> entries_;
  std::int64_t bytes_ = 0, padding_bytes_ = 0;
};

constexpr std::array<Segment, segment_count> all_segments = {Segment::matrices, Segment::vectors};

}  // namespace zt
