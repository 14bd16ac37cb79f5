// Buffers of a pass in one piece of memory: those that are not in use at the same time lie in the same place.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/device.h"

namespace zt {

// The parts of a pass, one bit each. What a buffer holds need not outlive the phases that it is declared for.
using Phases = std::uint8_t;

class Arena {
 public:
  // Declares a buffer; allocate() writes its view to `view`, which must stay where it is until then.
  void add(TensorView& view, std::string name, std::int64_t count, DType dtype, Phases phases);
  // Places the buffers and takes their memory from the device as one allocation. Once, after the last add().
  void allocate(Device& device, MemoryCategory category, const std::string& name);

  // What an address belongs to during `phase`, or "".
  std::string name_at(const void* address, Phases phase) const;

  // As placed, and as they would be side by side.
  std::int64_t bytes() const { return bytes_; }
  std::int64_t bytes_side_by_side() const;

 private:
  struct Declared {
    TensorView* view;
    std::string name;
    std::int64_t count;
    DType dtype;
    Phases phases;
    std::int64_t offset = 0;
    std::int64_t bytes() const;
  };
  std::vector<Declared> declared_;
  std::int64_t bytes_ = 0;
  Buffer buffer_;
};

}  // namespace zt
