// What a training needs at any stage and number of ranks, and the largest model that a memory holds: the plan of
// each case, made by the same code as a run's (train/plan.h), or, for a bare number of parameters, the accounting of
// the paper.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "config/settings.h"
#include "train/plan.h"

namespace zt {

// Makes the plan of one rank of `ranks` (which rank does not matter: all hold and send alike).
using PlanMaker = std::function<Plan(const Settings& settings, int ranks)>;

// Bytes of activations with every block's kept and with every block recomputed (activation_checkpointing.every 0, 1).
struct ActivationBytes {
  std::int64_t kept = 0, recomputed = 0;
};
ActivationBytes activation_bytes(const Settings& settings, const Plan& plan, const PlanMaker& make);

// The largest model of the same proportions that a rank has `memory` bytes for, all else as in the settings: a GPT with
// more or fewer heads of the same size, and blocks and inner width in proportion; an MLP with wider or narrower hidden
// layers.
struct LargestModel {
  ModelSettings model;
  std::int64_t parameters = 0;
  std::int64_t bytes = 0;  // of a rank, all categories
};
// None: not even the smallest fits, or the model has nothing to scale (an MLP without hidden layers).
std::optional<LargestModel> largest_model(const Settings& settings, int ranks, std::int64_t memory,
                                          const PlanMaker& make);
// The model of `settings` with `size` heads (a GPT), or a widest hidden layer of `size` (an MLP).
ModelSettings scaled_model(const ModelSettings& model, std::int64_t size);

// Model states by the paper (section 3.1): mixed precision with Adam, 2 bytes a parameter, 2 its gradient, 12 the
// optimizer's, one micro-step; what a stage shares out is divided by the number of ranks. Only the three categories of
// model states, and the paper's elements, are set.
Plan paper_plan(double parameters, int stage, int ranks);
double paper_bytes_per_parameter(int stage, int ranks);

}  // namespace zt
