// Where optimizer states live. finish_step borrows them one sub-group (a unit's segment) at a time, so that
// keeping them elsewhere (host memory, a disk) is another store and not another engine.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "optim/optimizer.h"
#include "zero/engine.h"

namespace zt {

constexpr int most_moments = 3;

struct BorrowedState {
  TensorView master;                             // empty: the resting parameters are the masters
  std::array<TensorView, most_moments> moments;  // as many as are kept in the segment
};

// How many of the optimizer's moments are kept of a trained tensor: the first ones.
int kept_moments(const Optimizer& optimizer, const TensorPlace& tensor);
// The mean of it over the trained parameters of each segment.
MomentsPerParameter moments_per_parameter(const Optimizer& optimizer, const Layout& layout);

class StateStore {
 public:
  virtual ~StateStore() = default;
  // Whether this moment (0, 1, ...) of a trained tensor is kept.
  virtual bool keeps(int moment, const TensorPlace& tensor) const = 0;
  // States of what this rank updates of the (trained) segment. Valid until given back; one at a time.
  virtual BorrowedState borrow(int unit, Segment segment) = 0;
  virtual void give_back(int unit, Segment segment) = 0;
};

// In the device's own memory. A moment has memory for the segments in which it is kept of some tensor.
class DeviceStateStore final : public StateStore {
 public:
  // The optimizer must outlive the store.
  DeviceStateStore(const Engine& engine, const Optimizer& optimizer);
  bool keeps(int moment, const TensorPlace& tensor) const override { return moment < kept_moments(optimizer_, tensor); }
  BorrowedState borrow(int unit, Segment segment) override;
  void give_back(int /*unit*/, Segment /*segment*/) override {}

 private:
  const Optimizer& optimizer_;
  Arrangement masters_;
  Buffer master_buffer_;
  struct Moment {
    Arrangement arrangement;
    Buffer buffer;
  };
  std::vector<Moment> moments_;
};

}  // namespace zt
