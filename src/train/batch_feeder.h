// Micro-batches on their way into the device's memory, one ahead of the computation.
#pragma once

#include <array>
#include <cstdint>

#include "data/loader.h"
#include "device/device.h"
#include "model/model.h"

namespace zt {

class BatchFeeder {
 public:
  // Takes memory for two micro-batches of `micro` rows on the device (category data) and as much on the host.
  BatchFeeder(Device& device, SampleShape shape, std::int64_t micro);

  // Starts to copy micro-batch j of the global batch at `first_sample` (Loader::fill; a null loader: nothing to read).
  // The host goes on; it waits only if the device is two micro-batches behind.
  void prefetch(const Loader* loader, std::int64_t first_sample, std::int64_t j);
  // The micro-batch, prefetched or not, for operations put on the compute stream from now on. It is valid until the
  // next one is taken.
  struct Fed {
    DeviceBatch batch;
    std::int64_t valid = 0;  // losses that count
  };
  Fed take(const Loader* loader, std::int64_t first_sample, std::int64_t j);
  // A sequence of tokens in the place of a batch (the rest is 0).
  const std::int32_t* put_tokens(const std::int32_t* tokens, std::int64_t count);
  // What take() gave last, as it lies in memory; before the first take(): zeros.
  DeviceBatch last() const { return batch_of(slots_.at(last_)); }

 private:
  struct Part {
    Buffer host, device;
  };
  struct Slot {
    Part tokens, targets, features, values, valid_rows;
    const Loader* loader = nullptr;
    std::int64_t first_sample = -1, j = -1;
    std::int64_t first_sample_in_global_batch = 0, valid = 0;
    bool filled = false;
    Event copied, used;
  };
  void fill(Slot& slot, const Loader* loader, std::int64_t first_sample, std::int64_t j);
  Slot* holding(const Loader* loader, std::int64_t first_sample, std::int64_t j);
  DeviceBatch batch_of(const Slot& slot) const;

  Device& device_;
  std::int64_t micro_;
  MicroBatch read_;
  std::array<Slot, 2> slots_;
  std::size_t last_ = 0;  // the slot that was taken last
};

}  // namespace zt
