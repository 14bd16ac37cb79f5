// The curve of a config: losses, norms, scales and the final weights, at a number of ranks and a stage. Ranks run as
// threads of this process. The verb `prove` prints curves side by side; the tests hold them to be the same bits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "data/source.h"
#include "optim/update_gate.h"
#include "train/plan.h"

namespace zt {

struct CurveStep {
  double loss = 0.0, grad_norm = 0.0, scale = 1.0;
  bool skipped = false;
  SkipReason reason = SkipReason::none;
  std::int64_t retries = 0;
};

struct Curve {
  std::vector<CurveStep> steps;
  double validation_loss = 0.0;  // 0 without evaluation
  std::uint64_t checksum = 0;    // of the weights

  // Of rank 0, for the plan to be held against what happened.
  MemoryByCategory held{};
  std::int64_t padding = 0;
  std::int64_t elements_sent = 0, elements_planned = 0;
  CommunicationCounts counts;
  Plan plan;
  std::string device;  // what bits depend on beside the config: "avx512", "sm_90"

  // Equal in every bit of losses, norms, scales, decisions and weights.
  bool same_bits(const Curve& other) const;
};

struct CurveOptions {
  int ranks_per_node = 0;         // pretended node size
  std::int64_t misalignment = 0;  // bytes by which every private buffer is off a multiple of 64
  bool lazy = false;              // operations wait until somebody waits for them (device/lazy_device.h)
  bool compute_late = false;      // the other streams run ahead of computing (same)
  std::string resume_from{};      // a checkpoint to go on from; empty: from the beginning
  std::string save_to{};          // where a checkpoint of the end goes (a directory of checkpoints); empty: nowhere
};

// `settings`: resolved, with batch sizes for this many ranks, threads set. Runs training.max_steps steps and, with
// eval_interval > 0, an evaluation at the end.
Curve trace_curve(const Settings& settings, const Dataset& dataset, int ranks, const CurveOptions& options = {});

// The settings for another number of ranks and another stage, with the same micro-batch and global batch; A follows.
// UserError if the micro-batches cannot be dealt out evenly.
Settings at(const Settings& settings, int ranks, int stage);

}  // namespace zt
