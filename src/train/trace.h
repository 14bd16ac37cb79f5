// What a rank did and when, operation by operation: recorded for a few steps by decorators of its device and its
// communicator. Recording changes no bit; on a GPU it costs two timing events an operation, on a CPU two readings of
// the clock.
#pragma once

#include <memory>

#include "comm/communicator.h"
#include "device/device.h"
#include "train/trace_recorder.h"

namespace zt {

class Trace {
 public:
  // The decorators that the run is to use in place of these two, which must outlive them.
  Trace(Device& device, Communicator& communicator);
  Device& device() { return *device_; }
  Communicator& communicator() { return *communicator_; }

  // All ranks: records from now on, times are told from now.
  void start();
  void stop() { recorder_->stop(); }
  bool recording() const { return recorder_->recording(); }
  TraceRecorder& recorder() { return *recorder_; }

 private:
  std::unique_ptr<TraceRecorder> recorder_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Communicator> communicator_;
};

}  // namespace zt
