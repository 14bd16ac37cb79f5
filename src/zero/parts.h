// The parts that stages are put together from.
#pragma once

#include <deque>
#include <vector>

#include "core/function_ref.h"
#include "zero/engine.h"

namespace zt {

// A buffer that peers read, holding segments whole or as slices.
class SharedSegments {
 public:
  SharedSegments(const EngineContext& context, Extent extent, MemoryCategory category, const std::string& name,
                 const SegmentFormats& formats, const Arrangement::Includes& includes = {});

  TensorView view(int unit, Segment segment) const { return arrangement_.view(buffer_->data(), unit, segment); }
  // This rank's slice within a whole segment (or the slice itself).
  TensorView slice(int unit, Segment segment) const;
  // The slices of all ranks, for collectives.
  Region region(int unit, Segment segment) const;
  DType dtype(Segment segment) const { return arrangement_.dtype(segment); }

 private:
  const EngineContext& context_;
  Extent extent_;
  Arrangement arrangement_;
  SharedBufferPtr buffer_;
};

// Whole parameters of which each rank updates its slice (stages 1 and 2).
class WholeParameters {
 public:
  explicit WholeParameters(const EngineContext& context);
  TensorView view(int unit, Segment segment) const { return segments_.view(unit, segment); }
  TensorView slice(int unit, Segment segment) const { return segments_.slice(unit, segment); }
  void gather(int unit, Changed changed);  // everybody's slices
  void wait_until_gathered(int unit);      // before operations put on the compute stream from now on

 private:
  const EngineContext& context_;
  SharedSegments segments_;
  std::vector<Event> gathered_;  // by unit
};

// Slices of the sums of gradients (stages 1, 2 and 3).
class SliceSums {
 public:
  explicit SliceSums(const EngineContext& context);
  TensorView view(int unit, Segment segment) const { return arrangement_.view(buffer_.data(), unit, segment); }

 private:
  Arrangement arrangement_;
  Buffer buffer_;
};

// Gradients of single units, unreduced, in a ring of two slots; units that span a pass have slots of their own.
// In local order no peer reads them: then the ring has no regions.
class GradientRing {
 public:
  explicit GradientRing(const EngineContext& context);
  TensorView memory(int unit, Segment segment);  // takes a slot if the unit has none, once its last use is over
  Region region(int unit, Segment segment) const;
  // Adds what is in the unit's slot to this rank's own sums, on the reduce stream, after what is on the compute stream;
  // first: sets them to it. The slot may be taken again then.
  void add_to(int unit, bool first, FunctionRef<TensorView(Segment)> sum);
  void reduced(int unit, Ticket ticket);  // the slot may be taken again when peers have read it

 private:
  struct Slot {
    std::int64_t byte_offset = 0;
    int unit = -1;  // that is being written
    Event reduced;
    Ticket ticket;
  };
  Slot& slot_of(int unit);
  std::int64_t vectors_offset(int unit) const;
  std::int64_t offset_in_slot(int unit, Segment segment) const;  // bytes

  const EngineContext& context_;
  std::vector<Slot> slots_;     // the first `ring` ones are shared, the rest dedicated
  std::vector<int> dedicated_;  // by unit: its slot or -1
  std::vector<int> current_;    // by unit: the slot it was given last or -1
  int ring_ = 0, next_ = 0;
  SharedBufferPtr shared_;  // or, where no peer reads it,
  Buffer own_;
};

// Before gradients are written where others were reduced from: waits for this rank's own sum and for the peers'.
void wait_until_reusable(const EngineContext& context, Event reduced, Ticket ticket);

// Reduces a unit's gradients onto this rank's slice of the sums, on the reduce stream, after what is on the compute
// stream. `region` and `sum` give the source, in these formats, and the destination of a segment.
Ticket reduce_unit(const EngineContext& context, int unit, bool first, const SegmentFormats& formats,
                   FunctionRef<Region(Segment)> region, FunctionRef<TensorView(Segment)> sum);
// In local order: reduces whole sums, of each rank's own micro-batches, onto this rank's slice of them.
void reduce_sums(const EngineContext& context, int unit, const SharedSegments& sums);

}  // namespace zt
