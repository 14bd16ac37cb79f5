// What the ranks of a run compute on, chosen by all of them together, and the communicator that its memory needs.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "config/settings.h"
#include "device/cpu/cpu_device.h"
#include "device/gpu/backend.h"
#include "train/agreements.h"
#include "train/plan.h"

namespace zt {

struct ComputeChoice {
  std::string type = "cpu";       // or cuda
  std::string communicator;       // shared, mpi; on GPUs nccl, staged
  GpuBackend* backend = nullptr;  // null: the CPU
  int index = 0;                  // of this rank's GPU in this process
  int sharing = 1;                // ranks that share it
  GpuInfo gpu;
  std::vector<std::string> notices;  // lines for the user

  // What the config is to say: one rank on a GPU needs none, so that more of them may choose later.
  std::optional<std::string> settled_communicator(int ranks) const {
    return type == "cuda" && ranks == 1 ? std::nullopt : std::optional(communicator);
  }
  bool on_gpu() const { return backend != nullptr; }
  // What bits depend on beside the config: an instruction set, or the kind of GPU ("sm_90").
  std::string instruction_set(cpu::InstructionLevel level) const;
};

// All ranks call it. "auto" takes GPUs if every rank has a usable one and the CPU if none has. Errors, the same on all
// ranks: UserError (PeerFailed on ranks but the first) if they are mixed, or "cuda" was asked for and a rank has none.
ComputeChoice choose_compute(Communicator& host, const DeviceSettings& settings, const Neighbours& neighbours);

// What `ranks` ranks of this machine would choose, for plans; starts the driver only if `settings` allow GPUs and one
// may be there. A plan for "cuda" needs no GPU.
ComputeChoice plan_compute(const DeviceSettings& settings, int ranks);

// Of how many ranks the plan assumes that memory is read directly (Communicator::ranks_on_node).
int planned_ranks_on_node(const ComputeChoice& choice, const Communicator& host);

// Scratch memory of the device that the settings, settled, ask for.
ScratchBytes scratch_of_device(const DeviceSettings& settings);

// The device and the communicator of one rank.
class Compute {
 public:
  // `host` must outlive it. `operations`: all that will be run. Errors: UserError. Only with GPUs of their own do ranks
  // communicate here: all call it alike.
  Compute(const ComputeChoice& choice, const Settings& settings, Communicator& host,
          const std::vector<Operation>& operations, const cpu::CpuDeviceOptions* cpu_options = nullptr);

  Device& device() { return *device_; }
  Communicator& communicator() { return own_communicator_ ? *own_communicator_ : host_; }

 private:
  Communicator& host_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Communicator> own_communicator_;
};

}  // namespace zt
