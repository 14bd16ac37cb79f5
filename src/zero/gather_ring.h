// Parameters at rest as slices, gathered unit by unit into a ring ahead of their use (stage 3).
#pragma once

#include <vector>

#include "zero/parts.h"

namespace zt {

class GatheredParameters {
 public:
  explicit GatheredParameters(const EngineContext& context);

  // A pass will acquire units in this order.
  void begin(const std::vector<int>& order);
  void acquire(int unit);
  void release(int unit);
  TensorView view(int unit, Segment segment) const;   // of an acquired unit
  TensorView slice(int unit, Segment segment) const;  // this rank's, at rest
  void publish(int unit, Changed changed);            // persistent segments are gathered at once, others when needed
  void forget();                                      // nothing is resident any more

 private:
  struct Slot {
    std::int64_t byte_offset = 0;
    int unit = -1;    // resident in it
    int holders = 0;  // acquired and not yet released
    std::int64_t last_use = 0;
    Event ready;     // gathered
    Event released;  // the last reader's operations
  };
  bool persists(int unit, Segment segment) const;
  bool needs_slot(int unit) const;
  Slot* resident(int unit);
  Slot* free_slot(std::size_t position);  // for what is needed at position of the order, or null
  void gather(int unit, Slot& slot);
  void free(Slot& slot);
  void run_ahead();
  TensorView slot_view(const Slot& slot, int unit, Segment segment) const;

  const EngineContext& context_;
  SharedSegments slices_;
  std::unique_ptr<SharedSegments> persistent_;  // whole; null if nothing persists
  std::vector<Event> published_;                // by unit: persistent segments are whole
  Buffer ring_;
  std::vector<Slot> slots_;     // the first ones are shared by all, the rest dedicated to units that span a pass
  std::vector<int> dedicated_;  // by unit: slot or -1
  std::size_t shared_slots_ = 0;
  const std::vector<int>* order_ = nullptr;
  std::size_t position_ = 0;  // in the order: of the next acquire
  std::int64_t uses_ = 0;
};

}  // namespace zt
