// Where optimizer states live. finish_step borrows them one sub-group (a unit's segment) at a time, so that
// keeping them elsewhere (host memory, a disk) is another store and not another engine.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "zero/engine.h"

namespace zt {

constexpr int most_moments = 3;

struct BorrowedState {
  TensorView master;                             // empty: the resting parameters are the masters
  std::array<TensorView, most_moments> moments;  // as many as the optimizer keeps
};

class StateStore {
 public:
  virtual ~StateStore() = default;
  // States of what this rank updates of the (trained) segment. Valid until given back; one at a time.
  virtual BorrowedState borrow(int unit, Segment segment) = 0;
  virtual void give_back(int unit, Segment segment) = 0;
};

// In the device's own memory. `initial_moments`: what the optimizer's moments start from, one number a moment.
class DeviceStateStore final : public StateStore {
 public:
  DeviceStateStore(const Engine& engine, const std::vector<float>& initial_moments);
  BorrowedState borrow(int unit, Segment segment) override;
  void give_back(int /*unit*/, Segment /*segment*/) override {}

 private:
  Arrangement masters_, moments_;
  Buffer master_buffer_;
  std::array<Buffer, most_moments> moment_buffers_;
  int moment_count_;
};

}  // namespace zt
