// What a run will hold and send, found by running its code on the counting device.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "config/settings.h"
#include "core/memory.h"
#include "device/operations.h"
#include "model/parameter_access.h"
#include "optim/progress.h"

namespace zt {

struct Plan {
  int ranks = 1;
  int stage = 0;
  std::int64_t parameters = 0;        // of the model, without padding
  ParametersBySegment by_segment{};   // trained and frozen ones
  MemoryByCategory memory{};          // bytes of one rank
  std::int64_t padding = 0;           // bytes, part of the categories
  double formula_bytes = 0.0;         // of model states per parameter
  std::int64_t elements_applied = 0;  // sent by one rank in a step whose update is applied
  std::int64_t elements_skipped = 0;  // in a step that is skipped, and in a pass that is run again
  double paper_elements = 0.0;        // per parameter and step
  double matrix_elements = 0.0;       // of these: what matrices that the optimizer updates whole add (Muon)
  std::array<CollectiveCount, collective_kind_count> sent{};  // by one rank in a step whose update is applied
  std::int64_t logits = 0;    // bytes of those of classes and tokens that exist at a time: part of the activations
  double step_flops = 0.0;    // of one rank's products in a step, those of recomputed blocks included
  double update_flops = 0.0;  // of these: the optimizer's (Muon)
  double model_flops = 0.0;   // of one rank in a step, by the rule of docs: no recomputation
  std::int64_t updated = 0;   // elements that one rank's optimizer updates, padding included
  int units = 0;              // of the model: what is gathered and reduced together
  std::vector<Operation> operations;  // all that the device will be asked to do, to prepare for

  std::int64_t trained_parameters() const;
  std::int64_t total() const;
};

// The device planned for: bytes of workspace that it reserves for these operations.
using ScratchBytes = std::function<std::int64_t(const std::vector<Operation>& operations)>;

// `settings` resolved, vocabulary included; batch sizes are those of `ranks` ranks.
// `ranks_on_node`: as of Communicator; 0: all.
Plan make_plan(const Settings& settings, int rank, int ranks, int ranks_on_node, const ScratchBytes& scratch);

// Elements that one rank sends in so many steps of each kind.
std::int64_t planned_elements(const Plan& plan, const StepCounts& steps);

// UserError if parameters or the activations of a micro-batch are beyond any machine: sizes that a plan could not even
// add up.
void refuse_absurd_sizes(const Settings& settings);

// UserError if `ranks_here` ranks of this plan do not fit: says which category is largest and which keys help. `place`:
// whose memory it is.
void check_memory(const Plan& plan, int ranks_here, std::int64_t available, const std::string& place = "this machine");

// UserError if the plan is beyond device.memory_limit (bytes of a rank; 0: none is set).
void check_memory_limit(const Plan& plan, std::int64_t limit);

}  // namespace zt
