#include "app/fit_memory.h"

#include <algorithm>
#include <charconv>

#include "comm/agree.h"
#include "core/available_memory.h"
#include "core/errors.h"
#include "train/agreements.h"

namespace zt {

namespace {

ConfigSource with(ConfigSource source, const FitCandidate& candidate, const LeftOpen& open) {
  const auto set = [&](const char* key, std::int64_t value) {
    source.sets.push_back(std::string(key) + "=" + std::to_string(value));
  };
  if (open.stage) set("zero_optimization.stage", candidate.stage);
  if (open.recomputation) set("activation_checkpointing.every", candidate.every);
  if (open.micro_batch) set("train_micro_batch_size_per_gpu", candidate.micro);
  return source;
}

bool is_absurd(const Settings& settings) {
  try {
    refuse_absurd_sizes(settings);
  } catch (const UserError&) {
    return true;
  }
  return false;
}

// Of what is free a part is left to libraries and to whoever takes memory before the run does.
std::int64_t share_of_free(std::int64_t bytes) { return bytes - bytes / 10; }

}  // namespace

Settings least_settings(const ResolvedConfig& config) {
  Settings settings = config.settings;
  if (config.left_open.micro_batch) settings.batch.micro = 1;
  return settings;
}

Fit fit_memory(const ConfigSource& source, int ranks, const ResolvedConfig& open, std::int64_t memory,
               const PlanOfConfig& plan) {
  const LeftOpen& left = open.left_open;
  const Settings& settings = open.settings;
  std::vector<int> stages = {settings.zero.stage};
  if (left.stage) stages = {0, 1, 2, 3};
  std::vector<std::int64_t> recomputations = {settings.checkpoint_every};
  if (left.recomputation) recomputations = {0, 1};
  std::vector<std::int64_t> micro_batches = {settings.batch.micro};
  if (left.micro_batch) micro_batches = micro_batches_to_try(settings.batch.train / ranks);
  refuse_absurd_sizes(least_settings(open));
  std::vector<FitCandidate> candidates;
  for (const int stage : stages) {
    for (const std::int64_t every : recomputations) {
      for (const std::int64_t micro : micro_batches) {
        const FitCandidate asked{.stage = stage, .micro = micro, .every = every};
        ResolvedConfig config = resolve_here(with(source, asked, left), ranks);
        if (is_absurd(config.settings)) continue;
        const Plan planned = plan(config);
        candidates.push_back(candidate_of(config.settings, planned));
      }
    }
  }
  return choose_fit(std::move(candidates), memory);
}

ResolvedConfig resolve_fitted(const ConfigSource& source, int ranks, const ResolvedConfig& open, const Fit& fit) {
  if (!fit.chosen) refuse_unfit(fit);
  ResolvedConfig config = resolve_here(with(source, fit.candidates[*fit.chosen], open.left_open), ranks);
  for (std::string& line : fit_lines(fit)) config.notices.push_back(std::move(line));
  return config;
}

std::int64_t memory_of_a_rank(const ResolvedConfig& config, int ranks, const ComputeChoice& choice) {
  if (config.memory_limit > 0) return config.memory_limit;
  if (choice.on_gpu()) return share_of_free(choice.gpu.free);
  return share_of_free(available_memory_bytes() / ranks);
}

std::int64_t memory_of_a_rank(const ResolvedConfig& config, Communicator& communicator) {
  if (config.memory_limit > 0) return config.memory_limit;
  const Neighbours neighbours = find_neighbours(communicator);
  const ComputeChoice choice = choose_compute(communicator, config.settings.device, neighbours);
  const std::int64_t mine = choice.on_gpu() ? share_of_free(choice.gpu.free / choice.sharing)
                                            : share_of_free(available_memory_bytes() / neighbours.on_machine);
  std::int64_t least = mine;
  for (const std::string& text : communicator.all_gather_strings(std::to_string(mine))) {
    std::int64_t other = mine;
    std::from_chars(text.data(), text.data() + text.size(), other);
    least = std::min(least, other);
  }
  return least;
}

ResolvedConfig choose_together(const ConfigSource& source, const ResolvedConfig& open, std::int64_t vocab_size,
                               Communicator& communicator) {
  const int ranks = communicator.size();
  // Before a plan wakes the library of products, which then keeps to it.
  agree_on_instruction_set(communicator, open.settings.device.instruction_set);
  const std::int64_t memory = memory_of_a_rank(open, communicator);
  const Neighbours neighbours = find_neighbours(communicator);
  const ComputeChoice choice = choose_compute(communicator, open.settings.device, neighbours);
  const int ranks_on_node = planned_ranks_on_node(choice, communicator);
  ResolvedConfig chosen;
  all_or_none(communicator, [&] {
    const Fit fit = fit_memory(source, ranks, open, memory, [&](ResolvedConfig& config) {
      settle_here(config, vocab_size, neighbours.sharing_cores, choice);
      return make_plan(config.settings, communicator.rank(), ranks, ranks_on_node,
                       scratch_of_device(config.settings.device));
    });
    chosen = resolve_fitted(source, ranks, open, fit);
  });
  return chosen;
}

ResolvedConfig choose_here(const ConfigSource& source, const ResolvedConfig& open, std::int64_t vocab_size, int ranks) {
  const ComputeChoice choice = plan_compute(open.settings.device, ranks);
  const Fit fit = fit_memory(source, ranks, open, memory_of_a_rank(open, ranks, choice), [&](ResolvedConfig& config) {
    settle_here(config, vocab_size, ranks, choice);
    return plan_here(config.settings, ranks, choice);
  });
  return resolve_fitted(source, ranks, open, fit);
}

}  // namespace zt
